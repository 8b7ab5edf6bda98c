//! Tiny image: busybox, the controller and its libraries.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::elf::libraries;
use super::image::{Content, Entry, Image, Kind};
use super::program::{program, run_to_end};

const DIRECTORIES: [&str; 13] = [
    "dev",
    "etc/network",
    "home",
    "mnt",
    "proc",
    "root",
    "run",
    "sbin",
    "srv",
    "sys",
    "usr/bin",
    "var/lib",
    "var/log",
];
/// The content of `/run` is of one boot, as everywhere.
const INITTAB: &str = "::sysinit:/bin/mount -t proc proc /proc\n\
                       ::sysinit:/bin/mount -t tmpfs -o mode=755,nosuid,nodev tmpfs /run\n\
                       ::sysinit:/etc/init.d/network\n\
                       ::respawn:/usr/bin/guestd run\n\
                       ::shutdown:/bin/umount -a -r\n";
/// Proxmox writes `/etc/network/interfaces` and leaves it to the guest to read it.
const NETWORK: &str = include_str!("../tiny/network");
const DHCP: &str = include_str!("../tiny/dhcp");
const OS_RELEASE: &str = "ID=debian\nNAME=\"Holdfast tiny guest\"\nVERSION_ID=\"12\"\n";

/// Makes the image, without the controller itself.
pub fn image(guestd: &Path) -> Result<Image> {
    let busybox = busybox()?;
    let mut image = Image::default();
    for directory in DIRECTORIES {
        image.put(directory, Entry::own(0o755, Kind::Directory));
    }
    image.put("tmp", Entry::own(0o1777, Kind::Directory));
    image.put("bin/busybox", Entry::own(0o755, Kind::File(Content::Host(busybox.clone()))));
    for applet in applets(&busybox)? {
        image.put_link(&format!("bin/{applet}"), "busybox");
    }
    image.put_link("sbin/init", "../bin/busybox");
    image.put_text("etc/inittab", 0o644, INITTAB);
    image.put_text("etc/init.d/network", 0o755, NETWORK);
    image.put_text("etc/udhcpc/default.script", 0o755, DHCP);
    image.put_link("var/run", "../run");
    image.put_text("etc/os-release", 0o644, OS_RELEASE);
    image.put_text("etc/debian_version", 0o644, "12.0\n");
    image.put_text("etc/passwd", 0o644, "root:x:0:0:root:/root:/bin/sh\n");
    image.put_text("etc/group", 0o644, "root:x:0:\n");
    image.put_text("etc/shadow", 0o640, "root:*:20000:0:99999:7:::\n");
    for library in libraries(guestd)? {
        let path = library.strip_prefix("/").context("a library has no absolute path")?;
        let content = library.canonicalize().with_context(|| format!("cannot find {}", library.display()))?;
        let path = path.to_str().context("a library has a name that is not UTF-8")?;
        image.put(path, Entry::own(0o755, Kind::File(Content::Host(content))));
    }
    Ok(image)
}

fn busybox() -> Result<PathBuf> {
    let found = ["/usr/bin/busybox", "/bin/busybox"].iter().map(PathBuf::from).find(|path| path.is_file());
    let busybox = found.context("busybox is missing; install busybox-static")?;
    ensure!(libraries(&busybox)?.is_empty(), "busybox is not static; install busybox-static");
    Ok(busybox)
}

fn applets(busybox: &Path) -> Result<Vec<String>> {
    let output = run_to_end(program(busybox).arg("--list"))?;
    let listed = String::from_utf8(output.stdout).context("busybox lists names that are not UTF-8")?;
    let plain = |name: &&str| !name.is_empty() && *name != "busybox" && !name.contains('/');
    Ok(listed.lines().filter(plain).map(str::to_owned).collect())
}
