//! `agentd golden prune`: removes images that no guest needs any more.
//!
//! Input: the manifests in the dump folder, which root alone writes, and the running agent's report on approvals and
//! guests; without that report nothing is removed. Output: for each image whether it could be removed, or why it stays.
//! The agent's report can only keep an image: an operator names the images to remove, with `--yes`. The archive is
//! removed first, so that an interrupted prune is found again by the manifest. Deliberately absent: reading a document
//! that has not arrived yet; a guest that wants a removed image waits, and reports that.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use holdfast_protocol::id::GoldenVersion;
use holdfast_protocol::report::{GoldenReport, GuestReport, ImageStatus};
use serde::Serialize;

use super::{GoldenError, stored};
use crate::Output;
use crate::model::policy::GoldenDump;
use crate::port::admin_socket;
use crate::port::golden_dump::StoredImage;
use crate::port::held_folder::HeldFolder;
use crate::settings::ConfigPath;

/// The arguments of `prune`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
An image is removed only when it is named here and --yes is given; it is not enough that the agent knows no use for \
it. Never removed: an image that a guest was made from or waits for, the newest that guests may be made from, the \
newest that was built, one that root named in [[golden]] of agent.toml, and one that Proxmox keeps protected.")]
pub(super) struct PruneArguments {
    #[command(flatten)]
    config: ConfigPath,
    /// The images to remove; by default all are shown.
    #[arg(required_if_eq("yes", "true"))]
    versions: Vec<GoldenVersion>,
    /// Remove the named images that may be removed; without it, they are only shown.
    #[arg(long)]
    yes: bool,
    /// Text for people, or JSON (`holdfast.golden-prune/v1`) for programs.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// The document for programs.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    /// `planned` or `done`.
    outcome: &'static str,
    goldens: &'a [Fate],
}

/// The decision about one image.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Fate {
    version: GoldenVersion,
    size_bytes: u64,
    /// Why it stays; none when it can be removed.
    stays: Option<String>,
}

pub(super) fn run(arguments: &PruneArguments) -> Result<(), GoldenError> {
    let (settings, dump, found) = stored(&arguments.config)?;
    let sections = admin_socket::ask(&settings.state.dir).map_err(GoldenError::Status)?.sections;
    let (Some(guests), Some(host)) = (sections.guests, sections.host) else {
        return Err(GoldenError::Unseen);
    };
    let named = settings.golden.iter().map(|golden| &golden.version).collect();
    let known = PruneFacts { reports: &host.goldens, guests: &guests, named };
    let mut fates = fates(&found, &known);
    choose(&mut fates, &arguments.versions)?;
    let outcome = if arguments.yes {
        let folder = open(&dump.folder)?;
        for fate in fates.iter().filter(|fate| fate.stays.is_none()) {
            let mut these = found.iter().filter(|golden| golden.manifest.version == fate.version);
            these.try_for_each(|golden| remove(&folder, golden))?;
        }
        "done"
    } else {
        "planned"
    };
    match arguments.output {
        Output::Json => {
            let schema = "holdfast.golden-prune/v1";
            crate::print_json(&Document { schema, outcome, goldens: &fates });
        }
        Output::Table => print!("{}", page(&fates, outcome)),
    }
    Ok(())
}

/// Applies an operator's choice: a named image that must stay is refused, and one that is not named stays.
fn choose(fates: &mut [Fate], named: &[GoldenVersion]) -> Result<(), GoldenError> {
    for version in named {
        let fate = fates.iter().find(|fate| fate.version == *version);
        match fate.map(|fate| &fate.stays) {
            None => return Err(GoldenError::NoSuch(version.clone())),
            Some(Some(why)) => {
                return Err(GoldenError::Stays { version: version.clone(), why: why.clone() });
            }
            Some(None) => {}
        }
    }
    for fate in fates.iter_mut().filter(|fate| !named.is_empty() && !named.contains(&fate.version)) {
        fate.stays.get_or_insert_with(|| "nobody named it".to_owned());
    }
    Ok(())
}

/// The folder: as root only where no other user can write to it.
fn open(folder: &Path) -> Result<HeldFolder, GoldenError> {
    let opened = if rustix::process::geteuid().is_root() {
        HeldFolder::roots_alone(folder)
    } else {
        HeldFolder::open(folder)
    };
    opened.map_err(GoldenError::Folder)
}

/// The facts about which guest needs which image.
struct PruneFacts<'a> {
    reports: &'a [GoldenReport],
    guests: &'a [GuestReport],
    named: BTreeSet<&'a GoldenVersion>,
}

