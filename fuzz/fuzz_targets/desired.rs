//! See `holdfast_fuzz::desired`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holdfast_fuzz::desired::target(data));
