#![no_main]

#[path = "../../crates/message/tests/common/plain.rs"]
mod plain;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| plain::check(bytes));
