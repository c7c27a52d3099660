#![no_main]

#[path = "../../crates/switch/tests/common/hostile_config.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hostile::check(bytes));
