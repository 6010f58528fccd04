//! See `pointstamp_operators::entry`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pointstamp_operators::entry::operators(data));
