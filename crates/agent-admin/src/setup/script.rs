//! The setup plan as a shell script.
//!
//! Input: the choices. Output: text for `sh`, safe to run twice. Secrets go straight from Proxmox into their files.
//! Deliberately absent: reading the present state; the script does that itself.

use super::current::CurrentSetup;
use super::diff::settle;
use super::local::{settings_text, useradd};
use super::plan::{Choices, DesiredSetup};
use super::write::{Write, quoted};
use super::{helper, helper_policy};
use crate::port::pve::Role;

/// Prints the script that sets up.
#[must_use]
pub fn script(choices: &Choices) -> String {
    let wanted = DesiredSetup::of(choices);
    let mut text = head("sets up Proxmox and this box for the agent");
    let mut add = |line: &str| {
        text.push_str(line);
        text.push('\n');
    };
    let state = path(&choices.state_dir);
    if let Some(user) = &choices.system_user {
        add(&format!(
            "id -u {0} >/dev/null 2>&1 || {1}",
            quoted(user),
            joined(&useradd(user, &choices.state_dir))
        ));
    }
    let user = choices.system_user.as_deref();
    let owner = user.map(|user| format!("-o {0} -g {0} ", quoted(user))).unwrap_or_default();
    add(&format!("install -d -m 0700 {owner}{state}"));
    add("# Whoever owns this folder can put links into it: what lies beneath is done as that user.");
    add(&as_owner(user, &format!("install -d -m 0700 {state}/secrets")));
    add("");
    for write in settle(&wanted, &CurrentSetup::default(), &std::collections::BTreeSet::new())
        .iter()
        .flat_map(|s| &s.writes)
    {
        add(&lasting(write, choices));
    }
    for grant in &wanted.no_longer {
        let from = choices.token_id(grant.role);
        let (path, pve_role) = (grant.path.to_string(), grant.pve_role.to_owned());
        add(&format!("{} 2>/dev/null || true", Write::Revoke { path, pve_role, from }.line()));
    }
    add("");
    add("# The settings. No secret is in them.");
    if let Some(folder) = choices.config.parent() {
        add(&format!("install -d -m 0755 {}", path(folder)));
    }
    add(&format!(
        "umask 022\ncat > {} <<'SETTINGS'\n{}SETTINGS",
        path(&choices.config),
        settings_text(choices)
    ));
    if let Some(user) = &choices.system_user {
        add("");
        add(&helper_lines(choices, user));
    }
    if let Some(lines) = super::tunnels::script(choices) {
        add("");
        add(&lines);
    }
    let [operators, policy, release_keys] = super::trust::files(&choices.config);
    if let Some(trust) = &choices.trust {
        add("");
        add("# Who may sign. Others that lie there are never replaced: a signed policy_update does that.");
        add(&laid_down(&operators, &trust.operators));
        trust.policy.iter().for_each(|text| add(&laid_down(&policy, text)));
    }
    if let Some(keys) = &choices.release_keys {
        add("");
        add("# Who may sign releases of the agent.");
        let (file, text) = (path(&release_keys), keys.text.trim_end_matches('\n'));
        add(&format!("umask 022\ncat > {file} <<'TRUST'\n{text}\nTRUST"));
    }
    text
}

/// Installs a file, or fails where a file with other content exists. No line of either kind of file equals the
/// delimiter `TRUST`.
fn laid_down(file: &std::path::Path, text: &str) -> String {
    let (file, text) = (path(file), text.trim_end_matches('\n'));
    format!(
        "cat > {file}.new <<'TRUST'\n{text}\nTRUST\n\
         if ! [ -e {file} ]; then\n  mv {file}.new {file}\nelif ! cmp -s {file}.new {file}; then\n  rm -f {file}.new\n  \
         echo {file}' says other things and was left' >&2\n  exit 1\nelse\n  rm -f {file}.new\nfi"
    )
}

