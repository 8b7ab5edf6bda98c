//! The cause of a failed restore, from Proxmox's log.
//!
//! Input: the message of a refused attempt to read an archive, or the log and the exit status of a restore. Output: one
//! of two causes. The messages below were recorded, or come from the source of Proxmox's storage layer. Any other
//! message proves nothing about the archive: it counts against the host. Deliberately absent: what follows from it for
//! a backup (`operation/restore_test/blame`).

/// Whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Culprit {
    /// The archive cannot be read, or not with the present key.
    Archive,
    /// The host, its storages, our rights; or an unknown cause.
    Elsewhere,
}

/// The present key does not open the archive on the backup server, or there is no key.
const KEY: [&str; 3] = ["wrong key - ", "missing key - manifest", "but no encryption key file found"];

/// Resources that the node lacked while it unpacked. They decide the cause, whatever else failed then.
const LACKS: [&str; 5] = [
    "No space left on device",
    "Disk quota exceeded",
    "Read-only file system",
    "Cannot allocate memory",
    ": Cannot write: ",
];

/// The backup server's client cannot make sense of the data that it got.
const UNREADABLE: &str = "Error: error extracting archive - ";

/// Where a backup server keeps data, and its message about a chunk that it renamed when it found it damaged: under the
/// new name it is not read any more.
const CHUNK: (&str, &str) = ("/.chunks/", "No such file or directory (os error 2)");

/// How log lines of the unpacking tools begin. The decompressor reports the fault of its input, and `tar` then ends
/// because of it.
const TOOLS: [&str; 3] = ["/*stdin*\\ : ", "tar: ", "zstd: "];

/// What else `tar` says, and its last line.
const CHATTER: [&str; 3] = ["Removing leading", "Exiting with failure status", "Error is not recoverable"];

/// The longest command line that is shown to a person.
const COMMAND_SHOWN: usize = 60;

/// The exit status of a task with its command line cut short: the program and its purpose are enough, and the fault is
/// reported elsewhere.
#[must_use]
pub fn shortened(end: &str) -> String {
    let (begins, ends) = ("command '", "' failed: exit code");
    let command =
        end.find(begins).map(|at| at + begins.len()).and_then(|from| Some((from, end.rfind(ends)?)));
    match command.and_then(|(from, to)| Some((end.get(..from)?, end.get(from..to)?, end.get(to..)?))) {
        Some((before, command, after)) if command.chars().count() > COMMAND_SHOWN => {
            let kept: String = command.chars().take(COMMAND_SHOWN).collect();
            format!("{before}{kept}…{after}")
        }
        _ => end.to_owned(),
    }
}

/// It got no data: the cause is the server or the connection to it.
const CUT_OFF: [&str; 6] =
    ["connection", "connect error", "timed out", "authentication", "permission", "broken pipe"];

/// Whether a refused attempt to read an archive says that the archive is the cause.
#[must_use]
pub fn is_unreadable(reason: &str) -> bool {
    has_any(reason, &KEY)
        // Its beginning cannot be read as an archive, or holds no configuration of a guest.
        || reason.contains("archive contains no configuration file")
        || (reason.contains("command 'tar -xpOf ") && reason.contains("' failed: exit code"))
}

/// Whether the message says that the present key does not open the archive, or that there is no key.
#[must_use]
pub fn speaks_of_key(said: &str) -> bool {
    has_any(said, &KEY)
}

fn has_any(text: &str, parts: &[&str]) -> bool {
    parts.iter().any(|part| text.contains(part))
}

/// What the log of a restore has shown so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoreLog {
    lacked: Option<String>,
    unreadable: Option<String>,
    tool: Option<String>,
}

impl RestoreLog {
    /// Takes one more line. The first relevant one counts.
    pub fn hear(&mut self, line: &str) {
        let place = if has_any(line, &LACKS) {
            &mut self.lacked
        } else if has_any(line, &KEY)
            || (line.contains(CHUNK.0) && line.contains(CHUNK.1))
            || (line.contains(UNREADABLE) && !has_any(line, &CUT_OFF))
        {
            &mut self.unreadable
        } else if TOOLS.iter().any(|tool| line.trim_start().starts_with(tool)) && !has_any(line, &CHATTER) {
            &mut self.tool
        } else {
            return;
        };
        place.get_or_insert_with(|| line.trim().to_owned());
    }

