//! A smoke test of each fuzz target on seeds and changed copies.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

use std::panic::catch_unwind;
use std::path::Path;

use fuzz_smoke::{Material, Numbers, words};

/// Changed inputs of each target in one run.
const INPUTS: u32 = 2_000;

fn smoke(name: &str, target: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let dictionary = std::fs::read_to_string(folder.join("words.dict")).unwrap();
    let mut files: Vec<_> = std::fs::read_dir(folder.join("seeds").join(name))
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    let seeds: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    assert!(!seeds.is_empty(), "no seed for {name}");
    let turn: u64 = std::env::var("HOLDFAST_CI_TURN").map_or(0, |text| text.parse().unwrap());
    let mut numbers = Numbers::of(turn, name);
    let material = Material { seeds, words: words(&dictionary) };
    let changed = (0..INPUTS).map(|_| material.input(&mut numbers));
    for input in material.seeds.iter().cloned().chain(changed) {
        if catch_unwind(|| target(&input)).is_err() {
            let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.input"));
            std::fs::write(&file, &input).unwrap();
            panic!(
                "again: cargo xtask fuzz --target {name} --input {}; the input: {}",
                file.display(),
                input.escape_ascii()
            );
        }
    }
}

macro_rules! targets {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                smoke(stringify!($name), holdfast_fuzz::$name::target);
            }
        )*

        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

targets! {
    answers, archive, audit, break_glass, calendar, csr, desired, enrol, escrow, ids, intake, job, local, operator_api, operators,
    policy, protection, pve, recovery_code, release, report, signature, signed_job,
}

#[test]
fn every_target_is_here() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    files.sort();
    assert_eq!(files, NAMES);
}
