//! Tunnels: root's list, the agent's files, and the units that hear it.
//!
//! Input: the tunnels that the installed settings name, and the files on the host. Output: steps. Root's list says which
//! unit each name means. The agent's group may write into files that are made here, and root's service follows no path of
//! the agent's. Deliberately absent: the tunnels themselves; their packages and settings are the operator's.

use std::path::{Path, PathBuf};

use holdfast_protocol::id::TunnelName;

use super::diff::StepState;
use super::local::{LocalAct, LocalError, LocalStep, file_state};
use super::plan::Choices;
use crate::model::tunnel::Tunnel;
use crate::port::atomic_file;
use crate::port::tunnels::TunnelFiles;
use crate::port::tunnels::files::{FOLDER, TunnelFile};

/// The template of the package.
const TEMPLATE: &str = "/usr/lib/systemd/system/holdfast-tunnel-restart@.path";
const WANTED: &str = "/etc/systemd/system/paths.target.wants";

/// The unit that starts root's service for a tunnel.
#[must_use]
pub fn path_unit(name: &TunnelName) -> String {
    format!("holdfast-tunnel-restart@{name}.path")
}

/// Where root's service reads which unit a name means.
#[must_use]
pub fn list(config: &Path) -> PathBuf {
    config.with_file_name("tunnels")
}

/// Root's list.
pub(super) fn list_text(tunnels: &[Tunnel]) -> String {
    let lines = tunnels.iter().map(|tunnel| format!("{} {}\n", tunnel.name, tunnel.unit));
    let head = "# Which unit holdfast-tunnel-restart@NAME.service may restart. Written by `agentd setup`.\n";
    std::iter::once(head.to_owned()).chain(lines).collect()
}

/// The files that the agent's group may write.
fn made(tunnels: &[Tunnel]) -> Vec<PathBuf> {
    let files = TunnelFiles::at(Path::new(FOLDER));
    let of = |tunnel: &Tunnel| TunnelFile::MADE.map(|kind| files.path(kind, &tunnel.name));
    tunnels.iter().flat_map(of).collect()
}

/// The folders, all of them root's.
fn folders() -> Vec<PathBuf> {
    let beneath = [TunnelFile::Request, TunnelFile::Result, TunnelFile::Token];
    let folder = Path::new(FOLDER);
    std::iter::once(folder.to_owned()).chain(beneath.map(|kind| folder.join(kind.folder()))).collect()
}

/// The steps of `setup`, where a tunnel is named or was.
///
/// # Errors
/// When a file at one of their paths cannot be read, or is a link.
pub(super) fn steps(choices: &Choices) -> Result<Vec<LocalStep>, LocalError> {
    let list = list(&choices.config);
    if choices.system_user.is_none()
        || !Path::new(TEMPLATE).exists()
        || (choices.tunnels.is_empty() && !atomic_file::is_there(&list)?)
    {
        return Ok(Vec::new());
    }
    let text = list_text(&choices.tunnels);
    let differs = StepState::Differs("it names other tunnels than the settings");
    let status = file_state(&list, &text, differs)?;
    let names: Vec<&str> = choices.tunnels.iter().map(|tunnel| tunnel.name.as_str()).collect();
    let what =
        format!("the tunnels that root's service may restart ({}), in {}", names.join(", "), list.display());
    let mut steps = Vec::new();
    for path in folders() {
        let status = if path.is_dir() { StepState::Done } else { StepState::Missing };
        steps.push(LocalStep {
            what: format!("folder {}", path.display()),
            status,
            act: LocalAct::OpenFolder(path),
        });
    }
    for path in made(&choices.tunnels) {
        let status = if atomic_file::is_there(&path)? { StepState::Done } else { StepState::Missing };
        let what = format!("file {}, root's, which the agent may write", path.display());
        steps.push(LocalStep { what, status, act: LocalAct::GroupFile { path } });
    }
    steps.push(LocalStep { what, status, act: LocalAct::PlainFile { path: list, text } });
    for tunnel in &choices.tunnels {
        let unit = path_unit(&tunnel.name);
        let is_wanted = Path::new(WANTED).join(&unit).symlink_metadata().is_ok();
        let status = if is_wanted { StepState::Done } else { StepState::Missing };
        let act = LocalAct::Command(["systemctl", "enable", "--now", &unit].map(str::to_owned).to_vec());
        steps.push(LocalStep { what: format!("unit {unit}, from boot on"), status, act });
    }
    steps.extend(no_longer(&choices.tunnels, enabled()));
    Ok(steps)
}

