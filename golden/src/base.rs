//! Debian base archive, made by mmdebstrap from signed archives.
//!
//! In: the recipe, and a folder of root's to work in. Out: one tar, read entry by entry; nothing that leads out of it.
//! Only one build works in a folder at a time, and what a killed one left there is removed by the next.

use std::fs::{File, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use holdfast_protocol::golden::{GoldenContents, GoldenPackage};
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::image::{Content, Entry, Image, Kind};
use super::program::{program, run_to_end};
use super::recipe::{AS_OF, Recipe};

/// Where dpkg keeps what is installed.
const DPKG_STATUS: &str = "./var/lib/dpkg/status";
/// The extended attributes that Proxmox restores.
const PAX_XATTR_PREFIX: &str = "SCHILY.xattr.";
/// What a build's own folder is called while it works.
const SCRATCH: &str = "build-";

/// Whether the Debian of an earlier build will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseCache {
    /// It will, where it was made of the same.
    Reuse,
    /// A new one is made and kept.
    Renew,
    /// A new one is made, and removed at the end.
    Discard,
}

/// A base archive, and what is removed together with it.
pub struct Base {
    pub path: PathBuf,
    _scratch: Option<TempDir>,
    _lock: File,
}

/// The base archive for a recipe.
pub fn debian(
    recipe: &Recipe,
    (contents, as_of): (GoldenContents, Option<Timestamp>),
    work: &Path,
    base_cache: BaseCache,
) -> Result<Base> {
    std::fs::create_dir_all(work).with_context(|| format!("cannot make {}", work.display()))?;
    let lock = lock(work)?;
    let debian = &recipe.debian;
    let stacks = if contents == GoldenContents::Complete { recipe.stacks.packages.as_slice() } else { &[] };
    let packages: Vec<&str> = debian.packages.iter().chain(stacks).map(String::as_str).collect();
    let include = packages.join(",");
    let options: Vec<String> = (debian.leave_out.iter().map(|path| format!("--dpkgopt=path-exclude={path}")))
        .chain(debian.but_keep.iter().map(|path| format!("--dpkgopt=path-include={path}")))
        .collect();
    let (suite, variant) = (&debian.suite, &debian.variant);
    let sources = sources(recipe, as_of);
    let mut made_of = format!("{suite}\n{variant}\n{include}\n{}\n", options.join("\n"));
    if as_of.is_some() {
        made_of += &(sources.join("\n") + "\n");
    }
    let digest = hex::encode(Sha256::digest(made_of.as_bytes()));
    let key = digest.get(..16).unwrap_or(&digest);
    let path = work.join(format!("base-{suite}-{key}.tar"));
    if base_cache == BaseCache::Reuse && path.exists() {
        return Ok(Base { path, _scratch: None, _lock: lock });
    }
    let scratch = scratch(work)?;
    let made = scratch.path().join("base.tar");
    let mut command = program("unshare");
    command
        // Whatever mmdebstrap mounts, and however it ends, nothing of that is left on the machine.
        .args(["--mount", "--propagation=private", "--", "mmdebstrap", "--quiet", "--mode=root"])
        .arg(format!("--variant={variant}"))
        .arg(format!("--include={include}"))
        .args(options);
    if as_of.is_some() {
        // Lists of a past day have ended; their signatures still hold.
        command.arg("--aptopt=Acquire::Check-Valid-Until \"false\"");
    }
    command
        .arg(suite)
        .arg(&made)
        .args(sources)
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("LC_ALL", "C.UTF-8")
        .env("TMPDIR", scratch.path())
        .env("SOURCE_DATE_EPOCH", recipe.source_date_epoch.to_string());
    run_to_end(&mut command).context("mmdebstrap made no Debian")?;
    if base_cache == BaseCache::Discard {
        return Ok(Base { path: made, _scratch: Some(scratch), _lock: lock });
    }
    std::fs::rename(&made, &path).with_context(|| format!("cannot keep {}", path.display()))?;
    Ok(Base { path, _scratch: None, _lock: lock })
}