/// The root helper's policy, the folder where it mounts, and the package's units, where the package is installed.
fn helper_lines(choices: &Choices, user: &str) -> String {
    let file = path(&helper::file(&choices.config));
    let dump = choices.golden_dump.as_ref().map(|dump| dump.folder.as_path());
    let mut right = format!("sed -i \"s/^caller_uid *=.*/caller_uid = $(id -u {})/\" {file}", quoted(user));
    if let Some(dump) = dump {
        let line = helper_policy::golden_line(dump).replace('\\', "\\\\");
        let edit = quoted(&format!("/^caller_uid *=/a {}", line.trim_end()));
        right.push_str(&format!("\n  sed -i -e '/^golden_dump *=/d' -e {edit} {file}"));
    }
    let units: Vec<String> =
        helper::ENABLED.iter().map(|unit| format!("\n  {}", unit.enabling().join(" "))).collect();
    format!(
        "# The root helper: which disks it mounts is root's to add, and what root wrote stays.\n\
         if [ -x {} ]; then\n  install -d -m 0755 {}\n  [ -e {file} ] || cat > {file} <<'POLICY'\n{}POLICY\n  {right}{}\nfi",
        helper::PROGRAM,
        helper::MOUNTS,
        helper_policy::text(0, dump),
        units.concat()
    )
}

/// The same line, run by the user whose folder it is about.
#[must_use]
pub fn as_owner(user: Option<&str>, line: &str) -> String {
    let Some(user) = user.map(quoted) else { return line.to_owned() };
    format!("setpriv --reuid={user} --regid={user} --init-groups -- {line}")
}

/// How each begins.
#[must_use]
pub fn head(what: &str) -> String {
    format!(
        "#!/bin/sh\n# agentd setup --print: {what}. Run as root on the node; safe to run twice.\nset -eu\numask 077\n\n"
    )
}

/// One write that may already be done.
fn lasting(write: &Write, choices: &Choices) -> String {
    let line = write.line();
    match write {
        Write::AddRole { name, privileges } => {
            let set = Write::SetRole { name: name.clone(), privileges: privileges.clone() };
            format!("{line} 2>/dev/null || {}", set.line())
        }
        Write::AddPool(name) => format!("pvesh get /pools/{} >/dev/null 2>&1 || {line}", quoted(name)),
        Write::AddUser(user) => format!("pvesh get /access/users/{} >/dev/null 2>&1 || {line}", quoted(user)),
        Write::AddToken { user, role } => {
            let file = path(&choices.secret_file(*role));
            let remove = Write::DeleteToken { user: user.clone(), role: *role }.line();
            let take = "perl -MJSON -0777 -ne 'print decode_json($_)->{value}'";
            let keep = if *role == Role::Storage {
                let (state, id) = (path(&choices.state_dir), quoted(&choices.token_id(*role)));
                format!("agentd storage seal-token --state-dir {state} {id}")
            } else {
                format!("sh -c 'cat > \"$1.new\" && mv -fT \"$1.new\" \"$1\"' sh {file}")
            };
            let user = choices.system_user.as_deref();
            let (is_there, keep) = (as_owner(user, &format!("test -s {file}")), as_owner(user, &keep));
            format!("if ! {is_there}; then\n  {remove} 2>/dev/null || true\n  {line} | {take} | {keep}\nfi")
        }
        _ => line,
    }
}

fn path(path: &std::path::Path) -> String {
    quoted(&path.display().to_string())
}

fn joined(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::{choices, tried};
    use super::*;

    #[test]
    fn the_printed_script() {
        insta::assert_snapshot!("setup_script", script(&choices()));
    }

    #[test]
    fn what_a_counterpart_takes_the_place_of_goes_whether_it_was_there_or_not() {
        let text = script(&tried());
        let line = "pveum acl delete /storage/off1 --tokens 'holdfast@pve!scratch' --roles HfStRead 2>/dev/null || true";
        assert!(text.lines().any(|one| one == line), "{text}");
    }
}
