//! Image as a `vzdump` archive: configuration first, entries sorted by name.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::image::{Content, Entry, Image, Kind};

/// The bytes of a name that fit into a ustar header.
const NAME_BYTES_MAX: usize = 100;
/// tar writes whole records of 20 blocks.
const RECORD_BYTES: u64 = 20 * 512;
/// How hard the archive is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// As it is shipped: builds are rare and archives are restored often.
    Small,
    /// For an archive that is thrown away soon.
    Quick,
}

impl Packing {
    /// As the manifest names it: it is one of the things that determine the bytes.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Quick => "quick",
        }
    }

    const fn zstd_level(self) -> i32 {
        match self {
            Self::Small => 10,
            Self::Quick => 1,
        }
    }
}

/// The owner `nobody`: in the user namespace of an unprivileged container, the host's root is shown as this user.
const NO_OWNER: u64 = 65_534;

/// More than a golden ever has; a full disk is worse than a refused build.
const ARCHIVE_BYTES_MAX: u64 = 16 << 30;

/// Writes the archive. `base` is the file that the image's `Content::Base` points into.
pub fn write(
    (output, packing): (&File, Packing),
    pct_conf: &str,
    image: &Image,
    (base, epoch_s): (Option<&Path>, u64),
) -> Result<()> {
    write_entries((output, packing), pct_conf, image, base, epoch_s).context("the archive cannot be written")
}

fn write_entries(
    (output, packing): (&File, Packing),
    pct_conf: &str,
    image: &Image,
    base: Option<&Path>,
    epoch_s: u64,
) -> Result<()> {
    let encoder = zstd::Encoder::new(output, packing.zstd_level())?;
    let mut writer = Writer {
        builder: tar::Builder::new(Counted { inner: encoder, bytes: 0 }),
        base: base.map(File::open).transpose().context("the base archive is gone")?,
        epoch_s,
    };
    for (name, text) in [("./etc/vzdump/pct.conf", pct_conf), ("./etc/vzdump/pct.fw", "")] {
        let content = Kind::File(Content::Bytes(text.as_bytes().to_vec()));
        let entry = Entry { uid: NO_OWNER, gid: NO_OWNER, ..Entry::own(0o644, content) };
        writer.entry(name.as_bytes(), &entry)?;
    }
    for (entry_path, entry) in &image.entries {
        writer
            .entry(&name_of(entry_path, &entry.kind), entry)
            .with_context(|| format!("cannot pack {}", String::from_utf8_lossy(entry_path)))?;
    }
    let mut counted = writer.builder.into_inner()?;
    let padding = counted.bytes.next_multiple_of(RECORD_BYTES) - counted.bytes;
    io::copy(&mut io::repeat(0).take(padding), &mut counted)?;
    counted.inner.finish()?;
    Ok(())
}

struct Writer<W: Write> {
    builder: tar::Builder<W>,
    base: Option<File>,
    epoch_s: u64,
}

impl<W: Write> Writer<W> {
    fn entry(&mut self, name: &[u8], entry: &Entry) -> Result<()> {
        match &entry.kind {
            Kind::Directory => self.raw(name, b"", entry, (tar::EntryType::Directory, 0), io::empty()),
            Kind::Pipe => self.raw(name, b"", entry, (tar::EntryType::Fifo, 0), io::empty()),
            Kind::Symlink(target) => self.raw(name, target, entry, (tar::EntryType::Symlink, 0), io::empty()),
            Kind::HardLink(first) => {
                let target = name_of(first, &Kind::Pipe);
                self.raw(name, &target, entry, (tar::EntryType::Link, 0), io::empty())
            }
            Kind::File(Content::Bytes(bytes)) => {
                self.raw(name, b"", entry, (tar::EntryType::Regular, bytes.len() as u64), bytes.as_slice())
            }
            Kind::File(Content::Host(path)) => {
                let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
                let size_bytes = file.metadata()?.len();
                self.raw(name, b"", entry, (tar::EntryType::Regular, size_bytes), file.take(size_bytes))
            }
            Kind::File(Content::Base { offset, size_bytes }) => {
                let mut base = self.base.as_ref().context("there is no base archive")?.try_clone()?;
                base.seek(SeekFrom::Start(*offset))?;
                self.raw(name, b"", entry, (tar::EntryType::Regular, *size_bytes), base.take(*size_bytes))
            }
        }
    }

    fn raw(
        &mut self,
        name: &[u8],
        link: &[u8],
        entry: &Entry,
        (kind, size_bytes): (tar::EntryType, u64),
        content: impl Read,
    ) -> Result<()> {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(kind);
        header.set_uid(entry.uid);
        header.set_gid(entry.gid);
        header.set_mode(entry.mode & 0o7777);
        header.set_mtime(entry.mtime_s.min(self.epoch_s));
        header.set_size(size_bytes);
        let mut pax = entry.pax.clone();
        for (key, value) in [("path", name), ("linkpath", link)] {
            if value.len() > NAME_BYTES_MAX {
                pax.push((key.to_owned(), value.to_owned()));
            }
        }
        fill(&mut header.as_old_mut().name, name);
        fill(&mut header.as_old_mut().linkname, link);
        header.set_cksum();
        if !pax.is_empty() {
            self.builder
                .append_pax_extensions(pax.iter().map(|(key, value)| (key.as_str(), value.as_slice())))?;
        }
        let mut counted = Counting { inner: content, bytes: 0 };
        self.builder.append(&header, &mut counted)?;
        ensure!(counted.bytes == size_bytes, "it changed while being read");
        Ok(())
    }
}

fn name_of(path: &[u8], kind: &Kind) -> Vec<u8> {
    let mut name = b"./".to_vec();
    name.extend_from_slice(path);
    if matches!(kind, Kind::Directory) && !path.is_empty() {
        name.push(b'/');
    }
    name
}

fn fill(field: &mut [u8], value: &[u8]) {
    for (slot, byte) in field.iter_mut().zip(value.iter().chain(std::iter::repeat(&0))) {
        *slot = *byte;
    }
}

struct Counted<W> {
    inner: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.bytes += count as u64;
        if self.bytes > ARCHIVE_BYTES_MAX {
            return Err(io::Error::other("the image is larger than allowed"));
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

struct Counting<R> {
    inner: R,
    bytes: u64,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.bytes += count as u64;
        Ok(count)
    }
}
