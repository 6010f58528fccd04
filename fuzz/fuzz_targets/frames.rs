//! See `pointstamp_channels::net::entry`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pointstamp_channels::net::entry::frames(data));
