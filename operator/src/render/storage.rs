//! Table of storage targets, those that need attention first.

use holdfast_protocol::id::HostName;
use holdfast_protocol::storage::report::{OffSiteReport, TargetReport, TargetStatus};
use jiff::Timestamp;

use super::clean;
use super::table::{Field, NOTHING, Tone, plain, table};
use super::time::ago;
use crate::screen::Style;

const HEADER: [&str; 8] = ["HOST", "TARGET", "STATUS", "SINCE", "ROLE", "CLASS", "WHAT", "LABEL"];

/// All of them.
pub fn targets(targets: &[(&HostName, &TargetReport)], now: Timestamp, style: Style) -> String {
    if targets.is_empty() {
        return "No storage target is in the documents of these hosts, and none was ever approved.\n"
            .to_owned();
    }
    let mut sorted = targets.to_vec();
    sorted.sort_by_key(|(host, target)| (urgency(target.status), *host, &target.name));
    let rows = sorted.iter().map(|(host, target)| {
        let class = match target.iops {
            Some(iops) => format!("{} ({iops} IOPS)", target.class),
            None => target.class.to_string(),
        };
        vec![
            plain(host),
            plain(&target.name),
            status(target.status),
            plain(ago(target.since, now)),
            plain(target.role),
            plain(class),
            plain(&target.backend),
            plain(target.label.as_deref().unwrap_or(NOTHING)),
        ]
    });
    let mut text = table(&HEADER, rows, style);
    for (host, target) in sorted.iter().filter(|(_, target)| !target.reason.is_empty()) {
        text.push_str(&format!("\n{host}, {}: {}\n", target.name, clean(&target.reason)));
    }
    for (host, target) in &sorted {
        for difference in &target.entry {
            text.push_str(&format!("\n{host}, {} in Proxmox: {}\n", target.name, clean(difference)));
        }
    }
    for (host, target) in &sorted {
        for line in target.off_site.iter().flat_map(OffSiteReport::lines) {
            text.push_str(&format!("\n{host}, {}: {}\n", target.name, clean(&line)));
        }
    }
    text
}

/// Small is urgent.
const fn urgency(status: TargetStatus) -> u8 {
    match status {
        TargetStatus::Wrong | TargetStatus::Dropped | TargetStatus::Refused => 0,
        TargetStatus::Absent | TargetStatus::Unmarked => 1,
        TargetStatus::Held => 2,
        TargetStatus::Mounted | TargetStatus::ByProxmox => 3,
        TargetStatus::Detached => 4,
    }
}

fn status(status: TargetStatus) -> Field {
    let tone = match urgency(status) {
        0 => Tone::Bad,
        1 | 2 => Tone::Look,
        3 => Tone::Good,
        _ => Tone::Plain,
    };
    (status.as_str().to_owned(), tone)
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::storage::{StorageClass, StorageRole};

    use super::*;
    use crate::screen::Colour;

    fn target(name: &str, status: TargetStatus, reason: &str) -> TargetReport {
        TargetReport {
            name: name.parse().unwrap(),
            backend: "disk 0b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a6b".to_owned(),
            role: StorageRole::LocalBackup,
            class: StorageClass::Slow,
            label: Some("the blue one".to_owned()),
            status,
            since: "2026-11-21T12:00:00Z".parse().unwrap(),
            reason: reason.to_owned(),
            entry: Vec::new(),
            device: None,
            iops: Some(92),
            off_site: None,
        }
    }

    #[test]
    fn dropped_targets_come_first_without_control_characters() {
        let host: HostName = "box7".parse().unwrap();
        let (well, gone) = (
            target("usb1", TargetStatus::Mounted, ""),
            target("usb2", TargetStatus::Dropped, "its device went\u{1b}[2J away"),
        );
        let now = "2026-11-21T12:05:00Z".parse().unwrap();
        let style = Style { colour: Colour::Off, columns: None };
        let text = targets(&[(&host, &well), (&host, &gone)], now, style);
        let (first, second) = (text.find("usb2").unwrap(), text.find("usb1").unwrap());
        assert!(first < second, "{text}");
        assert!(text.contains("slow (92 IOPS)") && text.contains("box7, usb2: its device went"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert!(targets(&[], now, style).contains("none was ever approved"));
    }
}