/// The sources that mmdebstrap fetches from; none where it takes what this machine has for the release.
fn sources(recipe: &Recipe, as_of: Option<Timestamp>) -> Vec<String> {
    let Some(as_of) = as_of else { return Vec::new() };
    let time = as_of.strftime("%Y%m%dT%H%M%SZ").to_string();
    recipe.debian.snapshots.iter().map(|line| line.replace(AS_OF, &time)).collect()
}

/// Held for as long as a build runs.
fn lock(work: &Path) -> Result<File> {
    let path = work.join("lock");
    let failed = || format!("cannot use {}", path.display());
    let file = File::options().create(true).append(true).open(&path).with_context(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => {
            bail!("another image is being built in {}: try again when it has ended", work.display())
        }
        Err(std::fs::TryLockError::Error(error)) => Err(error).with_context(failed),
    }
}

/// A folder that apt's own user may read, in place of those that killed builds left.
fn scratch(work: &Path) -> Result<TempDir> {
    let failed = || format!("cannot use {}", work.display());
    for entry in std::fs::read_dir(work).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        let left_over = entry.file_name().to_string_lossy().starts_with(SCRATCH);
        if left_over && entry.file_type().with_context(failed)?.is_dir() {
            std::fs::remove_dir_all(entry.path()).with_context(failed)?;
        }
    }
    let readable = Permissions::from_mode(0o755);
    tempfile::Builder::new().prefix(SCRATCH).permissions(readable).tempdir_in(work).with_context(failed)
}

/// Reads a base archive: its entries, and the packages that dpkg names.
pub fn read(base: &Path) -> Result<(Image, Vec<GoldenPackage>)> {
    let failed = || format!("the base {} cannot be read", base.display());
    let mut archive = tar::Archive::new(File::open(base).with_context(failed)?);
    let mut image = Image::default();
    let mut packages = Vec::new();
    for entry in archive.entries().with_context(failed)? {
        let mut entry = entry.with_context(failed)?;
        let name = entry.path_bytes().into_owned();
        if name == DPKG_STATUS.as_bytes() {
            let mut status = String::new();
            // Reading moves only this entry's own cursor; its content is found again by its offset.
            entry.read_to_string(&mut status).with_context(failed)?;
            packages = packages_of(&status);
        }
        let path = path_of(&name).with_context(failed)?;
        if let Some(kept) = image_entry(&mut entry).with_context(failed)? {
            image.entries.insert(path, kept);
        }
    }
    linked_within(&image).with_context(failed)?;
    ensure!(!packages.is_empty(), "the base {} names no packages", base.display());
    sort_hard_links(&mut image);
    Ok((image, packages))
}

/// An entry as the image keeps it; nothing for devices, which a container gets from its host.
fn image_entry<R: Read>(entry: &mut tar::Entry<'_, R>) -> Result<Option<Entry>> {
    let mut pax = Vec::new();
    if let Some(extensions) = entry.pax_extensions()? {
        for extension in extensions {
            let extension = extension?;
            let key = extension.key()?;
            if key.starts_with(PAX_XATTR_PREFIX) {
                pax.push((key.to_owned(), extension.value_bytes().to_vec()));
            }
        }
    }
    pax.sort();
    let header = entry.header();
    let link = || entry.link_name_bytes().unwrap_or_default().into_owned();
    let kind = match header.entry_type() {
        tar::EntryType::Directory => Kind::Directory,
        tar::EntryType::Regular | tar::EntryType::Continuous => {
            Kind::File(Content::Base { offset: entry.raw_file_position(), size_bytes: entry.size() })
        }
        tar::EntryType::Symlink => Kind::Symlink(link()),
        tar::EntryType::Link => Kind::HardLink(path_of(&link())?),
        tar::EntryType::Fifo => Kind::Pipe,
        tar::EntryType::Char | tar::EntryType::Block => return Ok(None),
        other => bail!("an entry of kind {other:?} is not expected from mmdebstrap"),
    };
    let (uid, gid, mode, mtime_s) = (header.uid()?, header.gid()?, header.mode()?, header.mtime()?);
    Ok(Some(Entry { uid, gid, mode, mtime_s, pax, kind }))
}

