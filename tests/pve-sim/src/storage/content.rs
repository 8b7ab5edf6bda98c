//! The content of a storage.
//!
//! In: a storage's folder. Out: rows for images and files, with the figures that the API shows. A made-up archive is shown with the size
//! that its list gave it.
use std::path::Path;

use super::volume::{KINDS, Store, VolumeName, backup_owner};
use crate::clock::parse_archive_stamp;

/// One volume in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// `storage:110/vm-110-disk-0.raw`
    pub volid: String,
    /// `rootdir`, `backup`, …
    pub content: String,
    /// `raw`, `tar.zst`, …
    pub format: String,
    pub size: u64,
    /// Bytes on disk, for images.
    pub used: Option<u64>,
    /// Whose it is.
    pub vmid: Option<u32>,
    /// When it was made, in Unix seconds.
    pub ctime: i64,
}

/// Guests' disks, of one guest or of all.
#[must_use]
pub fn images(store: &Store<'_>, storage: &str, vmid: Option<u32>) -> Vec<Row> {
    let Some(definition) = store.config.find(storage) else { return Vec::new() };
    let base = store.real(definition.path().unwrap_or_default()).join("images");
    let mut rows = Vec::new();
    for owner in names(&base)
        .into_iter()
        .filter_map(|name| name.parse::<u32>().ok())
        .filter(|owner| vmid.is_none_or(|wanted| wanted == *owner))
    {
        for name in names(&base.join(owner.to_string())).into_iter().filter(|name| !name.contains('@')) {
            let full = if definition.kind == "btrfs" {
                format!("{name}{}", if name.starts_with("subvol-") { ".subvol" } else { ".raw" })
            } else {
                name.clone()
            };
            let volid = format!("{storage}:{owner}/{full}");
            let Ok(size) = store.size(&volid) else { continue };
            let place = base.join(owner.to_string()).join(&name);
            let format = if full.ends_with(".subvol") { "subvol" } else { "raw" };
            rows.push(Row {
                volid,
                content: "rootdir".into(),
                format: format.into(),
                size,
                used: Some(size / 32),
                vmid: Some(owner),
                ctime: modified_s(&place),
            });
        }
    }
    rows.sort_by(|a, b| a.volid.cmp(&b.volid));
    rows
}

/// Files of a kind (`backup`, `vztmpl`, `iso`, `snippets`).
#[must_use]
pub fn files(store: &Store<'_>, storage: &str, kind: &str) -> Vec<Row> {
    let Some(definition) = store.config.find(storage) else { return Vec::new() };
    let Some((_, folder)) = KINDS.iter().find(|(held, _)| *held == kind) else { return Vec::new() };
    let base = store.real(definition.path().unwrap_or_default()).join(folder);
    let mut rows = Vec::new();
    for name in names(&base) {
        let Some(format) = format_of(kind, &name) else { continue };
        let place = base.join(&name);
        rows.push(Row {
            volid: format!("{storage}:{kind}/{name}"),
            content: kind.to_owned(),
            format,
            size: file_bytes(&place),
            used: None,
            vmid: if kind == "backup" { backup_owner(&name) } else { None },
            ctime: backup_time(&name).unwrap_or_else(|| modified_s(&place)),
        });
    }
    rows.sort_by(|a, b| a.volid.cmp(&b.volid));
    rows
}

/// The size that is shown for a file.
#[must_use]
pub fn file_bytes(place: &Path) -> u64 {
    let listed = std::fs::read_to_string(crate::state::volumes::sized(place))
        .ok()
        .and_then(|text| text.trim().parse().ok());
    listed.unwrap_or_else(|| place.metadata().map_or(0, |meta| meta.len()))
}

/// The time in the name of a backup.
#[must_use]
pub fn backup_time(name: &str) -> Option<i64> {
    let rest = name.strip_prefix("vzdump-lxc-").or_else(|| name.strip_prefix("vzdump-qemu-"))?;
    parse_archive_stamp(rest.split_once('-')?.1.split('.').next()?)
}

fn format_of(kind: &str, name: &str) -> Option<String> {
    let ends = |list: &[&'static str]| list.iter().find(|end| name.ends_with(**end)).copied();
    match kind {
        "backup" => {
            let end = ends(&[
                ".tar", ".tar.gz", ".tar.zst", ".tar.lzo", ".tgz", ".vma", ".vma.gz", ".vma.zst", ".vma.lzo",
            ])?;
            Some(end.trim_start_matches('.').to_owned())
        }
        "vztmpl" => Some(
            match ends(&[".tar.gz", ".tar.xz", ".tar.zst", ".tar.bz2"])? {
                ".tar.gz" => "tgz",
                ".tar.xz" => "txz",
                ".tar.zst" => "tzst",
                _ => "tbz2",
            }
            .to_owned(),
        ),
        "iso" => ends(&[".iso", ".img"]).map(|end| end.trim_start_matches('.').to_owned()),
        "snippets" => Some("snippet".to_owned()),
        _ => None,
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn modified_s(path: &Path) -> i64 {
    let since = path
        .metadata()
        .and_then(|meta| meta.modified())
        .ok()
        .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    since.and_then(|since| i64::try_from(since.as_secs()).ok()).unwrap_or_default()
}

/// The note that belongs to a backup.
#[must_use]
pub fn note(place: &Path) -> Option<String> {
    std::fs::read_to_string(copy_of(place, "notes")).ok()
}

/// Whether a backup is marked as protected.
#[must_use]
pub fn is_protected(place: &Path) -> bool {
    copy_of(place, "protected").exists()
}

/// A companion of a backup: `NAME.notes`, `NAME.protected`.
#[must_use]
pub fn copy_of(place: &Path, what: &str) -> std::path::PathBuf {
    let mut text = place.as_os_str().to_owned();
    text.push(format!(".{what}"));
    std::path::PathBuf::from(text)
}

/// Whether a volume name is a disk image.
#[must_use]
pub const fn is_image(name: &VolumeName) -> bool {
    matches!(name, VolumeName::Image { .. })
}
