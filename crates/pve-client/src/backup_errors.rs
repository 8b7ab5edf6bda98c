//! Why a backup failed, by the log of its task.
//!
//! Input: the log's lines. Output: one sentence, without the command that failed, and whether space was lacking. The
//! task's own exit status says only `job errors`. Lines that the archiver writes may hold names from inside the guest:
//! they are shortened, and affect only the message and the code.

use holdfast_protocol::code::ErrorCode;

/// Messages of a storage, here or on the server, that is out of space.
const NO_ROOM: [&str; 3] = ["No space left on device", "Disk quota exceeded", "ENOSPC"];

/// Characters of a line that are kept.
const LINE_MAX: usize = 300;

/// The findings in the log of a backup so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackupLog {
    /// A line about room: nothing explains more.
    no_room: Option<String>,
    /// The last error of the program that made the archive.
    tool: Option<String>,
    /// How the job ended for the guest.
    job: Option<String>,
}

impl BackupLog {
    /// One more line.
    pub fn hear(&mut self, line: &str) {
        let said = line.strip_prefix("INFO: ").unwrap_or(line).trim();
        if let Some(rest) = line.strip_prefix("ERROR: Backup of VM ") {
            self.job = rest.split_once(" failed - ").map(|(_, why)| without_command(why));
        } else if NO_ROOM.iter().any(|words| said.contains(words)) {
            self.no_room.get_or_insert_with(|| short(said));
        } else if let Some(why) = said.strip_prefix("Error: ") {
            self.tool = Some(short(why));
        }
    }

    /// Why it failed, with the code for that; none, where the log gives no reason.
    #[must_use]
    pub fn why(&self) -> Option<(ErrorCode, String)> {
        let cause = self.no_room.as_ref().or(self.tool.as_ref());
        let text = match (cause, &self.job) {
            (Some(cause), Some(job)) => format!("{cause} ({job})"),
            (Some(text), None) | (None, Some(text)) => text.clone(),
            (None, None) => return None,
        };
        let code = if self.no_room.is_some() { ErrorCode::StorageFull } else { ErrorCode::Unavailable };
        Some((code, text))
    }
}

/// `command 'A LONG LINE' failed: exit code 255` as `the command ended with exit code 255`.
fn without_command(why: &str) -> String {
    match why.strip_prefix("command '").and_then(|rest| rest.rsplit_once("' failed: ")) {
        Some((_, how)) => format!("its command ended: {}", short(how)),
        None => short(why),
    }
}

fn short(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(LINE_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(lines: &[&str]) -> Option<(ErrorCode, String)> {
        let mut log = BackupLog::default();
        lines.iter().for_each(|line| log.hear(line));
        log.why()
    }

    /// The ends of logs as genuine nodes wrote them; the command lines are shortened.
    #[test]
    fn the_cause_is_taken_from_the_log_and_not_from_its_end() {
        let client = "ERROR: Backup of VM 320 failed - command 'lxc-usernsexec -- /usr/bin/proxmox-backup-client backup \
                      '--crypt-mode=encrypt'' failed: exit code 255";
        let end = [
            "INFO: Failed at 2026-11-21 04:54:56",
            "INFO: Backup job finished with errors",
            "TASK ERROR: job errors",
        ];
        let rows: &[(&[&str], ErrorCode, &str)] = &[
            (
                &[
                    "INFO: catalog upload error - connection closed because of a broken pipe",
                    "INFO: Error: pipelined request failed: connection closed because of a broken pipe",
                    client,
                ],
                ErrorCode::Unavailable,
                "pipelined request failed: connection closed because of a broken pipe (its command ended: exit code 255)",
            ),
            (
                &[
                    "INFO: Error: pipelined request failed: inserting chunk on store 'tiny' failed for 00ab - mkstemp \
                     \"/tiny/.chunks/00ab.tmp_XXXXXX\" failed: ENOSPC: No space left on device",
                    "INFO: Error: upload failed",
                    client,
                ],
                ErrorCode::StorageFull,
                "inserting chunk on store 'tiny' failed for 00ab",
            ),
            (
                &["INFO: Error: stream closed because of a broken pipe", client],
                ErrorCode::Unavailable,
                "stream closed because of a broken pipe (its command ended: exit code 255)",
            ),
            (
                &["ERROR: Backup of VM 150 failed - interrupted by signal"],
                ErrorCode::Unavailable,
                "interrupted by signal",
            ),
            (
                &["ERROR: Backup of VM 141 failed - CT is locked (backup)"],
                ErrorCode::Unavailable,
                "CT is locked (backup)",
            ),
            (
                &[
                    "ERROR: Backup of VM 320 failed - command 'btrfs subvolume snapshot -r -- /a /a@vzdump' failed: ERROR: Could \
                   not create subvolume: Read-only file system",
                ],
                ErrorCode::Unavailable,
                "its command ended: ERROR: Could not create subvolume: Read-only file system",
            ),
        ];
        for (lines, code, words) in rows {
            let (found, text) = why(&[lines, &end[..]].concat()).unwrap();
            assert_eq!(found, *code, "{text}");
            assert!(text.contains(words) && !text.contains("lxc-usernsexec"), "{text}");
        }
        let unheard =
            ["ERROR: could not notify via target `mail-to-root`: no recipients", "TASK ERROR: job errors"];
        assert_eq!(why(&unheard), None);
    }
}
