//! Networks and disks of a restored copy.
//!
//! What comes in: the lines of an archive's configuration that [`super::archive`] let pass. What goes out: the numbers
//! of its networks, and its disks by size and path; or the line for which no copy can be made. What no backup holds is
//! not made, and is named. Deliberately absent: hardware addresses, bridges, storages and mount options of the archive.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::id::MountPath;
use holdfast_protocol::size::DiskGib;

use super::archive::{ArchiveRefused, Line, Lines};

/// Proxmox has networks `net0` to `net31`.
const NETS: std::ops::RangeInclusive<u8> = 0..=31;

/// What a copy gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The numbers of its networks. All of them are written out, so that none is the archive's.
    pub nets: BTreeSet<u8>,
    /// The size of its root disk.
    pub rootfs: DiskGib,
    /// Its volumes by the number of their mount.
    pub mounts: BTreeMap<u8, MountLayout>,
    /// Paths of volumes that no backup holds.
    pub left_out: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountLayout {
    /// Where it is mounted.
    pub path: MountPath,
    pub size: DiskGib,
}

impl Layout {
    /// The size of all its disks.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let gib = self
            .mounts
            .values()
            .map(|mount| mount.size)
            .chain([self.rootfs])
            .map(|size| u64::from(size.get()));
        gib.sum::<u64>() << 30
    }

    /// Without what its backup left out, by our records: a copy with an empty volume would look whole.
    #[must_use]
    pub fn without(mut self, left_out: &[String]) -> Self {
        let out = |mount: &MountLayout| left_out.iter().any(|path| path == mount.path.as_str());
        self.left_out.extend(self.mounts.values().filter(|mount| out(mount)).map(|one| one.path.to_string()));
        self.mounts.retain(|_, mount| !out(mount));
        self
    }
}

/// Reads it off an archive's configuration.
///
/// # Errors
/// The first line for which no copy can be made.
pub fn layout(lines: &Lines) -> Result<Layout, ArchiveRefused> {
    let rootfs = lines.get("rootfs").ok_or(ArchiveRefused::NoRootfs)?;
    let mut layout = Layout {
        nets: BTreeSet::new(),
        rootfs: size(rootfs)?,
        mounts: BTreeMap::new(),
        left_out: Vec::new(),
    };
    for line in lines.iter() {
        if let Some(digits) =
            line.key.strip_prefix("net").filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        {
            let number = digits.parse().ok().filter(|number| NETS.contains(number));
            layout.nets.insert(number.ok_or_else(|| line.refuse("Proxmox has no such network"))?);
        } else if let Some(digits) = line.key.strip_prefix("mp") {
            let slot = digits.parse().map_err(|_| line.refuse("Proxmox has no such mount"))?;
            mount(&mut layout, slot, line)?;
        }
    }
    Ok(layout)
}

fn mount(layout: &mut Layout, slot: u8, line: &Line) -> Result<(), ArchiveRefused> {
    let path = property(&line.value, "mp").ok_or_else(|| line.refuse("it is mounted nowhere"))?;
    // Proxmox leaves a volume out unless it says otherwise.
    if property(&line.value, "backup") != Some("1") {
        layout.left_out.push(path.to_owned());
        return Ok(());
    }
    let path = path.parse().map_err(|_| line.refuse("it is mounted at no plain absolute path"))?;
    layout.mounts.insert(slot, MountLayout { path, size: size(line)? });
    Ok(())
}

fn property<'a>(value: &'a str, name: &str) -> Option<&'a str> {
    value.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
}

