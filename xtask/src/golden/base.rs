//! The Debian beneath: made by mmdebstrap from the machine's own release, kept by what it was made of.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

use super::image::{Content, Entry, Image, Kind};
use super::manifest::{Package, hex};
use super::recipe::Recipe;
use crate::workspace::{must, program};

/// Where dpkg keeps what is installed.
const DPKG_STATUS: &str = "./var/lib/dpkg/status";
/// The releases whose packages carry the names of the recipe.
const SUITES: [&str; 2] = ["bookworm", "trixie"];
/// The extended attributes that Proxmox restores.
const PAX_XATTR_PREFIX: &str = "SCHILY.xattr.";

/// The release of this machine: its `guestd` was linked against that C library.
pub fn host_suite() -> Result<String> {
    let text = std::fs::read_to_string("/etc/os-release")
        .context("this is no Debian: /etc/os-release is missing")?;
    let suite = text
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="))
        .map(|name| name.trim_matches('"').to_owned())
        .context("/etc/os-release names no release; the golden is built on Debian")?;
    ensure!(
        SUITES.contains(&suite.as_str()),
        "the golden is built on Debian {}, not {suite}",
        SUITES.join(" or ")
    );
    Ok(suite)
}

/// The base archive for a recipe: the kept one, or a new one.
pub fn debian(recipe: &Recipe, suite: &str, extra: &[String], folder: &Path, fresh: bool) -> Result<PathBuf> {
    let debian = &recipe.debian;
    let packages: Vec<&str> = debian.packages.iter().chain(extra).map(String::as_str).collect();
    let include = packages.join(",");
    let made_of = format!("{suite}\n{}\n{include}\n{}\n", debian.variant, debian.leave_out.join("\n"));
    let digest = hex(&Sha256::digest(made_of.as_bytes()));
    let key = digest.get(..16).unwrap_or(&digest);
    let kept = folder.join(format!("base-{suite}-{key}.tar"));
    if kept.exists() && !fresh {
        return Ok(kept);
    }
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let unfinished = folder.join(format!("base-{suite}-{key}.{}.tar", std::process::id()));
    let mut command = program("mmdebstrap");
    command
        .arg("--quiet")
        .arg(format!("--variant={}", debian.variant))
        .arg(format!("--include={include}"))
        .args(debian.leave_out.iter().map(|path| format!("--dpkgopt=path-exclude={path}")))
        .arg(suite)
        .arg(&unfinished)
        .env("SOURCE_DATE_EPOCH", recipe.source_date_epoch.to_string());
    if let Err(error) = must(&mut command) {
        // What is half done must not be taken for a base; the reason counts more than the removal.
        let _ = std::fs::remove_file(&unfinished);
        return Err(error).context("mmdebstrap made no base; `--tiny` needs neither it nor a network");
    }
    std::fs::rename(&unfinished, &kept).with_context(|| format!("cannot keep {}", kept.display()))?;
    Ok(kept)
}

/// Reads a base archive: its entries, and the packages that dpkg names.
pub fn read(base: &Path) -> Result<(Image, Vec<Package>)> {
    let failed = || format!("the base {} cannot be read; try --fresh", base.display());
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
        if let Some(kept) = kept_entry(&mut entry).with_context(failed)? {
            image.entries.insert(path, kept);
        }
    }
    linked_within(&image).with_context(failed)?;
    ensure!(!packages.is_empty(), "the base {} names no packages; try --fresh", base.display());
    sort_hard_links(&mut image);
    Ok((image, packages))
}

/// An entry as the image keeps it; nothing for devices, which a container gets from its host.
fn kept_entry<R: Read>(entry: &mut tar::Entry<'_, R>) -> Result<Option<Entry>> {
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
        // An earlier turn may have moved the content already.
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

/// A name beneath the root. One that leads out of it would go into the golden as it is, for whoever unpacks that.
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
fn packages_of(status: &str) -> Vec<Package> {
    let mut packages: Vec<Package> = status
        .split("\n\n")
        .filter_map(|stanza| {
            let field =
                |name: &str| stanza.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
            let installed = field("Status: ")? == "install ok installed";
            installed.then_some(Package { name: field("Package: ")?, version: field("Version: ")? })
        })
        .collect();
    packages.sort_by(|one, other| one.name.cmp(&other.name));
    packages
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One entry beside what a base must have, with its name and target as they are.
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
        let status = "Package: apt\nStatus: install ok installed\nVersion: 2.6\n";
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
    fn installed_packages_are_named_with_their_versions() {
        let status = "Package: zlib1g\nStatus: install ok installed\nVersion: 1:1.2\n\n\
                      Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n\n\
                      Package: apt\nStatus: install ok installed\nVersion: 2.6\nDescription: x\n y\n";
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