    /// The line that gives the reason, where the exit status of the task does not.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        self.lacked.as_deref().or(self.unreadable.as_deref()).or(self.tool.as_deref())
    }

    /// The cause, by all lines and the exit status.
    #[must_use]
    pub fn culprit(&self, end: &str) -> Culprit {
        // `tar` ends with this status for every failure; what the node lacked is in its log lines.
        let unpacked_in_part = end.contains("tar xpf - ") && end.ends_with("failed: exit code 2");
        match &self.lacked {
            Some(_) => Culprit::Elsewhere,
            None if self.unreadable.is_some() || unpacked_in_part || is_unreadable(end) => Culprit::Archive,
            None => Culprit::Elsewhere,
        }
    }
}

#[cfg(test)]
mod tests {
    use Culprit::{Archive, Elsewhere};

    use super::*;

    const TAR: &str = "unable to restore CT 154 - command 'lxc-usernsexec -m u:0:100000:65536 -m g:0:100000:65536 -- tar xpf - --zstd --totals --one-file-system -p --sparse --numeric-owner --acls --xattrs '--xattrs-include=user.*' '--xattrs-include=security.capability' '--warning=no-file-ignored' '--warning=no-xattr-write' -C /var/lib/lxc/154/rootfs --skip-old-files --anchored --exclude './dev/*'' failed: exit code 2";
    const CLIENT: &str =
        "unable to restore CT 300 - command '/usr/bin/proxmox-backup-client restore' failed: exit code 255";

    /// A byte was flipped in an archive: one line of the log reports it, and the exit status is the whole command line.
    #[test]
    fn the_cause_is_reported_and_the_command_line_is_not() {
        let mut reported = RestoreLog::default();
        for line in [
            "tar: Removing leading `/' from member names",
            "/*stdin*\\ : Decoding error (36) : Restored data doesn't match checksum ",
            "tar: Unexpected EOF in archive",
            "tar: Error is not recoverable: exiting now",
        ] {
            reported.hear(line);
        }
        assert_eq!(
            reported.why(),
            Some("/*stdin*\\ : Decoding error (36) : Restored data doesn't match checksum")
        );
        assert_eq!(reported.culprit(TAR), Archive);
        assert_eq!(
            shortened(TAR),
            "unable to restore CT 154 - command 'lxc-usernsexec -m u:0:100000:65536 -m g:0:100000:65536 -- ta…' failed: exit code 2"
        );
        assert_eq!(shortened(CLIENT), CLIENT);
        assert_eq!(shortened("startup for container '300' failed"), "startup for container '300' failed");
    }

