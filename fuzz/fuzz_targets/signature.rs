//! See `holdfast_fuzz::signature`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holdfast_fuzz::signature::target(data));
