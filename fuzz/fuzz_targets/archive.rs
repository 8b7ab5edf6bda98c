//! See `holdfast_fuzz::archive`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holdfast_fuzz::archive::target(data));
