//! See `holdfast_fuzz::calendar`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holdfast_fuzz::calendar::target(data));
