//! The shipped recipe, and tiny images built from it.

use std::path::Path;

use super::BuildOptions;
use super::build::{Built, build};
use super::recipe::Recipe;
use crate::workspace;

#[test]
fn the_shipped_recipe_gives_the_configuration_that_was_proved() {
    let (recipe, _) = Recipe::read(&workspace::root()).expect("the shipped recipe");
    // Proved on a real Proxmox, call by call: only a restore keeps keyctl for a token.
    let proved = "arch: amd64\ncores: 1\nfeatures: nesting=1,keyctl=1\nhostname: golden\nmemory: 512\nostype: debian\n\
                  rootfs: local:900001/vm-900001-disk-0.raw,size=2G\nswap: 0\nunprivileged: 1\n";
    assert_eq!(recipe.pct_conf(), proved);
}

#[test]
fn the_shipped_units_hand_the_claim_on_and_start_at_boot() {
    let root = workspace::root();
    let (recipe, _) = Recipe::read(&root).expect("the shipped recipe");
    let mut image = super::image::Image::default();
    super::overlay::put_units(&mut image, &root, &recipe).expect("put");
    let wants = "etc/systemd/system/multi-user.target.wants/guestd.service";
    assert!(image.entries.contains_key(wants.as_bytes()));
    let unit = std::fs::read_to_string(root.join("golden/units/guestd.service")).expect("read");
    for line in
        ["PassEnvironment=HOLDFAST_BOOTSTRAP", "After=network.target", "ExecStart=/usr/bin/guestd run"]
    {
        assert!(unit.lines().any(|found| found == line), "{line}");
    }
}

#[test]
fn a_recipe_with_a_slip_is_refused() {
    let text = std::fs::read_to_string(workspace::root().join("golden/recipe.toml")).expect("read");
    assert!(Recipe::parse(&text.replace("packages =", "package =")).is_err(), "an unknown field");
    assert!(Recipe::parse(&text.replace("recipe/v1", "recipe/v9")).is_err(), "another schema");
    assert!(Recipe::parse(&text.replace("\"guestd.service\"", "\"../guestd.service\"")).is_err(), "a path");
}

/// Builds a tiny golden with some program in the controller's place; `None` where busybox is missing.
fn tiny(out: &Path) -> Option<Built> {
    if !["/usr/bin/busybox", "/bin/busybox"].iter().any(|path| Path::new(path).exists()) {
        assert!(std::env::var_os("HOLDFAST_CI").is_none(), "busybox-static must be installed in CI");
        eprintln!("skipped: busybox-static is not installed");
        return None;
    }
    let options = BuildOptions {
        guestd: "/bin/true".into(),
        out: out.to_owned(),
        tiny: true,
        full: false,
        version: Some("2026.11.7".to_owned()),
        fresh: false,
    };
    Some(build(&workspace::root(), out, &options).expect("built"))
}

#[test]
fn two_builds_give_the_same_digest() {
    let folders = [tempfile::TempDir::new().expect("a folder"), tempfile::TempDir::new().expect("a folder")];
    let [Some(one), Some(two)] = folders.each_ref().map(|folder| tiny(folder.path())) else { return };
    assert_eq!(one.manifest, two.manifest);
    assert_eq!(one.manifest.archive, "vzdump-lxc-900001-2026_11_01-00_00_06.tar.zst");
}

#[test]
fn a_tiny_archive_is_in_vzdump_form_and_sorted() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let Some(built) = tiny(folder.path()) else { return };
    let plain = zstd::decode_all(std::fs::File::open(&built.archive).expect("opened")).expect("decoded");
    assert_eq!(plain.len() % 10_240, 0, "whole records");
    let mut archive = tar::Archive::new(plain.as_slice());
    let mut names = Vec::new();
    for entry in archive.entries().expect("entries") {
        let entry = entry.expect("an entry");
        assert!(entry.header().mtime().expect("a time") <= built.manifest.source_date_epoch);
        names.push(entry.path().expect("a name").to_string_lossy().into_owned());
    }
    assert_eq!(names[..3], ["./etc/vzdump/pct.conf", "./etc/vzdump/pct.fw", "./"]);
    for wanted in ["./bin/busybox", "./bin/sh", "./etc/machine-id", "./sbin/init", "./usr/bin/guestd"] {
        assert!(names.iter().any(|name| name == wanted), "{wanted}");
    }
    let bare: Vec<&str> = names[2..].iter().map(|name| name.trim_end_matches('/')).collect();
    assert!(bare.is_sorted(), "sorted by name");
}
