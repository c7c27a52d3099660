#![no_main]

#[path = "../../crates/switch/tests/common/hostile_requests.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(
    init: {
        // A client that goes away must not end the process: programs with a `main` of Rust's ignore this signal from the start.
        // SAFETY: sets how one signal is handled, before there are other threads that could.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    },
    |bytes: &[u8]| hostile::check(bytes)
);