/// Whole GiB, at least as large as it was.
fn size(line: &Line) -> Result<DiskGib, ArchiveRefused> {
    let bytes = super::archive::disk_bytes(&line.value)
        .ok_or_else(|| line.refuse("it does not say how large it is"))?;
    let gib = u32::try_from(bytes.div_ceil(1 << 30)).ok().and_then(|gib| DiskGib::try_from(gib.max(1)).ok());
    gib.ok_or_else(|| line.refuse("no disk is that large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(lines: &[(&str, &str)]) -> Lines {
        let root = ("rootfs", "tank:300/vm-300-disk-0.raw,size=2G");
        let named = lines.iter().any(|(key, _)| *key == "rootfs");
        let root = [root].into_iter().filter(|_| !named);
        let all = lines.iter().copied().chain(root).map(|(key, value)| format!("{key}: {value}\n"));
        Lines::read(&all.collect::<String>()).unwrap()
    }

    fn gib(n: u32) -> DiskGib {
        DiskGib::try_from(n).unwrap()
    }

    #[test]
    fn disks_that_the_backup_holds_are_made_anew_and_the_others_are_named() {
        let read = layout(&keys(&[
            ("net0", "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:01"),
            ("net7", "name=eth7,bridge=vmbr9"),
            ("nameserver", "10.0.0.1"),
            ("mp0", "tank:300/vm-300-disk-1.raw,mp=/srv/db,backup=1,size=1536M"),
            ("mp1", "tank:300/vm-300-disk-2.raw,mp=/srv/media,backup=0,size=1T"),
            ("mp2", "tank:300/vm-300-disk-3.raw,mp=/srv/cache,size=1G"),
        ]))
        .unwrap();
        assert_eq!((&read.nets, read.bytes()), (&[0, 7].into(), 4 << 30));
        assert_eq!(read.rootfs, gib(2));
        let db = MountLayout { path: "/srv/db".parse().unwrap(), size: gib(2) };
        assert_eq!(read.mounts, BTreeMap::from([(0, db)]));
        assert_eq!(read.left_out, ["/srv/media", "/srv/cache"]);
    }

    #[test]
    fn a_volume_that_the_records_say_was_left_out_is_named_and_not_made() {
        let read = layout(&keys(&[
            ("mp0", "tank:300/vm-300-disk-1.raw,mp=/srv/db,backup=1,size=1G"),
            ("mp1", "tank:300/vm-300-disk-2.raw,mp=/srv/media,backup=1,size=4G"),
            ("mp2", "tank:300/vm-300-disk-3.raw,mp=/srv/cache,size=1G"),
        ]))
        .unwrap();
        assert_eq!(read.clone().without(&[]), read);
        let copy = read.without(&["/srv/media".to_owned(), "/srv/gone".to_owned()]);
        let db = MountLayout { path: "/srv/db".parse().unwrap(), size: gib(1) };
        assert_eq!(copy.mounts, BTreeMap::from([(0, db)]));
        assert_eq!(
            (copy.left_out.as_slice(), copy.bytes()),
            (&["/srv/cache", "/srv/media"].map(str::to_owned)[..], 3 << 30)
        );
    }

    #[test]
    fn a_line_that_no_copy_can_be_made_of_is_named() {
        for (key, value) in [
            ("mp0", "tank:300/vm-300-disk-1.raw,mp=/srv/../etc,backup=1,size=1G"),
            ("mp0", "tank:300/vm-300-disk-1.raw,mp=/a b,backup=1,size=1G"),
            ("mp0", "tank:300/vm-300-disk-1.raw,backup=1,size=1G"),
            ("mp0", "tank:300/vm-300-disk-1.raw,mp=/srv,backup=1"),
            ("mp0", "tank:300/vm-300-disk-1.raw,mp=/srv,backup=1,size=9999999T"),
            ("mp256", "tank:300/vm-300-disk-1.raw,mp=/srv,backup=1,size=1G"),
            ("net32", "name=eth0,bridge=vmbr0"),
            ("rootfs", "tank:300/vm-300-disk-0.raw"),
        ] {
            match layout(&keys(&[("arch", "amd64"), (key, value)])) {
                Err(ArchiveRefused::Line { number, line, .. }) => {
                    assert_eq!((number, line), (2, format!("{key}: {value}")));
                }
                other => panic!("{key}: {other:?}"),
            }
        }
    }
}
