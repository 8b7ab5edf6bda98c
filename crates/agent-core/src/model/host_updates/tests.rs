//! Tests of readings of pending upgrades, hostile ones among them.
//!
//! The lines of apt in `fixtures/debian-12.txt` were recorded with apt 2.6.1 of Debian 12; times and kernels are ours. No
//! Proxmox VE was recorded, so the label of its sources is written by us.

use super::*;

const RECORDED: &str = include_str!("fixtures/debian-12.txt");

fn now() -> Timestamp {
    Timestamp::from_second(1_800_003_600).unwrap()
}

fn section(text: &str) -> UpdatesSection {
    read(text.as_bytes(), now()).unwrap()
}

fn with(lines: &str) -> UpdatesSection {
    section(&format!("holdfast-updates 1 1800000000\n{lines}"))
}

#[test]
fn a_recorded_simulation_is_counted_with_its_security_upgrades_first() {
    let section = section(RECORDED);
    let pending = section.pending.unwrap();
    assert_eq!((pending.debian, pending.proxmox, pending.other, pending.removals), (24, 0, 0, 0));
    assert_eq!((pending.security, pending.total()), (13, 24));
    assert_eq!(pending.packages.len(), 24);
    let kinds: Vec<_> = pending.packages.iter().map(|package| package.kind).collect();
    assert!(kinds.is_sorted(), "{kinds:?}");
    let first = &pending.packages[0];
    let fields = (first.name.as_str(), first.installed.as_ref().unwrap().as_str(), first.offered.as_str());
    assert_eq!(fields, ("libperl5.36", "5.36.0-7+deb12u2", "5.36.0-7+deb12u4"));
    assert_eq!((section.failure, section.restart), (None, Vec::new()));
    let minutes = |at: Option<Timestamp>| now().duration_since(at.unwrap()).as_mins();
    assert_eq!((minutes(section.lists_changed_at), minutes(section.lists_tried_at)), (120, 90));
}

#[test]
fn who_offers_a_package_is_read_from_the_label_of_its_source() {
    use PackageOrigin::{Debian, Other, Proxmox};
    for (sources, origin, kind) in [
        ("Debian:12.14/oldstable", Debian, UpgradeKind::Plain),
        ("Debian:12.14/oldstable, Debian-Security:12/oldstable-security", Debian, UpgradeKind::Security),
        ("X Y:s", Other, UpgradeKind::Plain),
        ("Proxmox Debian Repository:trixie", Proxmox, UpgradeKind::Plain),
        ("Not-Debian-Security:12/oldstable-security", Other, UpgradeKind::Plain),
        ("", Other, UpgradeKind::Plain),
    ] {
        let pending = with(&format!("Inst aaa [1] (2 {sources} [amd64]) []\nstatus 0\n")).pending.unwrap();
        let package = &pending.packages[0];
        assert_eq!((package.origin, package.kind), (origin, kind), "{sources}");
        assert_eq!((package.name.as_str(), package.offered.as_str()), ("aaa", "2"));
    }
}

#[test]
fn a_new_package_has_no_installed_version_and_a_removal_is_counted() {
    let pending = with("Inst linux-image-6.1.0-45-amd64 (6.1.1-1 Debian:12.14/oldstable [amd64])\nRemv tk-dev [8.6.13]\nstatus 0\n")
        .pending
        .unwrap();
    assert_eq!((pending.packages[0].installed.as_ref(), pending.total(), pending.removals), (None, 1, 1));
}

/// A line that cannot be read is a package all the same.
#[test]
fn a_line_of_another_form_counts_and_is_not_listed() {
    let pending = with("Inst what\nInst is (this\nInst\nstatus 0\n").pending.unwrap();
    assert_eq!((pending.total(), pending.packages.len()), (3, 0));
}

#[test]
fn nothing_is_known_of_upgrades_where_apt_did_not_succeed() {
    let says = |lines: &str| {
        let section = with(lines);
        assert_eq!(section.pending, None, "{lines}");
        section.failure.unwrap().as_str().to_owned()
    };
    let inst = "Inst sed [1] (2 Debian:12/stable [amd64])\n";
    assert_eq!(says(inst), "the reading was cut off");
    assert_eq!(says(&format!("{inst}status 100\n")), "apt-get ended with exit status 100");
    assert_eq!(says("status 124\n"), "apt-get did not end in time");
    assert_eq!(
        says("E: The value 'x'\u{1b}[31m is invalid\nE: more\nstatus 100\n"),
        "The value 'x' [31m is invalid"
    );
    assert_eq!(says("status 0\nstatus 137\n"), "apt-get did not end in time", "the last one counts");
}