/// The decision about each, oldest first.
fn fates(found: &[StoredImage], known: &PruneFacts<'_>) -> Vec<Fate> {
    let approved = known.reports.iter().filter(|report| report.status == ImageStatus::Approved);
    let newest_approved = approved.map(|report| &report.version).max_by_key(|version| version.age_key());
    let newest = found.iter().map(|golden| &golden.manifest.version).max_by_key(|version| version.age_key());
    let mut fates: Vec<Fate> = found
        .iter()
        .map(|golden| {
            let version = &golden.manifest.version;
            let from: Vec<&str> = known
                .guests
                .iter()
                .filter(|guest| guest.golden.as_ref() == Some(version))
                .map(|guest| guest.name.as_str())
                .collect();
            let stays = if !from.is_empty() {
                Some(format!("of {}", from.join(", ")))
            } else if newest_approved == Some(version) {
                Some("the newest that guests may be made from".to_owned())
            } else if newest == Some(version) {
                Some("the newest that was built".to_owned())
            } else if known.named.contains(version) {
                Some("root named it in agent.toml".to_owned())
            } else {
                strange(golden)
            };
            Fate { version: version.clone(), size_bytes: golden.manifest.size_bytes, stays }
        })
        .collect();
    keep_shared(found, &mut fates);
    fates
}

/// Why an image does not count as the builder's, or may not be deleted in Proxmox either.
fn strange(golden: &StoredImage) -> Option<String> {
    let number = GoldenDump::vmid()?;
    if !golden.manifest.archive.starts_with(&format!("vzdump-lxc-{number}-")) {
        return Some(format!("{} is no archive of the golden builder's", golden.manifest.archive));
    }
    let kept = PathBuf::from(format!("{}.protected", golden.archive.display()));
    kept.exists().then(|| "Proxmox keeps it protected".to_owned())
}

/// An archive that an image which stays is in, too, stays.
fn keep_shared(found: &[StoredImage], fates: &mut [Fate]) {
    let kept: BTreeSet<&Path> = found
        .iter()
        .zip(fates.iter())
        .filter(|(_, fate)| fate.stays.is_some())
        .map(|(golden, _)| golden.archive.as_path())
        .collect();
    for (golden, fate) in found.iter().zip(fates.iter_mut()) {
        if fate.stays.is_none() && kept.contains(golden.archive.as_path()) {
            fate.stays = Some("another one that stays has the same archive".to_owned());
        }
    }
}

/// Removes the archive with the files that Proxmox puts next to it, the bill of materials, and last the manifest by
/// which it is found.
fn remove(folder: &HeldFolder, golden: &StoredImage) -> Result<(), GoldenError> {
    let copy_of = |end: &str| PathBuf::from(format!("{}{end}", golden.archive.display()));
    let plain = |name: &&String| name.starts_with("golden-") && !name.contains('/');
    let sbom = golden.manifest.sbom.as_ref().filter(plain).map(|name| golden.file.with_file_name(name));
    let files =
        [golden.archive.clone(), copy_of(".notes")].into_iter().chain(sbom).chain([golden.file.clone()]);
    for path in files {
        let Some(name) = path.file_name() else { continue };
        folder
            .remove(name)
            .map_err(|error| GoldenError::Remove { path: path.clone(), source: error.into() })?;
    }
    Ok(())
}

