//! Tests of the shipped recipe, without Debian.

use std::path::{Path, PathBuf};

use crate::image::{Content, Image, Kind};
use crate::overlay;
use crate::recipe::Recipe;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_shipped_recipe_gives_the_proved_configuration() {
    let (recipe, _) = Recipe::read(&folder()).expect("the shipped recipe");
    // Proved on a real Proxmox, call by call: only a restore keeps keyctl for a token.
    let proved = "arch: amd64\ncores: 1\nfeatures: nesting=1,keyctl=1\nhostname: golden\nmemory: 512\nostype: debian\n\
                  rootfs: local:900001/vm-900001-disk-0.raw,size=2G\nswap: 0\nunprivileged: 1\n";
    assert_eq!(recipe.pct_conf(), proved);
}

#[test]
fn the_shipped_units_start_at_boot_and_hand_the_claim_on() {
    let (recipe, _) = Recipe::read(&folder()).expect("the shipped recipe");
    let mut image = Image::default();
    overlay::put_units(&mut image, &folder(), &recipe).expect("put");
    let shipped = [
        "guestd.service",
        "holdfast-grow-root.service",
        "holdfast-resume.service",
        "holdfast-ssh-host-keys.service",
    ];
    for unit in shipped {
        let wants = format!("etc/systemd/system/multi-user.target.wants/{unit}");
        assert!(image.entries.contains_key(wants.as_bytes()), "{unit}");
    }
    let unit = std::fs::read_to_string(folder().join("units/guestd.service")).expect("read");
    for line in ["PassEnvironment=HOLDFAST_BOOTSTRAP", "ExecStart=/usr/bin/guestd run"] {
        assert!(unit.lines().any(|found| found == line), "{line}");
    }
    for line in ["WatchdogSec=3min", "WatchdogSignal=SIGKILL", "Restart=always", "StartLimitIntervalSec=0"] {
        assert!(unit.lines().any(|found| found == line), "a controller that hangs is started again: {line}");
    }
    let after = unit.lines().find_map(|line| line.strip_prefix("After=")).expect("it waits for something");
    assert!(after.split_whitespace().any(|unit| unit == "network.target"), "{after}");
}

/// Packages do not change in a guest without the snapshot before, and no mount fails that a container cannot have.
#[test]
fn the_image_has_the_hook_of_apt_and_masks_what_fails_in_a_container() {
    let (recipe, _) = Recipe::read(&folder()).expect("the shipped recipe");
    let mut image = Image::default();
    overlay::put_units(&mut image, &folder(), &recipe).expect("put");
    overlay::put_files(&mut image, &folder(), &recipe).expect("put");
    for path in ["etc/apt/apt.conf.d/80holdfast", "etc/systemd/system/sys-kernel-debug.mount"] {
        assert!(image.entries.contains_key(path.as_bytes()), "{path}");
    }
    let hook = std::fs::read_to_string(folder().join("files/80holdfast")).expect("read");
    assert!(hook.contains("guestd apt-hook"), "{hook}");
}

/// A guest whose sources are a snapshot would never see an upgrade.
#[test]
fn the_image_has_the_sources_of_the_recipe_alone() {
    let (recipe, _) = Recipe::read(&folder()).expect("the shipped recipe");
    let mut image = Image::default();
    for path in [
        "etc/apt/sources.list",
        "etc/apt/sources.list.d/0000snapshot.sources",
        "etc/apt/apt.conf.d/99mmdebstrap",
    ] {
        image.put_text(
            path,
            0o644,
            "deb http://snapshot.debian.org/archive/debian/20261101T000000Z trixie main\n",
        );
    }
    overlay::put_sources(&mut image, &recipe);
    let files: Vec<_> =
        image.entries.iter().filter(|(_, entry)| matches!(entry.kind, Kind::File(_))).collect();
    let [(path, entry)] = files.as_slice() else { panic!("{:?}", image.entries.keys()) };
    assert_eq!(path.as_slice(), b"etc/apt/sources.list");
    let Kind::File(Content::Bytes(bytes)) = &entry.kind else { panic!("{entry:?}") };
    let text = String::from_utf8_lossy(bytes);
    assert!(text.contains("trixie-security") && !text.contains("snapshot"), "{text}");
}