#[test]
fn a_restart_is_due_for_a_newer_kernel_of_the_same_flavour() {
    let of = |running: &str, installed: &[&str]| {
        let lines: String = installed.iter().map(|kernel| format!("installed-kernel {kernel}\n")).collect();
        let section = with(&format!("kernel {running}\n{lines}status 0\n"));
        (section.newest_kernel.map(String::from).unwrap_or_default(), !section.restart.is_empty())
    };
    let newest = |text: &str, due: bool| (text.to_owned(), due);
    assert_eq!(
        of("6.8.12-4-pve", &["6.8.12-4-pve", "6.8.12-10-pve", "6.8.12-9-pve"]),
        newest("6.8.12-10-pve", true)
    );
    assert_eq!(of("6.8.12-10-pve", &["6.8.12-9-pve", "6.8.12-10-pve"]), newest("6.8.12-10-pve", false));
    assert_eq!(of("6.8.12-4-pve", &["6.12.41+deb13-amd64", "6.8.12-4-pve"]), newest("6.8.12-4-pve", false));
    assert_eq!(of("6.12.38+deb13-amd64", &["6.12.41+deb13-amd64"]), newest("6.12.41+deb13-amd64", true));
    // One that was compiled by hand, and none at all.
    assert_eq!(of("6.9.1", &["6.9.2"]), newest("6.9.2", true));
    assert_eq!(of("6.18.44-vm-x1", &[]), newest("", false));
}

#[test]
fn an_announced_restart_names_its_packages() {
    let section =
        with("restart-announced\nrestart-package linux-image-amd64\nrestart-package \u{7}\nstatus 0\n");
    assert_eq!(section.restart, [RestartReason::Announced]);
    let names: Vec<_> = section.restart_packages.iter().map(PackageText::as_str).collect();
    assert_eq!(names, ["linux-image-amd64"]);
}

#[test]
fn a_time_in_the_future_is_now() {
    let section =
        section("holdfast-updates 1 9800000000\nlists-tried 9800000000\nlists-changed x\nstatus 0\n");
    assert_eq!(
        (section.read_at, section.lists_tried_at, section.lists_changed_at),
        (now(), Some(now()), None)
    );
}

/// What root's service bounds is bounded here again.
#[test]
fn ten_megabytes_of_anything_are_a_bounded_section() {
    let header = "holdfast-updates 1 1800000000\n";
    let package = "Inst \u{1b}]0;x\u{7}\u{202e}aaa [1] (2 Debian-Security:12/oldstable-security [amd64])\n";
    let long = format!(
        "Inst {} [1] (2 X:s [all])\nrestart-package {}\n",
        "n".repeat(4_000_000),
        "p".repeat(1_000_000)
    );
    let many = format!(
        "{}{}",
        package.repeat(60_000),
        "installed-kernel 6.8.12-4-pve\nrestart-package q\n".repeat(20_000)
    );
    let text = format!("{header}kernel 6.8.12-4-pve\n{long}{many}status 0\n");
    assert!(text.len() > 10_000_000, "{}", text.len());
    let section = section(&text);
    let pending = section.pending.clone().unwrap();
    assert_eq!((pending.total(), pending.security, pending.packages.len()), (60_001, 60_000, PACKAGES_MAX));
    assert_eq!(section.restart_packages.len(), RESTART_PACKAGES_MAX);
    let json = serde_json::to_string(&section).unwrap();
    assert!(json.len() < 64 * 1024, "{}", json.len());
    assert!(!json.contains("\\u001b") && !json.contains("\\u0007"));
    // Bytes that are no text, and no form at all.
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend([0xff, 0xfe, 0x00, b'\n']);
    assert_eq!(read(&bytes, now()).unwrap().pending, None);
    for text in ["", "{}", "holdfast-updates 2 1800000000\n", "holdfast-updates 1 x\n"] {
        assert_eq!(read(text.as_bytes(), now()), Err(UpdatesFileError::Header), "{text:?}");
    }
}

/// Changed copies of the recorded reading: whatever they are, what is reported is bounded and adds up.
#[test]
fn a_changed_reading_still_adds_up() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |bound: usize| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        usize::try_from(state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).unwrap() % bound
    };
    let words = [
        "Inst ",
        "(",
        ")",
        "[",
        "]",
        "\n",
        " ",
        ":",
        "Debian-Security:",
        "status 0\n",
        "E: ",
        "\u{1b}",
        "kernel ",
    ];
    let (mut known, mut unknown) = (0, 0);
    for _ in 0..20_000 {
        let mut bytes = RECORDED.as_bytes().to_vec();
        for _ in 0..=below(6) {
            let place = below(bytes.len());
            match below(3) {
                0 => bytes[place] = u8::try_from(below(256)).unwrap(),
                1 => drop(bytes.splice(place..place, words[below(words.len())].bytes())),
                _ => bytes.truncate(place.max(1)),
            }
        }
        let Ok(section) = read(&bytes, now()) else { continue };
        assert!(section.read_at <= now() && section.restart_packages.len() <= RESTART_PACKAGES_MAX);
        match &section.pending {
            None => {
                assert!(section.failure.is_some());
                unknown += 1;
            }
            Some(pending) => {
                let lines = String::from_utf8_lossy(&bytes)
                    .split('\n')
                    .filter(|line| line.starts_with("Inst"))
                    .count();
                assert!(
                    pending.total() as usize <= lines && pending.packages.len() <= pending.total() as usize
                );
                assert!(pending.security <= pending.total() && section.failure.is_none());
                known += 1;
            }
        }
        // It is read back as it is written: nothing in it breaks a rule of the wire.
        let text = serde_json::to_string(&section).unwrap();
        assert_eq!(serde_json::from_str::<UpdatesSection>(&text).unwrap(), section);
    }
    assert!(known > 100 && unknown > 100, "{known} and {unknown}");
}