/// Units of tunnels that the settings do not name any more. Their files stay: a token may be in use.
fn no_longer(tunnels: &[Tunnel], enabled: Vec<String>) -> impl Iterator<Item = LocalStep> {
    let named: Vec<String> = tunnels.iter().map(|tunnel| path_unit(&tunnel.name)).collect();
    enabled.into_iter().filter(move |unit| !named.contains(unit)).map(|unit| LocalStep {
        what: format!("unit {unit}, stopped"),
        status: StepState::Differs("the settings name no such tunnel"),
        act: LocalAct::Command(disabling(&unit)),
    })
}

/// The same for the printed script, where a tunnel is named.
pub(super) fn script(choices: &Choices) -> Option<String> {
    let user = choices.system_user.as_deref().filter(|_| !choices.tunnels.is_empty())?;
    let path = |path: &Path| super::write::quoted(&path.display().to_string());
    let folders: Vec<String> = folders().iter().map(|folder| path(folder)).collect();
    let mut text = format!(
        "# Tunnels: root's list, and the files that the agent may write.\nif [ -e {TEMPLATE} ]; then\n  install -d -m 0755 {}\n",
        folders.join(" ")
    );
    for file in made(&choices.tunnels) {
        let (file, user) = (path(&file), super::write::quoted(user));
        text.push_str(&format!("  [ -e {file} ] || install -m 0620 -g {user} /dev/null {file}\n"));
    }
    text.push_str(&format!(
        "  cat > {} <<'TUNNELS'\n{}TUNNELS\n",
        path(&list(&choices.config)),
        list_text(&choices.tunnels)
    ));
    for tunnel in &choices.tunnels {
        text.push_str(&format!("  systemctl enable --now {}\n", path_unit(&tunnel.name)));
    }
    Some(text + "fi")
}

/// The command that stops one permanently.
pub(super) fn disabling(unit: &str) -> Vec<String> {
    ["systemctl", "disable", "--now", unit].map(str::to_owned).to_vec()
}

/// The units that are enabled on this host, by the folder of enabled units.
pub(super) fn enabled() -> Vec<String> {
    enabled_in(Path::new(WANTED))
}

fn enabled_in(wanted: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(wanted).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let ours = |name: &String| name.starts_with("holdfast-tunnel-restart@") && name.ends_with(".path");
    let mut units: Vec<String> = names.filter(ours).collect();
    units.sort();
    units
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::choices;
    use super::super::tunnel_settings::tests::with_two;
    use super::*;

    #[test]
    fn roots_list_has_a_line_for_each_tunnel() {
        let text = list_text(&with_two().tunnels);
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(lines, ["cf cloudflared.service", "wg wg-quick@wg0.service"]);
    }

    #[test]
    fn the_unit_of_a_tunnel_that_is_no_longer_named_is_stopped() {
        let unit = |name: &str| format!("holdfast-tunnel-restart@{name}.path");
        let steps: Vec<_> = no_longer(&with_two().tunnels, vec![unit("cf"), unit("old")]).collect();
        let [step] = steps.as_slice() else { panic!("{steps:?}") };
        let words = ["systemctl", "disable", "--now", "holdfast-tunnel-restart@old.path"];
        assert_eq!(step.act, LocalAct::Command(words.map(str::to_owned).to_vec()));
    }

    #[test]
    fn the_printed_script_does_the_same() {
        assert_eq!(script(&choices()), None);
        insta::assert_snapshot!("tunnels_script", script(&with_two()).unwrap());
    }

    #[test]
    fn enabled_units_are_found_by_their_links() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["holdfast-tunnel-restart@wg.path", "holdfast-tunnel-restart@cf.path", "other.path"] {
            std::os::unix::fs::symlink("/nowhere", folder.path().join(name)).unwrap();
        }
        let units = enabled_in(folder.path());
        assert_eq!(units, ["holdfast-tunnel-restart@cf.path", "holdfast-tunnel-restart@wg.path"]);
        assert!(enabled_in(&folder.path().join("none")).is_empty());
    }
}
