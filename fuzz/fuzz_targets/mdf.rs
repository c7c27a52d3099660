#![no_main]

#[path = "../../crates/events/tests/common/check.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| check::check(bytes, fanin_events::Format::Mdf));
