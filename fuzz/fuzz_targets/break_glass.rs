//! See `holdfast_fuzz::break_glass`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holdfast_fuzz::break_glass::target(data));
