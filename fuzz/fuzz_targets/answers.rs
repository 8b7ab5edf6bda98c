//! See `holdfast_fuzz::answers`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holdfast_fuzz::answers::target(data));
