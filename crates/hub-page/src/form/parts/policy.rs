//! The fields of a backup policy.

use super::{Field, field, number, text};
use crate::form::{Case, Group, Input, Names, Shape};

const RETENTION: &[Case] = &[
    Case { path: "keep", label: "as below", shape: Shape::Content },
    Case { path: "keep_all", label: "all", shape: Shape::Word },
];

const CONSISTENCY: Input = Input::Choice(&[
    ("application", "as its programs leave it when they are stopped"),
    ("crash", "as after a power cut"),
]);

/// Schedule and retention of one tier, below its path.
macro_rules! tier {
    ($path:literal, [$($first:expr),*], [$($last:expr),*]) => {
        &[
            $($first,)*
            field(concat!($path, ".schedule.at"), "At", Input::Lines),
            text(concat!($path, ".schedule.zone"), "Time zone"),
            number(concat!($path, ".schedule.jitter_min"), "Put off by up to, in minutes"),
            number(concat!($path, ".schedule.window_min"), "Missed when not begun after, in minutes"),
            field(concat!($path, ".retention"), "Which ones are kept", Input::Variant(RETENTION)),
            number(concat!($path, ".retention.keep.last"), "Keep the last"),
            number(concat!($path, ".retention.keep.hourly"), "Keep hourly"),
            number(concat!($path, ".retention.keep.daily"), "Keep daily"),
            number(concat!($path, ".retention.keep.weekly"), "Keep weekly"),
            number(concat!($path, ".retention.keep.monthly"), "Keep monthly"),
            number(concat!($path, ".retention.keep.yearly"), "Keep yearly"),
            $($last,)*
        ]
    };
}

const NAME: &[Field] = &[text("name", "Name")];

const SNAPSHOT: &[Field] =
    tier!("tiers.snapshot", [field("tiers.snapshot", "It has snapshots", Input::Presence)], []);

const LOCAL: &[Field] = tier!(
    "tiers.local",
    [
        field("tiers.local", "It has local backups", Input::Presence),
        field("tiers.local.target", "Target of local backups", Input::Suggest(Names::Backups)),
        field("tiers.local.consistency", "What they hold", CONSISTENCY)
    ],
    [number("tiers.local.restore_test_days", "Restore test at least every so many days")]
);

const OFF_SITE: &[Field] = tier!(
    "tiers.off_site.backup",
    [
        field("tiers.off_site", "It has off-site backups", Input::Presence),
        field("tiers.off_site.backup.target", "Target of off-site backups", Input::Suggest(Names::Backups)),
        text("tiers.off_site.key", "Key of the backups"),
        field("tiers.off_site.backup.consistency", "What they hold", CONSISTENCY)
    ],
    [
        number("tiers.off_site.backup.restore_test_days", "Restore test at least every so many days"),
        number("tiers.off_site.verify_days", "Verified by the server at least every so many days")
    ]
);

pub(super) const FORM: &[Group] = &[
    Group { legend: "Policy", fields: NAME },
    Group { legend: "Snapshots", fields: SNAPSHOT },
    Group { legend: "Local backups", fields: LOCAL },
    Group { legend: "Off-site backups", fields: OFF_SITE },
];
