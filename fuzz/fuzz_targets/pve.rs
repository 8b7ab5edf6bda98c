//! See `holdfast_fuzz::pve`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holdfast_fuzz::pve::target(data));
