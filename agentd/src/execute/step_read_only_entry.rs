//! The storage entry that a restore test reads from.
//!
//! What goes out: the archive's name as the restore call has it; in every record it keeps the name that it was taken under.
//! A twin is held to its original each time, since a test through one that shows another namespace or lost its key would say
//! something of a backup that it never saw. What is wrong with a twin is the host's fault, never the backup's.

use holdfast_protocol::code::ErrorCode;

use super::archive_check::archive;
use super::context::Context;
use super::trouble::StepError;
use crate::operation::RestoreTest;
use crate::plan::read_only_entry;
use crate::port::pve::VolumeId;
use crate::port::pve::restore_errors::speaks_of_key;

/// The archive by the name under which it is read.
pub(super) async fn source(context: &Context<'_>, test: &RestoreTest) -> Result<VolumeId, StepError> {
    if let Some((of, by)) = test.place.counterpart_of(&test.backup.archive) {
        let wrong = read_only_entry::wrong(of, by, &context.ports.pve.storage_entries().await?);
        if !wrong.is_empty() {
            let text = format!(
                "the backups of {of} are tried through {by}, and {}: the backup is not tried; `agentd doctor` says more",
                wrong.join("; ")
            );
            return Err(StepError::give_up(ErrorCode::Unavailable, text));
        }
    }
    archive(&test.place.read_as(&test.backup.archive))
}

/// What a restore that found no key, or the wrong one, says of the backup: nothing, where a twin read it. Its own entry
/// opened it right before, and the twin's key is a file that nobody but root sees.
pub(super) fn without_key(test: &RestoreTest, said: &str) -> Option<String> {
    let (of, by) = test.place.counterpart_of(&test.backup.archive)?;
    speaks_of_key(said).then(|| {
        format!(
            "the key of {of} opens it, and that of {by} is gone or another, so this says nothing of the archive: root gives \
             {by} the same key file"
        )
    })
}
