//! Superblocks of ext4, xfs and btrfs, and partition UUIDs.
//!
//! They are parsed here; no library and no udev is trusted.
//!
//! In: a device opened for reading, whose every byte a stranger may have chosen. Out: plain values from fixed places,
//! compared with nothing but constants. Nothing is followed: no offset comes from the device but the one of a partition
//! table, and that is only read from.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

use serde::Deserialize;

use crate::names::{FsUuid, PartUuid};

/// The file systems that are mounted at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSystem {
    Ext4,
    Xfs,
    Btrfs,
}

impl FileSystem {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }
}

/// The mark of one file system on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    pub filesystem: FileSystem,
    pub uuid: FsUuid,
    /// Why it is not mounted even when everything else fits.
    pub fault: Option<&'static str>,
}

const BLOCK: usize = 4096;
const BTRFS_AT: u64 = 65536;

/// The marks on a device; a device too short for one does not have it.
pub fn superblocks(device: &File) -> io::Result<Vec<Superblock>> {
    let mut superblocks = Vec::new();
    let mut block = [0_u8; BLOCK];
    if filled(device, &mut block, 0)? {
        superblocks.extend(ext4(&block));
        superblocks.extend(xfs(&block));
    }
    if filled(device, &mut block, BTRFS_AT)? {
        superblocks.extend(btrfs(&block));
    }
    let ambiguous = superblocks.len() > 1;
    for superblock in superblocks.iter_mut().filter(|_| ambiguous) {
        superblock.fault = Some("it has the superblocks of two file systems");
    }
    Ok(superblocks)
}

/// The superblock is at byte 1024.
fn ext4(block: &[u8; BLOCK]) -> Option<Superblock> {
    const INCOMPAT_JOURNAL_DEVICE: u32 = 0x8;
    if bytes::<2>(block, 1024 + 0x38)? != [0x53, 0xef] {
        return None;
    }
    let uuid = FsUuid::from_bytes(bytes(block, 1024 + 0x68)?)?;
    let incompatible = u32::from_le_bytes(bytes(block, 1024 + 0x60)?);
    let journal_elsewhere = u32::from_le_bytes(bytes(block, 1024 + 0xe4)?);
    let options: [u8; 64] = bytes(block, 1024 + 0x200)?;
    // Otherwise the author of the disk could choose, by number, the device to which the kernel writes a journal, or
    // mount options.
    let fault = if incompatible & INCOMPAT_JOURNAL_DEVICE != 0 {
        Some("it is the journal of another file system")
    } else if journal_elsewhere != 0 {
        Some("its journal is on another device (`tune2fs -O ^has_journal` and back again)")
    } else if options.iter().any(|byte| *byte != 0) {
        Some("it brings mount options of its own (`tune2fs -E mount_opts=`)")
    } else {
        None
    };
    Some(Superblock { filesystem: FileSystem::Ext4, uuid, fault })
}

fn xfs(block: &[u8; BLOCK]) -> Option<Superblock> {
    if bytes::<4>(block, 0)? != *b"XFSB" {
        return None;
    }
    let uuid = FsUuid::from_bytes(bytes(block, 32)?)?;
    let journal_inside = u64::from_be_bytes(bytes(block, 48)?) != 0;
    let fault = (!journal_inside).then_some("its journal is on another device");
    Some(Superblock { filesystem: FileSystem::Xfs, uuid, fault })
}

fn btrfs(block: &[u8; BLOCK]) -> Option<Superblock> {
    if bytes::<8>(block, 0x40)? != *b"_BHRfS_M" {
        return None;
    }
    let uuid = FsUuid::from_bytes(bytes(block, 0x20)?)?;
    let devices = u64::from_le_bytes(bytes(block, 0x88)?);
    let fault = (devices != 1).then_some("it spans more than one device");
    Some(Superblock { filesystem: FileSystem::Btrfs, uuid, fault })
}

/// The name that the partition table gives to a partition, known by number and first 512-byte sector.
pub fn part_uuid(whole: &File, block_size: u64, number: u32, start: u64) -> Option<PartUuid> {
    let mut header = [0_u8; BLOCK];
    if filled(whole, &mut header, block_size).ok()? && header.starts_with(b"EFI PART") {
        return gpt(whole, &header, (block_size, number, start));
    }
    whole.read_exact_at(&mut header, 0).ok()?;
    mbr(&header, number)
}

fn gpt(whole: &File, header: &[u8; BLOCK], (block_size, number, start): (u64, u32, u64)) -> Option<PartUuid> {
    let first = u64::from_le_bytes(bytes(header, 72)?);
    let (count, size) = (u32::from_le_bytes(bytes(header, 80)?), u32::from_le_bytes(bytes(header, 84)?));
    if number > count || !(128..=4096).contains(&size) {
        return None;
    }
    let within = u64::from(number.checked_sub(1)?) * u64::from(size);
    let at = first.checked_mul(block_size)?.checked_add(within)?;
    let mut entry = [0_u8; 128];
    whole.read_exact_at(&mut entry, i64::try_from(at).ok()?.unsigned_abs()).ok()?;
    // The table must speak of the partition that the kernel made, not of one that was changed since.
    let begins = u64::from_le_bytes(bytes(&entry, 32)?).checked_mul(block_size / 512)?;
    (begins == start).then_some(PartUuid::from_gpt(bytes(&entry, 16)?))
}

fn mbr(sector: &[u8; BLOCK], number: u32) -> Option<PartUuid> {
    let disk = u32::from_le_bytes(bytes(sector, 440)?);
    (bytes::<2>(sector, 510)? == [0x55, 0xaa] && disk != 0).then(|| PartUuid::from_mbr(disk, number))
}

fn bytes<const N: usize>(block: &[u8], at: usize) -> Option<[u8; N]> {
    block.get(at..)?.first_chunk().copied()
}

/// Whether the device is long enough to have filled it.
fn filled(device: &File, block: &mut [u8], at: u64) -> io::Result<bool> {
    match device.read_exact_at(block, at) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ext4_block() -> [u8; BLOCK] {
        let mut block = [0_u8; BLOCK];
        block[1024 + 0x38] = 0x53;
        block[1024 + 0x39] = 0xef;
        block[1024 + 0x68] = 7;
        block
    }

    #[test]
    fn superblocks_with_external_devices_are_faulty() {
        assert_eq!(ext4(&ext4_block()).unwrap().fault, None);
        for (at, value) in [(0x60, 0x8), (0xe4, 1), (0xe7, 1), (0x200, b'j'), (0x23f, 1)] {
            let mut block = ext4_block();
            block[1024 + at] = value;
            assert!(ext4(&block).unwrap().fault.is_some(), "{at:#x}");
        }
        let mut nil = ext4_block();
        nil[1024 + 0x68] = 0;
        assert_eq!(ext4(&nil), None, "a nil UUID names nothing");
    }

    #[test]
    fn no_block_causes_a_panic() {
        let mut seed = 0x2545_f491_4f6c_dd1d_u64;
        for _ in 0..2000 {
            let mut block = [0_u8; BLOCK];
            for byte in &mut block {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                *byte = seed.to_le_bytes()[0];
            }
            block[1024 + 0x38..1024 + 0x3a].copy_from_slice(&[0x53, 0xef]);
            block[0x40..0x48].copy_from_slice(b"_BHRfS_M");
            block[..4].copy_from_slice(b"XFSB");
            assert!(ext4(&block).is_some() && xfs(&block).is_some() && btrfs(&block).is_some());
            mbr(&block, 1);
        }
    }
}
