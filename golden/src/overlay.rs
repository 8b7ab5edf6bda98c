//! Overlay: our units and controller added, machine-specific files removed.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::image::{Content, Entry, Image, Kind};
use super::recipe::Recipe;

/// The path of the controller in a guest.
const CONTROLLER: &str = "usr/bin/guestd";

pub fn put_controller(image: &mut Image, guestd: &Path) -> Result<()> {
    ensure!(
        guestd.is_file(),
        "{} is no file: it is the controller that goes into every guest",
        guestd.display()
    );
    image.put(CONTROLLER, Entry::own(0o755, Kind::File(Content::Host(guestd.to_owned()))));
    Ok(())
}

/// Puts our units in, enabled, and masks those that the recipe names.
pub fn put_units(image: &mut Image, folder: &Path, recipe: &Recipe) -> Result<()> {
    for unit in &recipe.units {
        let path = folder.join("units").join(&unit.file);
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let wants: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("WantedBy=")).collect();
        ensure!(
            wants.iter().copied().eq(unit.wanted_by.as_deref()),
            "{} and the recipe disagree on what wants it",
            path.display()
        );
        let installed = format!("usr/lib/systemd/system/{}", unit.file);
        image.put_text(&installed, 0o644, &text);
        if let Some(target) = &unit.wanted_by {
            let wish = format!("etc/systemd/system/{target}.wants/{}", unit.file);
            image.put_link(&wish, &format!("/{installed}"));
        }
    }
    for unit in &recipe.debian.masked_units {
        image.put_link(&format!("etc/systemd/system/{unit}"), "/dev/null");
    }
    Ok(())
}

/// Puts our own files in.
pub fn put_files(image: &mut Image, folder: &Path, recipe: &Recipe) -> Result<()> {
    for file in &recipe.files {
        let path = folder.join("files").join(&file.file);
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        image.put_text(&file.installed, 0o644, &text);
    }
    Ok(())
}

/// Puts the sources of apt in: those of the recipe alone, whatever the build itself fetched from.
pub fn put_sources(image: &mut Image, recipe: &Recipe) {
    image.remove_where(|path| {
        path.starts_with("etc/apt/sources.list.d/") || path == "etc/apt/apt.conf.d/99mmdebstrap"
    });
    image.put_text("etc/apt/sources.list", 0o644, &(recipe.debian.sources.join("\n") + "\n"));
}

/// Removes files that are specific to one machine or one moment, or that are no longer used.
pub fn strip(image: &mut Image) {
    const EXACT: [&str; 9] = [
        "etc/hostname",
        "etc/resolv.conf",
        // What `ssl-cert` makes for the machine that it is installed on; `make-ssl-cert` makes a guest its own.
        "etc/ssl/private/ssl-cert-snakeoil.key",
        "var/cache/ldconfig/aux-cache",
        "var/lib/dbus/machine-id",
        "var/lib/systemd/credential.secret",
        "var/lib/systemd/random-seed",
        "var/log/lastlog",
        "var/log/wtmp",
    ];
    const BELOW: [&str; 7] =
        ["dev/", "proc/", "run/", "sys/", "tmp/", "var/cache/apt/", "var/lib/apt/lists/"];
    // What a program keeps of the state before its last change.
    const COPIES: [&str; 6] =
        ["etc/passwd-", "etc/group-", "etc/shadow-", "etc/gshadow-", "etc/subuid-", "etc/subgid-"];
    let is_log =
        |path: &str| path.starts_with("var/log/") && (path.contains(".log") || path.ends_with("btmp"));
    let is_host_key = |path: &str| path.starts_with("etc/ssh/ssh_host_");
    let is_old = |path: &str| {
        path.ends_with("-old")
            && (path.starts_with("var/lib/dpkg/") || path.starts_with("var/cache/debconf/"))
    };
    image.remove_where(|path| {
        EXACT.contains(&path)
            || COPIES.contains(&path)
            || BELOW.iter().any(|top| path.starts_with(top))
            || is_log(path)
            || is_old(path)
            || is_host_key(path)
    });
    // Empty, not absent: systemd then makes one at the first boot without taking it for an installation.
    image.put_text("etc/machine-id", 0o444, "");
}
