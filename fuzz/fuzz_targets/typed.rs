//! See `holdfast_fuzz::typed`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holdfast_fuzz::typed::target(data));
