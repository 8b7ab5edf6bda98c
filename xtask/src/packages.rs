//! The Debian packages that demo and CI use: installed when root, else named, with what is left out without them.

use anyhow::Result;

use crate::workspace::{has, must, program};

/// One program that a Debian package brings.
pub struct Need {
    /// The program.
    pub program: &'static str,
    /// Its package.
    pub package: &'static str,
    /// What is left out without it.
    pub without: &'static str,
}

/// All of them.
pub const NEEDS: &[Need] = &[
    Need {
        program: "systemd-nspawn",
        package: "systemd-container",
        without: "guests that boot a real systemd",
    },
    Need {
        program: "mmdebstrap",
        package: "mmdebstrap",
        without: "the golden image built from Debian (a small busybox one is used)",
    },
    Need { program: "busybox", package: "busybox-static", without: "the small golden image" },
    Need { program: "g++", package: "g++", without: "fuzzing: libFuzzer is written in C++" },
    Need { program: "ip", package: "iproute2", without: "guests on a bridge of their own" },
    Need { program: "nft", package: "nftables", without: "the bridge on which restored backups are tried" },
    Need { program: "sysctl", package: "procps", without: "a host that forwards, for the bridge of tests" },
    Need {
        program: "ssh-keygen",
        package: "openssh-client",
        without: "holding signatures to what stock OpenSSH makes and takes",
    },
    Need {
        program: "openssl",
        package: "openssl",
        without: "holding our TLS listeners to what stock OpenSSL makes of them",
    },
    Need {
        program: "curl",
        package: "curl",
        without: "holding our HTTPS listeners to what stock curl makes of them",
    },
    Need {
        program: "age",
        package: "age",
        without: "opening escrow files as somebody without Holdfast would",
    },
    Need { program: "jq", package: "jq", without: "taking the key out of an escrow file by hand" },
    Need {
        program: "pdftotext",
        package: "poppler-utils",
        without: "reading the printed recovery sheet back",
    },
    Need {
        program: "zbarimg",
        package: "zbar-tools",
        without: "reading the QR codes of the recovery sheet back",
    },
    Need { program: "dpkg-shlibdeps", package: "dpkg-dev", without: "Debian packages" },
    Need { program: "lintian", package: "lintian", without: "judging the Debian packages" },
    Need { program: "faketime", package: "faketime", without: "an agent that sees the next day" },
    Need { program: "setpriv", package: "util-linux", without: "running the agent as another user" },
    Need { program: "visudo", package: "sudo", without: "holding the sudoers file to what sudo takes" },
    Need { program: "sfdisk", package: "fdisk", without: "disks with partitions for the helper" },
    Need { program: "mkfs.ext4", package: "e2fsprogs", without: "disks for the helper" },
    Need { program: "mkfs.xfs", package: "xfsprogs", without: "disks with xfs for the helper" },
    Need { program: "mkfs.btrfs", package: "btrfs-progs", without: "disks with btrfs for the helper" },
];

/// Whether this process is root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Installs what is missing when root; otherwise says what will be left out.
pub fn prepare() -> Result<()> {
    let missing: Vec<&Need> = NEEDS.iter().filter(|need| !has(need.program)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|need| need.package).collect();
    if !is_root() {
        for need in missing {
            println!("not installed: {} — left out: {}", need.package, need.without);
        }
        println!("to have it all: sudo apt-get install --no-install-recommends {}", names.join(" "));
        return Ok(());
    }
    println!("installing {}", names.join(" "));
    must(program("apt-get").args(["-q", "update"]))?;
    let mut install = program("apt-get");
    install.env("DEBIAN_FRONTEND", "noninteractive").args(["-q", "-y", "install", "--no-install-recommends"]);
    must(install.args(names))
}
