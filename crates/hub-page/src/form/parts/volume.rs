//! The fields of a volume.

use super::{Field, field, number, text};
use crate::form::{Case, Group, Input, Names, Shape};

const KIND: &[Case] = &[
    Case { path: "hot", label: "hot: on fast storage, in every backup of the guest", shape: Shape::Word },
    Case {
        path: "bulk.backup_to",
        label: "bulk: on slow storage, in the backups that go to one target",
        shape: Shape::Content,
    },
    Case { path: "bulk.none", label: "bulk: on slow storage, not backed up", shape: Shape::Content },
];

const FIELDS: &[Field] = &[
    text("name", "Name"),
    text("mount", "Where the guest sees it"),
    number("size_gib", "Size in GiB"),
    field("storage", "Storage", Input::Pick(Names::Volumes)),
    field("kind", "Kind", Input::Variant(KIND)),
    field("kind.bulk.backup_to", "Backed up to, where it is bulk", Input::Suggest(Names::Backups)),
    text("kind.bulk.none", "Why it needs no backup, where it has none"),
];

pub(super) const FORM: &[Group] = &[Group { legend: "Volume", fields: FIELDS }];
