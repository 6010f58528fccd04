//! See `pointstamp_columnar::entry`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pointstamp_columnar::entry::columns(data));
