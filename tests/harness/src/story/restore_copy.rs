//! Stories of restored copies.

use agentd::operation::log::Status;

use super::Story;
use crate::ground::Ground;
use crate::world_template::copy_of;

pub(super) fn stories() -> Vec<Story> {
    vec![
        Story::done("restore_copy", Ground::GuestRuns, copy_of),
        Story {
            refused: Some("tag_copy"),
            // The copy that is taken back takes with it our right to see what it left.
            unclear: Status::Parked,
            ..Story::undone("restore_copy, not set aside", Ground::GuestRuns, copy_of)
        },
    ]
}
