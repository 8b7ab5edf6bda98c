//! Seeding: a fresh state folder from a lab folder.
//!
//! In: a folder in the form of `lab/` (`user.cfg`, `storage.cfg`, `interfaces`, `NNN.conf`, `volumes.txt`, archives next to it), or the lab
//! that is built in. Out: a state folder with real files for every volume that is named. A file that the lab lists but does not contain is
//! made up: a small real archive whose configuration fits its name, listed with the size that `volumes.txt` says.
use std::collections::BTreeMap;
use std::path::Path;

use super::Paths;
use super::seed_error::SeedError;
use crate::access::config::AccessConfig;
use crate::access::credential::{Secrets, hex};
use crate::clock::Clock;
use crate::guest::config::GuestConfig;
use crate::schema::format::parse_size;
use crate::storage::config::StorageConfig;
use crate::storage::volume::Store;

/// The built-in lab: name and text.
const LAB: &[(&str, &str)] = &[
    ("user.cfg", include_str!("../../lab/user.cfg")),
    ("storage.cfg", include_str!("../../lab/storage.cfg")),
    ("interfaces", include_str!("../../lab/interfaces")),
    ("volumes.txt", include_str!("../../lab/volumes.txt")),
    ("100.conf", include_str!("../../lab/100.conf")),
    ("200.conf", include_str!("../../lab/200.conf")),
];

fn file(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> SeedError {
    let what = what.into();
    move |source| SeedError::File { what, source }
}

/// Seeds a state folder unless it is seeded already. `root_password` is what `root@pam` logs in with.
///
/// # Errors
/// When a file cannot be read or written.
pub fn seed(
    paths: &Paths,
    from: Option<&Path>,
    clock: &dyn Clock,
    root_password: &str,
) -> Result<(), SeedError> {
    paths.make().map_err(file("state folder"))?;
    if paths.etc("seeded").exists() {
        return Ok(());
    }
    let texts = read(from)?;
    let text = |name: &str| texts.get(name).map_or("", String::as_str);
    let access = AccessConfig::parse(text("user.cfg"));
    let storage = StorageConfig::parse(text("storage.cfg"));
    for name in ["user.cfg", "storage.cfg", "interfaces"] {
        std::fs::write(paths.etc(name), text(name)).map_err(file(name))?;
    }
    secrets(paths, &access, clock, root_password)?;
    let (root, run) = (paths.root(), paths.run());
    let store = Store { config: &storage, root: &root, run: &run };
    for (name, config) in texts.iter().filter(|(name, _)| name.ends_with(".conf")) {
        std::fs::write(paths.lxc().join(name), config).map_err(file(name))?;
        disks(&store, &GuestConfig::parse(config))?;
    }
    for line in text("volumes.txt").lines() {
        if let Some((volid, size)) = line.trim().rsplit_once(' ') {
            super::volumes::provide(&store, from, volid, size.parse().unwrap_or_default())?;
        }
    }
    std::fs::write(paths.etc("seeded"), "").map_err(file("seeded"))
}

fn read(from: Option<&Path>) -> Result<BTreeMap<String, String>, SeedError> {
    let Some(from) = from else {
        return Ok(LAB.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect());
    };
    let mut texts = BTreeMap::new();
    for entry in std::fs::read_dir(from).map_err(file(from.display().to_string()))? {
        let path = entry.map_err(file(from.display().to_string()))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if name.ends_with(".conf") || LAB.iter().any(|(known, _)| *known == name) {
            texts.insert(name, std::fs::read_to_string(&path).map_err(file(path.display().to_string()))?);
        }
    }
    Ok(texts)
}

fn secrets(
    paths: &Paths,
    access: &AccessConfig,
    clock: &dyn Clock,
    root_password: &str,
) -> Result<(), SeedError> {
    let fresh = || {
        let mut bytes = [0_u8; 16];
        clock.random(&mut bytes);
        let text = hex(&bytes);
        let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
        [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
    };
    let mut held = Secrets { key: fresh(), ..Secrets::default() };
    for (user, config) in &access.users {
        held.tokens.extend(config.tokens.keys().map(|token| (format!("{user}!{token}"), fresh())));
    }
    held.set_password("root@pam", &fresh(), root_password);
    let files = [
        ("token.cfg", Secrets::print(&held.tokens, ' ')),
        ("shadow.cfg", Secrets::print(&held.passwords, ':')),
        ("ticket.key", held.key.clone()),
    ];
    files.into_iter().try_for_each(|(name, text)| std::fs::write(paths.etc(name), text).map_err(file(name)))
}

/// Makes the (empty) volumes that a configuration names.
fn disks(store: &Store<'_>, config: &GuestConfig) -> Result<(), SeedError> {
    let volumes = config.main.values.iter().filter(|(key, _)| crate::guest::options::is_volume_key(key));
    for (_, value) in volumes.filter(|(_, value)| !value.starts_with('/')) {
        let volid = value.split(',').next().unwrap_or_default();
        let bytes = value
            .split(',')
            .find_map(|part| part.strip_prefix("size="))
            .and_then(parse_size)
            .unwrap_or(1 << 30);
        make_disk(store, volid, bytes)?;
    }
    Ok(())
}

/// Makes one volume under its given name.
///
/// # Errors
/// When its storage is not there or its folder cannot be made.
pub fn make_disk(store: &Store<'_>, volid: &str, bytes: u64) -> Result<(), SeedError> {
    let wrong = |why: String| SeedError::Volume { what: volid.to_owned(), why };
    let at = store.locate(volid).map_err(|refusal| wrong(refusal.message))?;
    let crate::storage::volume::VolumeName::Image { vmid, name } = &at.name else {
        return Err(wrong("not a disk image".to_owned()));
    };
    store.make(at.definition, *vmid, name, bytes).map_err(|refusal| wrong(refusal.message))
}
