//! See `pointstamp_net::entry`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pointstamp_net::entry::records(data));
