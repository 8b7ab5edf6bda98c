//! Tests of the tiny image: no root, no network, no mmdebstrap.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::path::Path;
use std::process::{Command, Output};

use holdfast_golden::{
    BaseCache, Build, BuildOutcome, Built, OnConflict, Packing, VersionChoice, build, scan,
};
use holdfast_protocol::golden::{GoldenContents, GoldenManifest};

const NOW_S: u64 = 1_795_305_600;

/// Builds a tiny golden with some program in the controller's place; `None` where busybox is missing.
pub fn tiny(out: &Path, existing: OnConflict) -> Option<anyhow::Result<Built>> {
    if !["/usr/bin/busybox", "/bin/busybox"].iter().any(|path| Path::new(path).exists()) {
        assert!(std::env::var_os("HOLDFAST_CI").is_none(), "busybox-static must be installed in CI");
        eprintln!("skipped: busybox-static is not installed");
        return None;
    }
    let order = Build {
        recipe: Path::new(env!("CARGO_MANIFEST_DIR")),
        guestd: Path::new("/bin/true"),
        out,
        work: out,
        contents: GoldenContents::Tiny,
        version: VersionChoice::NextOfMonth(NOW_S),
        existing,
        base_cache: BaseCache::Discard,
        as_of: None,
        packing: Packing::Quick,
        now_s: NOW_S,
    };
    Some(build(&order, |_| {}))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn two_builds_give_the_same_bytes() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let built = folders.each_ref().map(|folder| tiny(folder.path(), OnConflict::Keep));
    let [Some(one), Some(two)] = built.map(|built| built.map(Result::unwrap)) else { return };
    assert_eq!(one.manifest.sha256, two.manifest.sha256);
    assert_eq!(std::fs::read(&one.archive).unwrap(), std::fs::read(&two.archive).unwrap());
    assert_eq!(one.manifest.version.as_str(), "2026.11.1");
    assert_eq!(one.manifest.archive, "vzdump-lxc-900001-2026_11_01-00_00_00.tar.zst");
    assert_eq!(scan(&one.archive).unwrap(), []);
}

#[test]
fn an_identical_image_is_not_stored_twice() {
    let folder = tempfile::tempdir().unwrap();
    let Some(first) = tiny(folder.path(), OnConflict::Keep) else { return };
    let first = first.unwrap();
    let before = names(folder.path());
    let again = tiny(folder.path(), OnConflict::Keep).unwrap().unwrap();
    assert_eq!((again.how, &again.manifest), (BuildOutcome::AlreadyBuilt, &first.manifest));
    assert_eq!(names(folder.path()), before, "nothing new, nothing unfinished");
    // A replaced archive is no longer the same golden: the next version is built in addition to it.
    std::fs::write(&first.archive, "other bytes").unwrap();
    let second = tiny(folder.path(), OnConflict::Keep).unwrap().unwrap();
    assert_eq!((second.how, second.manifest.version.as_str()), (BuildOutcome::Built, "2026.11.2"));
    assert_eq!(second.manifest.archive, "vzdump-lxc-900001-2026_11_01-00_00_01.tar.zst");
    assert_eq!(std::fs::read(&first.archive).unwrap(), b"other bytes");
    // Its name is taken by something that is no golden: refused, and left as it is.
    let third = folder.path().join("vzdump-lxc-900001-2026_11_01-00_00_02.tar.zst");
    std::fs::write(&third, "somebody's backup").unwrap();
    std::fs::write(&second.archive, "other bytes").unwrap();
    let refused = tiny(folder.path(), OnConflict::Keep).unwrap().unwrap_err();
    assert!(format!("{refused:#}").contains("stays as it is"), "{refused:#}");
    assert_eq!(std::fs::read(&third).unwrap(), b"somebody's backup");
    assert!(names(folder.path()).iter().all(|name| !name.contains("unfinished")));
}

#[test]
fn the_archive_is_in_vzdump_form_and_sorted() {
    let folder = tempfile::tempdir().unwrap();
    let Some(built) = tiny(folder.path(), OnConflict::Replace) else { return };
    let built = built.unwrap();
    let plain = zstd::decode_all(std::fs::File::open(&built.archive).unwrap()).unwrap();
    assert_eq!(plain.len() % 10_240, 0, "whole records");
    let mut archive = tar::Archive::new(plain.as_slice());
    let mut names = Vec::new();
    for entry in archive.entries().unwrap() {
        let entry = entry.unwrap();
        assert!(entry.header().mtime().unwrap() <= built.manifest.source_date_epoch);
        names.push(entry.path().unwrap().to_string_lossy().into_owned());
    }
    let Some([conf, firewall, root]) = names.first_chunk::<3>() else { panic!("{names:?}") };
    assert_eq!([conf.as_str(), firewall, root], ["./etc/vzdump/pct.conf", "./etc/vzdump/pct.fw", "./"]);
    for wanted in ["./bin/busybox", "./bin/sh", "./etc/machine-id", "./sbin/init", "./usr/bin/guestd"] {
        assert!(names.iter().any(|name| name == wanted), "{wanted}");
    }
    let bare: Vec<&str> = names.iter().skip(2).map(|name| name.trim_end_matches('/')).collect();
    assert!(bare.is_sorted(), "sorted by name");
    assert_eq!(built.manifest.build.entries as usize + 2, names.len());
}

/// The program itself, as a test runs it.
fn program(words: &[&str]) -> Output {
    #[expect(clippy::disallowed_methods, reason = "the program under test")]
    let mut program = Command::new(env!("CARGO_BIN_EXE_holdfast-golden"));
    program.args(words).output().unwrap()
}

#[test]
fn the_program_prints_stages_and_result_as_lines() {
    let folder = tempfile::tempdir().unwrap();
    if tiny(folder.path(), OnConflict::Replace).is_none() {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let words = ["build", "--tiny", "--output", "json", "--guestd", "/bin/true", "--recipe"];
    let place = ["--out", out.path().to_str().unwrap()];
    let output = program(&[&words[..], &[env!("CARGO_MANIFEST_DIR")], &place].concat());
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<serde_json::Value> =
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let stages: Vec<&str> = lines.iter().filter_map(|line| line["stage"].as_str()).collect();
    assert_eq!(stages, ["image", "pack", "scan"]);
    let last = &lines.last().unwrap()["built"];
    assert_eq!(last["how"], "built");
    let manifest = out.path().join(format!("golden-{}.json", last["version"].as_str().unwrap()));
    let manifest: GoldenManifest = serde_json::from_slice(&std::fs::read(manifest).unwrap()).unwrap();
    assert_eq!(last["sha256"], manifest.sha256);
    let archive = out.path().join(&manifest.archive);
    assert!(program(&["scan", archive.to_str().unwrap()]).status.success());
}

#[test]
fn a_failed_build_reports_why_and_leaves_nothing() {
    let out = tempfile::tempdir().unwrap();
    let place = out.path().to_str().unwrap();
    let output =
        program(&["build", "--output", "json", "--recipe", "/nowhere", "--out", place, "--work", place]);
    let said = String::from_utf8(output.stdout).unwrap();
    let line: serde_json::Value = serde_json::from_str(said.trim()).unwrap();
    assert!(line["problem"].as_str().unwrap().contains("/nowhere/recipe.toml"), "{said}");
    assert_eq!((output.status.code(), names(out.path())), (Some(1), Vec::new()));
}
