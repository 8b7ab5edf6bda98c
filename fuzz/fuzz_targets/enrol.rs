//! See `holdfast_fuzz::enrol`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holdfast_fuzz::enrol::target(data));
