//! Debian packages that demo, CI and benchmarks use.

use anyhow::Result;
use e2e::stage::Runtime;

use crate::workspace::{has, must, program};

/// One program that a Debian package brings.
pub struct Need {
    pub program: &'static str,
    pub package: &'static str,
    /// What is left out without it.
    pub without: &'static str,
    /// Whether the demo uses it; CI uses all of them.
    pub demo: Demo,
}

/// Which demo uses a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demo {
    No,
    Every,
    /// The one with guests of this kind.
    With(Runtime),
}

/// What packages are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Ci,
    /// What CI has, and what is measured for comparison.
    Benchmarks,
    /// A demo with guests of this kind.
    Demo(Runtime),
}

impl Need {
    /// Whether it is used for that.
    fn serves(&self, purpose: Purpose) -> bool {
        match (purpose, self.demo) {
            (Purpose::Ci | Purpose::Benchmarks, _) | (Purpose::Demo(_), Demo::Every) => true,
            (Purpose::Demo(_), Demo::No) => false,
            (Purpose::Demo(runtime), Demo::With(with)) => runtime == with,
        }
    }
}

/// What benchmarks compare with. No other purpose installs it: it may bring a service that starts.
const COMPARED: &[Need] = &[
    Need {
        program: "zabbix_agent2",
        package: "zabbix-agent2",
        without: "the agent's start, measured against that of zabbix-agent2",
        demo: Demo::No,
    },
    Need {
        program: "etcd",
        package: "etcd-server",
        without: "the hub, measured against etcd",
        demo: Demo::No,
    },
];

/// All others.
pub const NEEDS: &[Need] = &[
    Need {
        program: "systemd-nspawn",
        package: "systemd-container",
        without: "guests that boot a real systemd",
        demo: Demo::With(Runtime::Nspawn),
    },
    Need {
        program: "mmdebstrap",
        package: "mmdebstrap",
        without: "the golden image built from Debian (a small busybox one is used)",
        demo: Demo::With(Runtime::Nspawn),
    },
    Need {
        program: "busybox",
        package: "busybox-static",
        without: "the small golden image",
        demo: Demo::With(Runtime::Process),
    },
    Need { program: "g++", package: "g++", without: "fuzzing: libFuzzer is written in C++", demo: Demo::No },
    Need {
        program: "ip",
        package: "iproute2",
        without: "guests on a bridge of their own, and restore tests",
        demo: Demo::Every,
    },
    Need {
        program: "nft",
        package: "nftables",
        without: "the bridge on which restored backups are tried",
        demo: Demo::No,
    },
    Need {
        program: "sysctl",
        package: "procps",
        without: "a host that forwards, for the bridge of tests",
        demo: Demo::No,
    },
    Need {
        program: "ssh-keygen",
        package: "openssh-client",
        without: "signatures of an operator, and holding them to what stock OpenSSH makes and takes",
        demo: Demo::Every,
    },
    Need {
        program: "openssl",
        package: "openssl",
        without: "holding our TLS listeners to what stock OpenSSL makes of them",
        demo: Demo::No,
    },
    Need {
        program: "curl",
        package: "curl",
        without: "holding our HTTPS listeners to what stock curl makes of them",
        demo: Demo::No,
    },
    Need {
        program: "aiosmtpd",
        package: "python3-aiosmtpd",
        without: "sending mails to a real server with STARTTLS",
        demo: Demo::No,
    },
    Need {
        program: "promtool",
        package: "prometheus",
        without: "the metrics, held to what Prometheus makes of them",
        demo: Demo::No,
    },
    Need {
        program: "node",
        package: "nodejs",
        without: "sign-in by a real provider of identities",
        demo: Demo::No,
    },
    Need {
        program: "npm",
        package: "npm",
        without: "sign-in by a real provider of identities",
        demo: Demo::No,
    },
    Need {
        program: "prometheus-alertmanager",
        package: "prometheus-alertmanager",
        without: "alerts that are pushed to a real Alertmanager",
        demo: Demo::No,
    },
    Need {
        program: "age",
        package: "age",
        without: "opening escrow files as somebody without Holdfast would",
        demo: Demo::No,
    },
    Need {
        program: "jq",
        package: "jq",
        without: "taking the key out of an escrow file by hand",
        demo: Demo::No,
    },
    Need {
        program: "pdftotext",
        package: "poppler-utils",
        without: "reading the printed recovery sheet back",
        demo: Demo::No,
    },
    Need {
        program: "zbarimg",
        package: "zbar-tools",
        without: "reading the QR codes of the recovery sheet back",
        demo: Demo::No,
    },
    Need {
        program: "chromium",
        package: "chromium",
        without: "the hub's pages in a real browser",
        demo: Demo::No,
    },
    Need { program: "npm", package: "npm", without: "axe-core, which judges pages", demo: Demo::No },
    Need { program: "gpg", package: "gpg", without: "the signature over the apt repository", demo: Demo::No },
    Need { program: "dpkg-shlibdeps", package: "dpkg-dev", without: "Debian packages", demo: Demo::No },
    Need { program: "lintian", package: "lintian", without: "judging the Debian packages", demo: Demo::No },
    Need {
        program: "faketime",
        package: "faketime",
        without: "an agent that sees the next day",
        demo: Demo::No,
    },
    Need {
        program: "setpriv",
        package: "util-linux",
        without: "running the agent as another user",
        demo: Demo::Every,
    },
    Need {
        program: "visudo",
        package: "sudo",
        without: "holding the sudoers file to what sudo takes",
        demo: Demo::No,
    },
    Need {
        program: "sfdisk",
        package: "fdisk",
        without: "disks with partitions for the helper",
        demo: Demo::No,
    },
    Need { program: "mkfs.ext4", package: "e2fsprogs", without: "disks for the helper", demo: Demo::No },
    Need {
        program: "mkfs.xfs",
        package: "xfsprogs",
        without: "disks with xfs for the helper",
        demo: Demo::No,
    },
    Need {
        program: "mkfs.btrfs",
        package: "btrfs-progs",
        without: "disks with btrfs for the helper",
        demo: Demo::No,
    },
];

/// Whether this process is root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// What is used for that.
fn needs(purpose: Purpose) -> impl Iterator<Item = &'static Need> {
    let compared = match purpose {
        Purpose::Benchmarks => COMPARED,
        Purpose::Ci | Purpose::Demo(_) => &[],
    };
    NEEDS.iter().chain(compared).filter(move |need| need.serves(purpose))
}

/// Installs what is missing when root; otherwise says what will be left out.
pub fn prepare(purpose: Purpose) -> Result<()> {
    let missing: Vec<&Need> = needs(purpose).filter(|need| !has(need.program)).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demo_installs_what_it_uses_and_no_more() {
        let of = |purpose| -> Vec<&str> { needs(purpose).map(|need| need.program).collect() };
        assert_eq!(of(Purpose::Demo(Runtime::Process)), ["busybox", "ip", "ssh-keygen", "setpriv"]);
        assert_eq!(
            of(Purpose::Demo(Runtime::Nspawn)),
            ["systemd-nspawn", "mmdebstrap", "ip", "ssh-keygen", "setpriv"]
        );
        assert_eq!(of(Purpose::Ci).len(), NEEDS.len());
        assert_eq!(of(Purpose::Benchmarks).len(), NEEDS.len() + COMPARED.len());
    }
}
