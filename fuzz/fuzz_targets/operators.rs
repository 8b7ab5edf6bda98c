//! See `holdfast_fuzz::operators`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holdfast_fuzz::operators::target(data));
