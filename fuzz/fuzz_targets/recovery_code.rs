//! See `holdfast_fuzz::recovery_code`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holdfast_fuzz::recovery_code::target(data));