/// A hard link must come after the name that carries the content. Entries are sorted, so the content moves to the
/// first name of each.
fn sort_hard_links(image: &mut Image) {
    let links: Vec<(Vec<u8>, Vec<u8>)> = image
        .entries
        .iter()
        .filter_map(|(path, entry)| match &entry.kind {
            Kind::HardLink(target) if path < target => Some((path.clone(), target.clone())),
            _ => None,
        })
        .collect();
    for (early, carrier) in links {
        let Some(Entry { kind: Kind::HardLink(now), .. }) = image.entries.get(&early) else { continue };
        // An earlier iteration may have moved the content already.
        if *now != carrier {
            continue;
        }
        let Some(content) = image.entries.get(&carrier).cloned() else { continue };
        for (path, entry) in &mut image.entries {
            let points_there = matches!(&entry.kind, Kind::HardLink(target) if *target == carrier);
            if *path == carrier || (points_there && *path != early) {
                entry.kind = Kind::HardLink(early.clone());
            }
        }
        image.entries.insert(early, content);
    }
}

/// A name beneath the root. A name that leads out of it would be copied into the golden unchanged, and would harm a
/// host that unpacks it.
fn path_of(name: &[u8]) -> Result<Vec<u8>> {
    let path = name.strip_prefix(b"./").unwrap_or(name);
    let path = path.strip_suffix(b"/").unwrap_or(path);
    let leads_out = path.starts_with(b"/") || path.split(|byte| *byte == b'/').any(|part| part == b"..");
    ensure!(!leads_out, "the entry {:?} leads out of the image", String::from_utf8_lossy(name));
    Ok(path.to_vec())
}

/// A hard link is a second name of what is in the image, and of nothing else.
fn linked_within(image: &Image) -> Result<()> {
    for (path, entry) in &image.entries {
        if let Kind::HardLink(target) = &entry.kind {
            let is_file = image
                .entries
                .get(target)
                .is_some_and(|entry| matches!(entry.kind, Kind::File(_) | Kind::HardLink(_)));
            ensure!(
                is_file,
                "the hard link {:?} leads to {:?}, which is no file of the image",
                String::from_utf8_lossy(path),
                String::from_utf8_lossy(target)
            );
        }
    }
    Ok(())
}

