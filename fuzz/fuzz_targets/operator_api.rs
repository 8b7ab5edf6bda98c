//! See `holdfast_fuzz::operator_api`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holdfast_fuzz::operator_api::target(data));
