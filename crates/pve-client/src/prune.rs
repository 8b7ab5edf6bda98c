//! The proof without which no backup is removed.
//!
//! Input: a storage's list of one guest's backups, the archive to remove, and a newer one that stays. Output:
//! [`OwnBackup`], or what the list shows instead. The call that it allows can delete a backup on that storage and
//! nothing else: its path is made from the list. Deliberately absent: whether it may be removed (`gate/retention`),
//! disks, and a way to make the proof without a list that shows the one that stays.

use holdfast_protocol::id::{StorageName, Vmid};

use super::read::StoredVolume;
use agent_core::model::records::VolumeId;

/// What a list shows of an archive to remove.
#[derive(Debug)]
pub enum ListedArchive {
    /// The backup, and the one that stays.
    Listed(OwnBackup),
    /// Only the one that stays: the backup is gone.
    Gone,
    /// The backup, and Proxmox refuses to delete it, because it was marked as protected.
    Protected,
    /// The one that stays is not listed either: the list proves nothing.
    Unproved,
}

/// Proof that a backup is listed, is one of this guest's, may be deleted, and that a newer one exists.
#[derive(Debug)]
pub struct OwnBackup {
    vmid: Vmid,
    storage: StorageName,
    archive: VolumeId,
}

impl OwnBackup {
    /// Looks for it in a storage's list of one guest's backups.
    #[must_use]
    pub fn find(
        vmid: Vmid,
        storage: &StorageName,
        (archive, stays): (&VolumeId, &VolumeId),
        listed: &[StoredVolume],
    ) -> ListedArchive {
        let row = |wanted: &VolumeId| listed.iter().find(|row| row.volid == wanted.as_str());
        let own = |row: &&StoredVolume| row.content == "backup" && row.vmid == Some(vmid) && row.size > 1;
        let here = |volume: &VolumeId| {
            volume.as_str().strip_prefix(storage.as_str()).is_some_and(|rest| rest.starts_with(":backup/"))
        };
        // A backup that is still being written is listed too, but does not count as the newer backup.
        if row(stays).filter(own).is_none() || archive == stays || !here(archive) {
            return ListedArchive::Unproved;
        }
        match row(archive) {
            None => ListedArchive::Gone,
            Some(row) if row.protected => ListedArchive::Protected,
            Some(row) if own(&row) => {
                ListedArchive::Listed(Self { vmid, storage: storage.clone(), archive: archive.clone() })
            }
            Some(_) => ListedArchive::Unproved,
        }
    }

    #[must_use]
    pub const fn vmid(&self) -> Vmid {
        self.vmid
    }

    #[must_use]
    pub const fn storage(&self) -> &StorageName {
        &self.storage
    }

    #[must_use]
    pub const fn archive(&self) -> &VolumeId {
        &self.archive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, vmid: u32, size: u64) -> StoredVolume {
        StoredVolume {
            volid: format!("backup2:backup/{name}"),
            content: "backup".to_owned(),
            vmid: Vmid::try_from(vmid).ok(),
            format: "tar.zst".to_owned(),
            size,
            made_epoch_s: Some(1),
            protected: false,
            sealed: None,
            verification: None,
        }
    }

    #[test]
    fn only_what_is_listed_with_its_successor_opens_the_call() {
        let vmid = Vmid::try_from(300).unwrap();
        let storage: StorageName = "backup2".parse().unwrap();
        let [old, new, disk] =
            ["backup2:backup/old", "backup2:backup/new", "backup2:300/vm-300-disk-0.raw"].map(VolumeId::new);
        let find = |pair, listed: &[StoredVolume]| OwnBackup::find(vmid, &storage, pair, listed);
        let both = [row("old", 300, 9), row("new", 300, 9)];
        let ListedArchive::Listed(own) = find((&old, &new), &both) else { panic!("it is listed") };
        assert_eq!((own.vmid(), own.storage(), own.archive()), (vmid, &storage, &old));
        assert!(matches!(find((&old, &new), &both[1..]), ListedArchive::Gone));
        assert!(matches!(find((&old, &new), &both[..1]), ListedArchive::Unproved), "no successor");
        assert!(matches!(find((&old, &new), &[]), ListedArchive::Unproved), "an empty list");
        assert!(matches!(find((&old, &old), &both), ListedArchive::Unproved), "it is no successor of itself");
        let half = [row("old", 300, 9), row("new", 300, 1)];
        assert!(matches!(find((&old, &new), &half), ListedArchive::Unproved), "the successor is not whole");
        let others = [row("old", 301, 9), row("new", 300, 9)];
        assert!(matches!(find((&old, &new), &others), ListedArchive::Unproved), "another guest's");
        let mut kept = both.clone();
        kept[0].protected = true;
        assert!(matches!(find((&old, &new), &kept), ListedArchive::Protected));
        let mut with_disk = both.to_vec();
        with_disk.push(StoredVolume { volid: disk.as_str().to_owned(), ..row("x", 300, 9) });
        assert!(matches!(find((&disk, &new), &with_disk), ListedArchive::Unproved), "no disk is a backup");
        let elsewhere: StorageName = "backup".parse().unwrap();
        assert!(matches!(OwnBackup::find(vmid, &elsewhere, (&old, &new), &both), ListedArchive::Unproved));
    }
}
