//! The storage entry that a restore test reads from.
//!
//! Out: the archive's name as the restore call needs it; in every record it keeps its original name. A twin is compared
//! with its original each time. A test through a twin with another namespace or a lost key would judge a backup that it
//! never read. What is wrong with a twin is the host's fault, never the backup's.

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

/// What a restore that found no key, or the wrong one, says about the backup: nothing, when a twin entry read it. The
/// main entry opened the backup just before, and only root can read the file of the twin's key.
pub(super) fn without_key(test: &RestoreTest, said: &str) -> Option<String> {
    let (of, by) = test.place.counterpart_of(&test.backup.archive)?;
    speaks_of_key(said).then(|| {
        format!(
            "the key of {of} opens it, and that of {by} is gone or another, so this says nothing of the archive: root gives \
             {by} the same key file"
        )
    })
}
