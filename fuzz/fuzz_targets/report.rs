//! See `holdfast_fuzz::report`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holdfast_fuzz::report::target(data));
