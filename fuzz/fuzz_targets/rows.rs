//! See `pointstamp_rows::entry`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pointstamp_rows::entry::rows(data));