    /// Log and exit status of recorded restores; those of full disks were recorded from the tools alone.
    #[test]
    fn a_restores_words_name_the_culprit() {
        let rows: &[(&[&str], &str, Culprit)] = &[
            (
                &["/*stdin*\\ : Read error (39) : premature end ", "tar: Unexpected EOF in archive"],
                TAR,
                Archive,
            ),
            (&["tar: ./srv/a: Cannot write: No space left on device"], TAR, Elsewhere),
            (
                &["tar: ./srv: Cannot mkdir: No space left on device", "tar: Unexpected EOF in archive"],
                TAR,
                Elsewhere,
            ),
            (&["tar: ./srv/a: Cannot open: Read-only file system"], TAR, Elsewhere),
            (
                &[
                    "Error: wrong key - unable to verify signature since manifest's key 1f:84:19:dc:49:05:e8:44 does not match provided key 7d:d6:4c:64:ab:90:4a:74",
                ],
                CLIENT,
                Archive,
            ),
            (
                &["Error: missing key - manifest was created with key 1f:84:19:dc:49:05:e8:44"],
                CLIENT,
                Archive,
            ),
            (&["Error: error extracting archive - OpenSSL error"], CLIENT, Archive),
            (
                &[
                    "Error: error extracting archive - encountered unexpected error during extraction: error at entry \"random.bin\": failed to extract file: failed to copy file contents: No space left on device (os error 28)",
                ],
                CLIENT,
                Elsewhere,
            ),
            (
                &["Error: error extracting archive - connection closed because of a broken pipe"],
                CLIENT,
                Elsewhere,
            ),
            // A chunk that failed a verification is renamed. The path gives its place in the datastore, whatever the
            // datastore's name is.
            (
                &[
                    "Error: reading file \"/srv/connection/.chunks/ab12/ab12cd\" failed: No such file or directory (os error 2)",
                ],
                CLIENT,
                Archive,
            ),
            (
                &["Error: error extracting archive - stream closed because of a broken pipe"],
                CLIENT,
                Elsewhere,
            ),
            (
                &["Use of uninitialized value $password in concatenation", "Error: authentication failed"],
                CLIENT,
                Elsewhere,
            ),
            // The node went down.
            (
                &[],
                "unable to restore CT 900 - command 'timedatectl show '--property=Timezone' --value' failed: exit code 1",
                Elsewhere,
            ),
            (&["Error: client error (Connect)", "tcp connect error"], CLIENT, Elsewhere),
            (&["Error: authentication failed"], CLIENT, Elsewhere),
            (&[], "unable to restore CT 154 - ERROR: archive contains no configuration file", Archive),
            (
                &[],
                "unable to restore CT 300 - encryption configured ('b2:9f:c0:4a:77:79:0e:37') but no encryption key file found!",
                Archive,
            ),
            (&[], "unable to restore CT 158 - 403 Permission check failed (/, Sys.Modify)", Elsewhere),
            (
                &[],
                "unable to restore CT 154 - unable to activate storage 'offline' - directory is expected to be a mount point but is not mounted: '/mnt/offline'",
                Elsewhere,
            ),
            (
                &[],
                "unable to restore CT 154 - volume 'backup2:backup/vzdump-lxc-140-2020_01_01-00_00_00.tar.zst' does not exist",
                Elsewhere,
            ),
            (
                &[],
                "unable to restore CT 381 - command 'lxc-usernsexec -- tar xpf - ' failed: received interrupt",
                Elsewhere,
            ),
            (&[], "can't lock file '/run/lock/lxc/pve-config-900.lock' - got timeout", Elsewhere),
        ];
        for (lines, end, culprit) in rows {
            let mut reported = RestoreLog::default();
            lines.iter().for_each(|line| reported.hear(line));
            assert_eq!(reported.culprit(end), *culprit, "{lines:?} {end}");
        }
    }

    #[test]
    fn the_line_that_says_why_is_kept() {
        let mut reported = RestoreLog::default();
        for line in [
            "recovering backed-up configuration",
            " Error: missing key - manifest was created with key 1f ",
            "x",
        ] {
            reported.hear(line);
        }
        assert_eq!(reported.why(), Some("Error: missing key - manifest was created with key 1f"));
        reported.hear("tar: a: Cannot write: No space left on device");
        assert_eq!(reported.why(), Some("tar: a: Cannot write: No space left on device"));
        assert_eq!(RestoreLog::default().why(), None);
    }

    /// Messages of refused attempts to read archives, recorded or from Proxmox's source.
    #[test]
    fn a_refused_look_says_whether_the_archive_is_unreadable() {
        for (reason, is) in [
            (
                "proxmox-backup-client failed: Error: wrong key - unable to verify signature since manifest's key 6e:01 does not match provided key b2:9f",
                true,
            ),
            ("proxmox-backup-client failed: Error: missing key - manifest was created with key b2:9f", true),
            ("encryption configured ('b2:9f:c0:4a:77:79:0e:37') but no encryption key file found!", true),
            ("ERROR: archive contains no configuration file", true),
            (
                "command 'tar -xpOf /mnt/backup2/dump/a.tar.zst ./etc/vzdump/pct.conf --occurrence' failed: exit code 2",
                true,
            ),
            (
                "command 'tar -xpOf /mnt/backup2/dump/a.tar.zst ./etc/vzdump/pct.conf --occurrence' failed: got signal 9",
                false,
            ),
            (
                "proxmox-backup-client failed: Error: while reading snapshot 'BackupDir { store: \"pvestore\" }'",
                false,
            ),
            ("proxmox-backup-client failed: Error: authentication failed", false),
            ("volume 'backup2:backup/vzdump-lxc-140-2020_01_01-00_00_00.tar.zst' does not exist", false),
            ("Permission check failed (/vms/303, VM.Backup)", false),
        ] {
            assert_eq!(is_unreadable(reason), is, "{reason}");
        }
    }
}
