//! See `holdfast_fuzz::signed_job`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holdfast_fuzz::signed_job::target(data));
