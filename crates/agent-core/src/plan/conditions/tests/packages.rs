//! Tests of conditions of pending upgrades and due restarts.

use holdfast_protocol::report::UpdatesSection;

use super::*;
use crate::model::hardware_health::RawHardware;
use crate::model::host_updates;

/// Lists that were fetched an hour before the reading.
const LISTS: &str = "lists-changed 1799996400\nlists-tried 1799996400\n";

pub(super) fn reading(lines: &str) -> Option<UpdatesSection> {
    host_updates::read(format!("holdfast-updates 1 1800000000\n{lines}").as_bytes(), at(0)).ok()
}

pub(super) fn nothing_waits() -> Option<UpdatesSection> {
    reading(&format!("kernel 6.8.12-4-pve\n{LISTS}status 0\n"))
}

fn host(lines: &str) -> Box7 {
    let mut host = Box7::well();
    host.hardware.updates = reading(lines);
    host
}

fn waiting(source: &str) -> String {
    format!("{LISTS}Inst sed [1] (2 {source} [amd64])\nstatus 0\n")
}

pub(super) fn faulty() -> Vec<(&'static str, Box7)> {
    let kernels = "kernel 6.8.12-4-pve\ninstalled-kernel 6.8.12-9-pve\n";
    vec![
        ("HOST_UPDATES_PENDING", host(&waiting("Debian:12/stable"))),
        ("HOST_SECURITY_UPDATES HOST_UPDATES_PENDING", host(&waiting("Debian-Security:12/stable-security"))),
        ("HOST_REBOOT_REQUIRED", host(&format!("{kernels}{LISTS}status 0\n"))),
        ("HOST_REBOOT_REQUIRED", host(&format!("restart-announced\n{LISTS}status 0\n"))),
        ("PACKAGE_LISTS_OLD", host("status 0\n")),
        ("PACKAGE_LISTS_OLD", host(&format!("{LISTS}status 100\n"))),
        // Eight days without a try, and four weeks of tries that brought nothing.
        ("PACKAGE_LISTS_OLD", host("lists-changed 1799308800\nlists-tried 1799308800\nstatus 0\n")),
        ("PACKAGE_LISTS_OLD", host("lists-changed 1797580800\nlists-tried 1799996400\nstatus 0\n")),
    ]
}

#[test]
fn messages_name_what_waits() {
    let says = |lines: &str| -> Vec<String> {
        host(lines).found().into_iter().map(|finding| finding.message).collect()
    };
    let many = "Inst sed [1] (2 Debian-Security:12/s [amd64])\n".repeat(5);
    assert_eq!(
        says(&format!("{LISTS}{many}Inst pve-manager [1] (2 Proxmox:s [all])\nRemv x [1]\nstatus 0\n")),
        [
            "5 security upgrades wait: sed, sed, sed, …",
            "6 packages wait for an upgrade, 1 of them from Proxmox; 1 packages would be removed"
        ]
    );
    let kernels =
        "kernel 6.8.12-4-pve\ninstalled-kernel 6.8.12-9-pve\nrestart-announced\nrestart-package a\n";
    assert_eq!(
        says(&format!("{kernels}{LISTS}status 0\n")),
        ["kernel 6.8.12-4-pve runs and 6.8.12-9-pve is installed; upgraded packages ask for a restart (a)"]
    );
}

#[test]
fn lists_of_the_last_days_raise_nothing() {
    for lines in [
        "lists-changed 1799481600\nlists-tried 1799481600\nstatus 0\n",
        "lists-changed 1798272000\nlists-tried 1799996400\nstatus 0\n",
        "lists-changed 1799996400\nstatus 0\n",
    ] {
        assert_eq!(host(lines).codes(), [""; 0], "{lines}");
    }
    let unread = Box7 { hardware: HardwareView::default(), ..Box7::well() };
    assert_eq!(unread.codes(), [""; 0]);
}

/// What is not known ends no condition.
#[test]
fn what_was_not_read_stays_as_it_was() {
    let before = host(&waiting("Debian-Security:12/stable-security")).after(&[]);
    let names_after = |next: Box7| names(&next.after(&before));
    assert_eq!(names_after(Box7::well()), [""; 0]);
    let both = ["HOST_SECURITY_UPDATES", "HOST_UPDATES_PENDING"];
    let mut unread = Box7::well();
    unread.hardware.updates = None;
    assert_eq!(names_after(unread), both);
    assert_eq!(names_after(Box7 { wall: at(4 * 3_600), ..Box7::well() }), both, "the service stopped");
    let failed = names_after(host(&format!("{LISTS}status 100\n")));
    assert_eq!(failed, ["HOST_SECURITY_UPDATES", "HOST_UPDATES_PENDING", "PACKAGE_LISTS_OLD"]);
}

#[test]
fn a_reading_that_is_gone_is_kept_with_its_time() {
    let first = HardwareView::default()
        .next(RawHardware { updates: nothing_waits(), ..RawHardware::default() }, at(0));
    let later = first.next(RawHardware::default(), at(600));
    assert_eq!(later.updates, first.updates);
    assert!(later.updates.is_some());
}
