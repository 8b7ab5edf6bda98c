//! See `holdfast_fuzz::protection`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holdfast_fuzz::protection::target(data));
