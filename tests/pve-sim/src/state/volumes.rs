//! The archives and templates of a seed.
//!
//! In: a volume id and the size it is listed with. Out: a real file, either from the seed or made up. Where the made-up file is smaller
//! than listed, the listed size is kept in a file next to it (`NAME.size`), because a gigabyte of padding has no use.
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::seed_error::SeedError;
use crate::storage::volume::{Store, backup_owner};

/// Genuine archives that are built in.
const ARCHIVES: &[(&str, &[u8])] = &[
    (
        "vzdump-lxc-140-2026_11_21-04_00_56.tar.zst",
        include_bytes!("../../lab/archives/vzdump-lxc-140-2026_11_21-04_00_56.tar.zst"),
    ),
    (
        "vzdump-lxc-155-2026_11_21-04_02_15.tar.zst",
        include_bytes!("../../lab/archives/vzdump-lxc-155-2026_11_21-04_02_15.tar.zst"),
    ),
    (
        "vzdump-lxc-159-2026_11_21-04_02_21.tar.zst",
        include_bytes!("../../lab/archives/vzdump-lxc-159-2026_11_21-04_02_21.tar.zst"),
    ),
];

/// The bytes of a genuine archive.
#[must_use]
pub fn genuine() -> Option<&'static [u8]> {
    ARCHIVES.first().map(|(_, bytes)| *bytes)
}

/// Puts one volume in place.
///
/// # Errors
/// When it cannot be written.
pub fn provide(
    store: &Store<'_>,
    from: Option<&Path>,
    volid: &str,
    listed_bytes: u64,
) -> Result<(), SeedError> {
    let failed = |source| SeedError::File { what: volid.to_owned(), source };
    let at = store
        .locate(volid)
        .map_err(|refusal| SeedError::Volume { what: volid.to_owned(), why: refusal.message })?;
    let place = store.place(&at);
    let name = place.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    if let Some(parent) = place.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    if let Some(brought) = find(from, &name) {
        std::fs::copy(brought, &place).map_err(failed)?;
        return Ok(());
    }
    if let Some((_, bytes)) = ARCHIVES.iter().find(|(held, _)| *held == name) {
        return std::fs::write(&place, bytes).map_err(failed);
    }
    if name.ends_with(".notes") {
        return std::fs::write(&place, "x").map_err(failed);
    }
    let plain = tree(&name).map_err(failed)?;
    let packed = compress(&name, &plain).map_err(failed)?;
    std::fs::write(&place, &packed).map_err(failed)?;
    if listed_bytes != packed.len() as u64 {
        std::fs::write(sized(&place), listed_bytes.to_string()).map_err(failed)?;
    }
    Ok(())
}

/// Where the listed size of a made-up file is kept.
#[must_use]
pub fn sized(place: &Path) -> PathBuf {
    let mut text = place.as_os_str().to_owned();
    text.push(".size");
    PathBuf::from(text)
}

fn find(from: Option<&Path>, name: &str) -> Option<PathBuf> {
    let from = from?;
    let copy_of = from.parent().map(|parent| parent.join("archives"));
    [Some(from.to_owned()), copy_of]
        .into_iter()
        .flatten()
        .map(|dir| dir.join(name))
        .find(|path| path.is_file())
}

/// A tiny root filesystem, and for a backup the configuration that travels inside.
fn tree(name: &str) -> std::io::Result<Vec<u8>> {
    tree_with(backup_owner(name).map(configuration).as_deref())
}

fn tree_with(config: Option<&str>) -> std::io::Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    let mut add = |path: &str, mode: u32, text: &str| -> std::io::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(1_795_230_000);
        header.set_entry_type(if path.ends_with('/') {
            tar::EntryType::Directory
        } else {
            tar::EntryType::Regular
        });
        // Names as tar writes them, with their leading dot, which the library would take away.
        for (slot, byte) in header.as_old_mut().name.iter_mut().zip(path.bytes()) {
            *slot = byte;
        }
        header.set_cksum();
        tar.append(&header, text.as_bytes())
    };
    if let Some(config) = config {
        add("./etc/vzdump/pct.conf", 0o644, config)?;
        add("./etc/vzdump/pct.fw", 0o644, "")?;
    }
    add("./", 0o755, "")?;
    for dir in [
        "bin",
        "dev",
        "etc",
        "etc/network",
        "home",
        "mnt",
        "proc",
        "root",
        "run",
        "sbin",
        "sys",
        "tmp",
        "usr",
        "var",
    ] {
        add(&format!("./{dir}/"), 0o755, "")?;
    }
    add("./etc/debian_version", 0o644, "12.0\n")?;
    add(
        "./etc/os-release",
        0o644,
        "ID=debian\nVERSION_ID=\"12\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (tiny)\"\n",
    )?;
    add("./etc/passwd", 0o644, "root:x:0:0:root:/root:/bin/sh\n")?;
    add("./etc/hostname", 0o644, "tiny\n")?;
    tar.into_inner()
}

/// The configuration of the guest with this number, as far as the lab records it.
fn configuration(vmid: u32) -> String {
    let net = "net0: name=eth0,bridge=vmbr0,hwaddr=BC:24:11:EE:25:8E,ip=10.66.0.140/24,type=veth\n";
    let mounts = format!(
        "mp0: labbtrfs:{vmid}/vm-{vmid}-disk-1.raw,mp=/data,backup=0,size=1G\nmp1: labbtrfs:{vmid}/vm-{vmid}-disk-2.raw,mp=/inc,backup=1,size=1G\n"
    );
    match vmid {
        140 => format!("arch: amd64\nhostname: ct140\nmemory: 128\n{mounts}{net}ostype: debian\nrootfs: labbtrfs:140/vm-140-disk-0.raw,size=1G\nswap: 0\nunprivileged: 1\n"),
        155 => "arch: amd64\nfeatures: nesting=1,keyctl=1\nhostname: ct155\nmemory: 128\nostype: debian\nrootfs: labdir:155/vm-155-disk-0.raw,size=1G\nswap: 0\nunprivileged: 1\n".to_owned(),
        159 => "arch: amd64\nhostname: ct159\nmemory: 128\nmp0: /srv,mp=/host\nostype: debian\nrootfs: labdir:159/vm-159-disk-0.raw,size=1G\nswap: 0\nlxc.environment: FOO=bar\n".to_owned(),
        200 => include_str!("../../lab/200.conf").to_owned(),
        other => format!("arch: amd64\nhostname: ct{other}\nmemory: 128\nostype: debian\nrootfs: labdir:{other}/vm-{other}-disk-0.raw,size=1G\nswap: 0\nunprivileged: 1\n"),
    }
}

fn compress(name: &str, plain: &[u8]) -> std::io::Result<Vec<u8>> {
    if name.ends_with(".zst") {
        return zstd::encode_all(plain, 3);
    }
    if name.ends_with(".gz") {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        writer.write_all(plain)?;
        return writer.finish();
    }
    Ok(plain.to_vec())
}

/// Writes a small real backup with this configuration inside.
///
/// # Errors
/// When it cannot be written.
pub fn write_backup(place: &Path, config: &str) -> std::io::Result<()> {
    let name = place.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    std::fs::write(place, compress(&name, &tree_with(Some(config))?)?)?;
    match std::fs::remove_file(sized(place)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
