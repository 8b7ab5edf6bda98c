//! See `holdfast_fuzz::csr`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holdfast_fuzz::csr::target(data));
