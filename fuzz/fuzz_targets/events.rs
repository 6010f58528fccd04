//! See `pointstamp_events::entry`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pointstamp_events::entry::events(data));