/// The installed packages, by name.
fn packages_of(status: &str) -> Vec<GoldenPackage> {
    let mut packages: Vec<GoldenPackage> = status
        .split("\n\n")
        .filter_map(|stanza| {
            let field =
                |name: &str| stanza.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
            let installed = field("Status: ")? == "install ok installed";
            if !installed {
                return None;
            }
            let architecture = field("Architecture: ")?;
            Some(GoldenPackage { name: field("Package: ")?, version: field("Version: ")?, architecture })
        })
        .collect();
    packages.sort_by(|one, other| one.name.cmp(&other.name));
    packages
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One entry in addition to what a base must have, with its name and target as they are.
    fn base_with(kind: tar::EntryType, name: &str, target: &str) -> Result<Image> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("base.tar");
        let mut builder = tar::Builder::new(File::create(&path)?);
        let mut put = |kind, name: &str, target: &str, bytes: &[u8]| -> Result<()> {
            let mut header = tar::Header::new_ustar();
            let raw = header.as_ustar_mut().context("ustar")?;
            raw.name.get_mut(..name.len()).context("a short name")?.copy_from_slice(name.as_bytes());
            raw.linkname
                .get_mut(..target.len())
                .context("a short target")?
                .copy_from_slice(target.as_bytes());
            header.set_entry_type(kind);
            header.set_size(bytes.len() as u64);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mode(0o644);
            header.set_mtime(0);
            header.set_cksum();
            Ok(builder.append(&header, bytes)?)
        };
        let status = "Package: apt\nStatus: install ok installed\nArchitecture: amd64\nVersion: 2.6\n";
        put(tar::EntryType::Regular, DPKG_STATUS, "", status.as_bytes())?;
        put(tar::EntryType::Regular, "./usr/bin/perl", "", b"x")?;
        put(kind, name, target, b"")?;
        builder.finish()?;
        Ok(read(&path)?.0)
    }

    #[test]
    fn an_entry_that_leads_out_of_the_image_is_refused_and_devices_are_left_out() {
        use tar::EntryType::{Block, Char, Link, Regular, Symlink};
        for (kind, name, target) in [
            (Regular, "../etc/passwd", ""),
            (Regular, "./usr/../../etc/passwd", ""),
            (Regular, "/etc/passwd", ""),
            (Regular, ".//etc/passwd", ""),
            (Symlink, "./a/..", "b"),
            (Link, "./usr/bin/perl5", "../etc/shadow"),
            (Link, "./usr/bin/perl5", "/etc/shadow"),
            (Link, "./usr/bin/perl5", "./etc/shadow"),
            (Link, "./usr/bin/perl5", ""),
        ] {
            assert!(base_with(kind, name, target).is_err(), "{kind:?} {name} {target}");
        }
        let linked = base_with(Link, "./usr/bin/perl5", "./usr/bin/perl").unwrap();
        assert!(linked.entries.contains_key(b"usr/bin/perl5".as_slice()));
        // Where a symlink leads is the guest's own affair.
        assert!(base_with(Symlink, "./usr/bin/perl5", "../../../etc").is_ok());
        for device in [Char, Block] {
            let image = base_with(device, "./dev/sda", "").unwrap();
            assert!(!image.entries.contains_key(b"dev/sda".as_slice()), "{device:?}");
        }
    }

    #[test]
    fn a_build_as_of_a_time_fetches_from_the_snapshots_of_it_alone() {
        let (recipe, _) = Recipe::read(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        assert_eq!(sources(&recipe, None), Vec::<String>::new());
        let lines = sources(&recipe, Some("2026-11-01T00:00:00Z".parse().unwrap()));
        assert_eq!(lines.len(), recipe.debian.sources.len());
        for (line, of_guests) in lines.iter().zip(&recipe.debian.sources) {
            assert!(line.contains("/20261101T000000Z ") && !line.contains(AS_OF), "{line}");
            let suite = |line: &str| line.split(' ').skip(2).map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(suite(line), suite(of_guests), "the same archives as guests have");
        }
    }

    #[test]
    fn installed_packages_are_named_with_their_versions() {
        let status = "Package: zlib1g\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1:1.2\n\n\
                      Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n\n\
                      Package: apt\nStatus: install ok installed\nArchitecture: all\nVersion: 2.6\nDescription: x\n y\n";
        let named: Vec<String> = packages_of(status)
            .iter()
            .map(|package| format!("{} {}", package.name, package.version))
            .collect();
        assert_eq!(named, ["apt 2.6", "zlib1g 1:1.2"]);
    }

    #[test]
    fn the_content_of_hard_links_is_at_their_first_name() {
        let mut image = Image::default();
        let content = Kind::File(Content::Bytes(b"x".to_vec()));
        image.put("m", Entry::own(0o644, content));
        for name in ["a", "b", "z"] {
            image.put(name, Entry::own(0o644, Kind::HardLink(b"m".to_vec())));
        }
        sort_hard_links(&mut image);
        assert!(matches!(image.entries[b"a".as_slice()].kind, Kind::File(_)));
        for name in ["b", "m", "z"] {
            let Kind::HardLink(target) = &image.entries[name.as_bytes()].kind else {
                panic!("{name} is no link")
            };
            assert_eq!(target, b"a", "{name}");
        }
    }
}
