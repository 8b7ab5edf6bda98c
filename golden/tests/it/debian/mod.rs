//! Test of the Debian image, built by hand and through the helper.
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

mod devices;
mod guest;
mod helper_build;
pub mod tools;

use std::path::{Path, PathBuf};
use std::time::Instant;

use holdfast_golden::scan;
use holdfast_protocol::golden::{GoldenContents, GoldenManifest};

use self::guest::Guest;
use self::tools::run;

/// Set by `cargo xtask golden prove`: the folder with `agentd`, `holdfast-golden`, `holdfast-helper` and `guestd`.
const PROGRAMS: &str = "HOLDFAST_GOLDEN_PROGRAMS";
/// An empty folder with some gigabytes of room, on a disk: Docker does not stack on a file system in memory.
const PLACE: &str = "HOLDFAST_GOLDEN_PLACE";

/// A golden in a folder.
struct Golden {
    folder: PathBuf,
    manifest: GoldenManifest,
}

impl Golden {
    fn read(folder: &Path) -> Self {
        let is_manifest = |name: &str| name.starts_with("golden-") && !name.ends_with(".spdx.json");
        let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut manifests = names.filter(|path| is_manifest(path.file_name().unwrap().to_str().unwrap()));
        let path = manifests.next().unwrap_or_else(|| panic!("no manifest in {}", folder.display()));
        assert!(manifests.next().is_none(), "one golden lies in {}", folder.display());
        let manifest = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        Self { folder: folder.to_owned(), manifest }
    }

    fn archive(&self) -> PathBuf {
        self.folder.join(&self.manifest.archive)
    }
}

#[test]
fn the_golden_of_debian() {
    let (Some(programs), Some(place)) = (std::env::var_os(PROGRAMS), std::env::var_os(PLACE)) else {
        eprintln!("left out: `cargo xtask golden prove` builds a whole Debian twice");
        return;
    };
    let (programs, place) = (PathBuf::from(programs), PathBuf::from(place));
    let by_door = helper_build::build(&programs, &place);
    let build_by_hand = build_by_hand(&programs, &place, "by-hand");
    // The archive may have moved on between the two; a third build is of the same packages as the second.
    let other = if by_door.manifest.packages == build_by_hand.manifest.packages {
        by_door
    } else {
        self::build_by_hand(&programs, &place, "again")
    };
    assert_eq!(other.manifest.packages, build_by_hand.manifest.packages);
    assert_eq!(other.manifest.sha256, build_by_hand.manifest.sha256, "the same packages, other bytes");
    assert_eq!(other.manifest.recipe_sha256, build_by_hand.manifest.recipe_sha256);
    output(&build_by_hand);
    assert_eq!(scan(&build_by_hand.archive()).unwrap(), []);
    boots(&build_by_hand, &place);
}

/// As root builds it on any Debian machine, with the installed program's own arguments.
fn build_by_hand(programs: &Path, place: &Path, name: &str) -> Golden {
    let out = place.join(name);
    let begun = Instant::now();
    let recipe = env!("CARGO_MANIFEST_DIR");
    let (guestd, work) = (programs.join("guestd"), place.join("work"));
    run(
        programs.join("holdfast-golden").to_str().unwrap(),
        &[
            "build",
            "--recipe",
            recipe,
            "--guestd",
            guestd.to_str().unwrap(),
            "--out",
            out.to_str().unwrap(),
            "--work",
            work.to_str().unwrap(),
        ],
    );
    println!("built {name} in {:.0} s", begun.elapsed().as_secs_f32());
    let left: Vec<_> = std::fs::read_dir(&work).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["lock"], "nothing of the build stays");
    Golden::read(&out)
}

/// The manifest, the bill of materials and the files agree.
fn output(golden: &Golden) {
    let manifest = &golden.manifest;
    assert_eq!((manifest.contents, manifest.suite.as_deref()), (GoldenContents::Complete, Some("trixie")));
    assert_eq!(std::fs::metadata(golden.archive()).unwrap().len(), manifest.size_bytes);
    for package in ["docker.io", "docker-cli", "docker-compose", "openssh-server", "systemd", "libc6"] {
        assert!(manifest.packages.iter().any(|one| one.name == package), "{package}");
    }
    let sbom = std::fs::read(golden.folder.join(manifest.sbom.as_ref().unwrap())).unwrap();
    let sbom: serde_json::Value = serde_json::from_slice(&sbom).unwrap();
    assert_eq!(sbom["spdxVersion"], "SPDX-2.3");
    // The image and the controller are listed there too.
    assert_eq!(sbom["packages"].as_array().unwrap().len(), manifest.packages.len() + 2);
    println!(
        "golden {}: {} packages, {} entries, {} MB of files, {} MB packed, sha256 {}",
        manifest.version,
        manifest.packages.len(),
        manifest.build.entries,
        manifest.build.content_bytes / 1_000_000,
        manifest.size_bytes / 1_000_000,
        manifest.sha256
    );
}

/// Two guests from one archive are two machines, and each has what it needs.
fn boots(golden: &Golden, place: &Path) {
    let guests = ["one", "two"].map(|name| Guest::unpack(&golden.archive(), &place.join(name)));
    for guest in &guests {
        assert_eq!(guest.file("etc/machine-id"), "", "no identity before the first boot");
        assert!(guest.ssh_keys().is_empty());
    }
    let reports = guests.each_ref().map(Guest::boot);
    for (guest, report) in guests.iter().zip(&reports) {
        println!("--- one boot\n{}", report.text);
        assert_eq!(guest.file("etc/machine-id").trim().len(), 32, "systemd made one");
        assert_eq!(guest.ssh_keys().len(), 3, "an ECDSA, an Ed25519 and an RSA key");
        assert_eq!(report.of("ssh"), "active");
        assert_eq!(report.of("grow"), "skipped", "in a container Proxmox grows the volume");
        assert_ne!(report.of("guestd"), "none", "the controller was started");
        assert_eq!(report.of("upgrades"), "active", "security upgrades come by themselves");
        assert_eq!(report.of("watchdog"), "3min");
        assert_eq!(report.of("stopped"), "restarted", "systemd ends a controller that stands still");
        report.docker();
    }
    let [one, two] = &guests;
    assert_ne!(one.file("etc/machine-id"), two.file("etc/machine-id"));
    assert_ne!(one.ssh_keys(), two.ssh_keys());
}