/// Without that a guest gets no security upgrade before its next golden.
#[test]
fn security_upgrades_are_on_in_the_image_by_a_timer_of_ours_with_jitter() {
    let (recipe, _) = Recipe::read(&folder()).expect("the shipped recipe");
    let mut image = Image::default();
    overlay::put_units(&mut image, &folder(), &recipe).expect("put");
    let has = |path: &str| image.entries.contains_key(path.as_bytes());
    assert!(has("etc/systemd/system/timers.target.wants/holdfast-upgrade.timer"));
    assert!(has("usr/lib/systemd/system/holdfast-upgrade.service"));
    assert!(
        !has("etc/systemd/system/multi-user.target.wants/holdfast-upgrade.service"),
        "the timer starts it"
    );
    assert!(has("etc/systemd/system/apt-daily-upgrade.timer"), "masked: nothing upgrades beside it");
    let read = |name: &str| std::fs::read_to_string(folder().join("units").join(name)).expect("read");
    let timer = read("holdfast-upgrade.timer");
    assert!(timer.contains("OnCalendar=") && timer.contains("RandomizedDelaySec=10min"), "{timer}");
    let service = read("holdfast-upgrade.service");
    assert!(service.lines().any(|line| line == "ExecStart=/usr/bin/guestd upgrade --in-window"), "{service}");
}

/// The builder on a host reads what the agent's package installed there.
#[test]
fn the_agents_package_brings_every_unit_and_file_of_the_recipe() {
    let text = std::fs::read_to_string(folder().join("../agentd/Cargo.toml")).expect("read");
    for all in ["\"../golden/units/*\"", "\"../golden/files/*\""] {
        assert!(text.contains(all), "{all} is not packaged");
    }
}

#[test]
fn an_invalid_recipe_is_refused() {
    let text = std::fs::read_to_string(folder().join("recipe.toml")).expect("read");
    let refused = |from: &str, to: &str| Recipe::parse(&text.replace(from, to)).is_err();
    assert!(Recipe::parse(&text).is_ok());
    assert!(refused("packages =", "package ="), "an unknown field");
    assert!(refused("installed = \"etc/apt", "installed = \"../etc/apt"), "a file outside the image");
    assert!(refused("installed = \"etc/apt", "installed = \"/etc/apt"), "a path from the root");
    assert!(refused("recipe/v1", "recipe/v9"), "another schema");
    assert!(refused("\"guestd.service\"", "\"../guestd.service\""), "a path");
    assert!(refused("\"docker-cli\"", "\"docker-cli,x\""), "two packages in one");
    assert!(refused("\"docker-cli\"", "\"--hook\""), "an option");
    assert!(refused("\"trixie\"", "\"../trixie\""), "a path for a suite");
    assert!(refused("deb http://deb", "deb [trusted=yes] http://deb"), "an option of a source");
    assert!(refused("deb http://deb", "deb file:///srv"), "a source of one machine");
    assert!(refused("debian-security/AS_OF", "debian-security"), "a snapshot of no time");
}

#[test]
fn stripping_removes_only_listed_paths() {
    let mut image = Image::default();
    let gone = [
        "etc/hostname",
        "etc/passwd-",
        "etc/ssl/private/ssl-cert-snakeoil.key",
        "etc/ssh/ssh_host_rsa_key",
        "var/cache/debconf/config.dat-old",
        "var/cache/ldconfig/aux-cache",
        "var/lib/apt/lists/x",
        "var/lib/dpkg/status-old",
        "var/log/apt/history.log",
        "var/log/btmp",
    ];
    let stays = ["etc/passwd", "etc/ssh/sshd_config", "var/lib/dpkg/status", "var/cache/debconf/config.dat"];
    for path in gone.iter().chain(&stays) {
        image.put_text(path, 0o644, "x");
    }
    overlay::strip(&mut image);
    for path in gone {
        assert!(!image.entries.contains_key(path.as_bytes()), "{path}");
    }
    for path in stays {
        assert!(image.entries.contains_key(path.as_bytes()), "{path}");
    }
    assert!(image.entries.contains_key(Path::new("etc/machine-id").as_os_str().as_encoded_bytes()));
}
