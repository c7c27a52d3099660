#![no_main]

mod common;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| common::check(bytes, fanin_events::Format::Mdf));