fn page(fates: &[Fate], outcome: &str) -> String {
    let (going, gone) = match outcome {
        "done" => ("is gone", "gone"),
        _ => ("could go", "could go: name them and say --yes"),
    };
    let mut page = String::new();
    for fate in fates {
        let what = fate.stays.as_ref().map_or_else(|| going.to_owned(), |why| format!("stays: {why}"));
        page.push_str(&format!("{:12} {what}\n", fate.version.to_string()));
    }
    let bytes: u64 = fates.iter().filter(|fate| fate.stays.is_none()).map(|fate| fate.size_bytes).sum();
    let count = fates.iter().filter(|fate| fate.stays.is_none()).count();
    if count == 0 {
        return page + "No image is without use.\n";
    }
    format!("{page}{count} with {} MB {gone}\n", bytes / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lay(folder: &Path, version: &str, archive: &str) -> StoredImage {
        let sbom = format!("golden-{version}.spdx.json");
        let manifest = serde_json::json!({
            "schema": "holdfast.golden-manifest/v1", "version": version, "contents": "complete",
            "archive": archive, "sha256": "ab".repeat(32), "size_bytes": 151_000_000, "sbom": sbom,
            "recipe_sha256": "", "guestd_sha256": "", "source_date_epoch": 1,
            "build": { "made_at_s": 1, "seconds": 1, "entries": 1, "content_bytes": 1 }, "packages": [],
        });
        let file = folder.join(format!("golden-{version}.json"));
        for path in [&file, &folder.join(&sbom), &folder.join(archive)] {
            std::fs::write(path, manifest.to_string()).unwrap();
        }
        StoredImage {
            manifest: serde_json::from_value(manifest).unwrap(),
            file,
            archive: folder.join(archive),
        }
    }

    fn report(version: &str, status: ImageStatus) -> GoldenReport {
        GoldenReport {
            version: version.parse().unwrap(),
            sha256: Some("ab".repeat(32)),
            status,
            rootfs_bytes: None,
            build: None,
        }
    }

    fn guest(name: &str, golden: &str) -> GuestReport {
        let guest =
            serde_json::json!({ "name": name, "status": "managed", "run": "running", "golden": golden });
        serde_json::from_value(guest).unwrap()
    }

    #[test]
    fn only_what_no_one_needs_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let found = [
            lay(at, "2026.07.1", "vzdump-lxc-900001-a.tar.zst"),
            lay(at, "2026.08.1", "vzdump-lxc-900001-b.tar.zst"),
            lay(at, "2026.09.1", "vzdump-lxc-900001-c.tar.zst"),
            lay(at, "2026.09.2", "vzdump-lxc-100-backup.tar.zst"),
            lay(at, "2026.09.3", "vzdump-lxc-900001-d.tar.zst"),
            lay(at, "2026.09.4", "vzdump-lxc-900001-b.tar.zst"),
            lay(at, "2026.09.5", "vzdump-lxc-900001-e.tar.zst"),
            lay(at, "2026.10.1", "vzdump-lxc-900001-f.tar.zst"),
            lay(at, "2026.10.2", "vzdump-lxc-900001-g.tar.zst"),
            lay(at, "2026.10.10", "vzdump-lxc-900001-h.tar.zst"),
        ];
        std::fs::write(at.join("vzdump-lxc-900001-d.tar.zst.protected"), "").unwrap();
        let named: GoldenVersion = "2026.09.1".parse().unwrap();
        let reports = [
            report("2026.07.1", ImageStatus::Approved),
            report("2026.10.1", ImageStatus::Approved),
            report("2026.10.2", ImageStatus::Waiting),
        ];
        let guests = [guest("web", "2026.08.1"), guest("mail", "2026.06.1")];
        let known = PruneFacts { reports: &reports, guests: &guests, named: [&named].into() };
        let fates = fates(&found, &known);
        let stays: Vec<&str> = fates.iter().map(|fate| fate.stays.as_deref().unwrap_or("goes")).collect();
        assert_eq!(
            stays,
            [
                "goes",
                "of web",
                "root named it in agent.toml",
                "vzdump-lxc-100-backup.tar.zst is no archive of the golden builder's",
                "Proxmox keeps it protected",
                "another one that stays has the same archive",
                "goes",
                "the newest that guests may be made from",
                "goes",
                "the newest that was built",
            ]
        );
        let shown = page(&fates, "planned");
        assert!(
            shown.contains("2026.08.1    stays: of web") && shown.contains("3 with 453 MB could go"),
            "{shown}"
        );

        let count = || std::fs::read_dir(at).unwrap().count();
        let before = count();
        let held = HeldFolder::open(at).unwrap();
        remove(&held, &found[0]).unwrap();
        assert_eq!(before - count(), 3, "archive, bill of materials, manifest");
        assert!(!found[0].archive.exists() && found[1].archive.exists());
        remove(&held, &found[0]).unwrap();
        assert_eq!(before - count(), 3, "a second time finds nothing");
    }

    #[test]
    fn only_what_a_person_names_goes() {
        let fate = |version: &str, stays: Option<&str>| Fate {
            version: version.parse().unwrap(),
            size_bytes: 1,
            stays: stays.map(str::to_owned),
        };
        let reported =
            || [fate("2026.07.1", None), fate("2026.08.1", None), fate("2026.09.1", Some("of web"))];
        let named = |versions: &[&str]| {
            let versions: Vec<GoldenVersion> = versions.iter().map(|one| one.parse().unwrap()).collect();
            let mut fates = reported();
            choose(&mut fates, &versions).map(|()| fates.map(|fate| fate.stays.is_none()))
        };
        assert_eq!(named(&[]).unwrap(), [true, true, false], "shown, and --yes takes no such line");
        assert_eq!(named(&["2026.08.1"]).unwrap(), [false, true, false]);
        assert!(matches!(named(&["2026.08.1", "2026.09.1"]), Err(GoldenError::Stays { .. })));
        assert!(matches!(named(&["2026.10.1"]), Err(GoldenError::NoSuch(_))));
    }

    /// As root: a folder that another user can change is no folder of goldens.
    #[test]
    fn a_folder_that_others_write_to_is_left_alone() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        open(folder.path()).unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(
            matches!(open(folder.path()), Err(GoldenError::Folder(error)) if error.code() == "E_WRITABLE")
        );
    }

    #[test]
    fn the_only_one_stays_though_no_one_signed_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let found = [lay(folder.path(), "2026.10.1", "vzdump-lxc-900001-a.tar.zst")];
        let fates = fates(&found, &PruneFacts { reports: &[], guests: &[], named: BTreeSet::new() });
        assert!(fates[0].stays.is_some());
        assert!(page(&fates, "done").ends_with("No image is without use.\n"));
    }
}
