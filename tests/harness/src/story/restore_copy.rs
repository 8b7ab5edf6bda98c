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
            // After the copy is taken back the agent may not see what is left.
            unclear: Status::Parked,
            ..Story::undone("restore_copy, not set aside", Ground::GuestRuns, copy_of)
        },
    ]
}
