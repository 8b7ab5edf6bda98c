//! Calls of `apt-get` for upgrades, and their answers. Pure.
//!
//! Priorities decide what may be upgraded, in a file that replaces `/etc/apt/preferences` for these calls. Installed
//! packages are upgraded only from Debian's security archive; their new dependencies may come from any archive. The
//! operator's own pins in `/etc/apt/preferences.d`, and held packages, still apply.

use std::path::Path;
use std::time::Duration;

use crate::program::Call;

/// Installed packages have 100, so 50 is installed only where nothing is.
pub const PRIORITIES: &str = "Package: *\nPin: release l=Debian-Security\nPin-Priority: 500\n\n\
                              Package: *\nPin: release a=now\nPin-Priority: 100\n\n\
                              Package: *\nPin: release *\nPin-Priority: 50\n";

/// By this the hook knows whose run it is.
pub const VARIABLE: &str = "HOLDFAST_UPGRADE";

const UPDATE: Duration = Duration::from_secs(1_800);
const LOOK: Duration = Duration::from_secs(300);
/// Killed, it would leave packages half done: it is far longer than any upgrade takes.
const UPGRADE: Duration = Duration::from_secs(4 * 3_600);

fn call(words: &[&str], limit: Duration) -> Call {
    // Another process may hold the lock for a while.
    let argv = ["apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=600"].iter().chain(words);
    let env = [
        ("DEBIAN_FRONTEND", "noninteractive"),
        ("APT_LISTCHANGES_FRONTEND", "none"),
        ("UCF_FORCE_CONFFOLD", "1"),
        (VARIABLE, "1"),
    ];
    Call {
        argv: argv.map(|word| (*word).to_owned()).collect(),
        env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        folder: Some("/".into()),
        limit,
    }
}

/// Has the lists of packages renewed. A list that cannot be fetched is an error: an old list must not be taken for the
/// newest.
pub fn update() -> Call {
    // Packed, they take a fifth of the room, which each backup of the guest holds too.
    let packed = ["-o", "Acquire::GzipIndexes=true", "-o", "Acquire::Languages=none"];
    call(&[&packed[..], &["-o", "APT::Update::Error-Mode=any", "update"]].concat(), UPDATE)
}

/// Lists what would be upgraded.
pub fn look(priorities: &Path) -> Call {
    call(&["-s", "--with-new-pkgs", "-o", &preferences(priorities), "upgrade"], LOOK)
}

/// Upgrades. Settings that a person changed stay as they are.
pub fn upgrade(priorities: &Path) -> Call {
    call(
        &[
            "--with-new-pkgs",
            "-o",
            "Dpkg::Options::=--force-confdef",
            "-o",
            "Dpkg::Options::=--force-confold",
            "-o",
            &preferences(priorities),
            "upgrade",
        ],
        UPGRADE,
    )
}

/// Throws the fetched packages away.
pub fn clean() -> Call {
    call(&["clean"], LOOK)
}

fn preferences(path: &Path) -> String {
    format!("Dir::Etc::Preferences={}", path.display())
}

/// Which packages would be upgraded.
pub fn upgraded(out: &str) -> Vec<&str> {
    out.lines().filter_map(|line| line.strip_prefix("Inst ")?.split(' ').next()).collect()
}

/// Some of the names, to show to people.
pub fn named(packages: &[&str]) -> String {
    const NAMED_MAX: usize = 2;
    let named = packages.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
    match packages.len().saturating_sub(NAMED_MAX) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_upgraded_is_read_from_apts_plan() {
        // As apt 2.6 says it, with these priorities.
        let plan = "NOTE: This is only a simulation!\nReading package lists...\n\
            Inst libgcrypt20-dev [1.10.1-3] (1.10.1-3+deb12u1 Debian:12.15/oldstable, Debian-Security:12/oldstable-security [amd64]) []\n\
            Inst liblzma5 [5.4.1-1] (5.4.1-1+deb12u2 Debian-Security:12/oldstable-security [amd64])\n\
            Conf liblzma5 (5.4.1-1+deb12u2 Debian-Security:12/oldstable-security [amd64])\n";
        assert_eq!(upgraded(plan), ["libgcrypt20-dev", "liblzma5"]);
        assert_eq!(named(&upgraded(plan)), "libgcrypt20-dev, liblzma5");
        assert_eq!(named(&["a", "b", "c", "d"]), "a, b and 2 more");
        assert!(upgraded("0 upgraded, 0 newly installed, 0 to remove and 9 not upgraded.\n").is_empty());
    }

    #[test]
    fn apt_does_not_prompt_and_keeps_local_settings() {
        let line = upgrade(Path::new("/run/holdfast/upgrade.pref")).line();
        assert!(
            line.contains("--force-confold") && line.contains("Dir::Etc::Preferences=/run/holdfast/"),
            "{line}"
        );
        let env = upgrade(Path::new("/x")).env;
        assert!(env.contains(&("DEBIAN_FRONTEND".to_owned(), "noninteractive".to_owned())));
        assert!(env.iter().any(|(name, _)| name == VARIABLE), "the hook knows whose run it is");
    }
}
