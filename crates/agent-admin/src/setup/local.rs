//! The user, folders and settings file on the host.
//!
//! Input: the operator's choices. Output: steps with their state, and their execution. Secrets have files of their own,
//! readable by the agent's user alone. Deliberately absent: removing the state folder; it may hold the only record of
//! what was done.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use holdfast_protocol::secret::Secret;
use holdfast_seal::OpenError;
use holdfast_seal::token::Token;

use super::access::{WayError, run_local};
use super::diff::StepState;
use super::plan::Choices;
use super::tunnel_settings;
use crate::model::policy::BrakeRule;
use crate::port::atomic_file::{self, FileError, Given, Readers};
use crate::port::held_folder::{self, HeldError, HeldFolder, Refusal};
use crate::port::host_key::{self, HostKeyError};
use crate::port::pve::Role;
use crate::port::sealed_token::{self, SealedTokenError};
use crate::settings::secret_file;

/// One step on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalStep {
    /// A description of the step.
    pub what: String,
    /// Its state.
    pub status: StepState,
    /// The action that makes it so.
    pub act: LocalAct,
}

/// The action on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalAct {
    /// Makes the Debian user.
    SystemUser { name: String, home: PathBuf },
    /// Makes a folder for the agent's user alone.
    PrivateFolder(PathBuf),
    /// Makes a folder that all may read.
    OpenFolder(PathBuf),
    /// Writes the settings file.
    Settings { path: PathBuf, text: String },
    /// Installs the file that says who may sign: the user who runs this owns it, and all may read it.
    TrustFile { path: PathBuf, text: String },
    /// Writes a file that all may read.
    PlainFile { path: PathBuf, text: String },
    /// Makes an empty file of root's that the agent's group may write.
    GroupFile { path: PathBuf },
    /// Installs the helper's policy, or corrects the user's number and the folder of goldens in it.
    HelperPolicy { path: PathBuf },
    /// Runs a system command.
    Command(Vec<String>),
}

/// Why a step on the host failed.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// A file or folder.
    #[error(transparent)]
    File(#[from] FileError),
    /// A folder could not be made, or a place is not as root expects it.
    #[error(transparent)]
    Held(#[from] HeldError),
    /// Other operators, or another policy.
    #[error("{} is not written: {why}; operators put others in their place by `holdfast sign HOST --policy OPERATORS POLICY`", path.display())]
    OtherTrust {
        path: PathBuf,
        /// What exists there already.
        why: String,
    },
    /// The user is not in the user database.
    #[error("there is no user {user} on this box although it was just made: look at /etc/passwd")]
    NoUser { user: String },
    /// The file of the helper's policy is not a policy.
    #[error("{} is no policy that the helper would take: correct it, or remove it and run this again", path.display())]
    HelperPolicy { path: PathBuf },
    /// The host's own key.
    #[error(transparent)]
    HostKey(#[from] HostKeyError),
    /// A token of no form that Proxmox gives.
    #[error("the new `storage` token is not taken: report this with the Proxmox version")]
    Token(#[source] OpenError),
    /// The sealed token.
    #[error(transparent)]
    SealedToken(#[from] SealedTokenError),
    /// A command of the system's failed.
    #[error("a step on this box failed")]
    Command(#[source] WayError),
    /// `useradd` failed.
    #[error("the user could not be made")]
    UserAdd(#[source] WayError),
}

/// The Debian user that files are given to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    name: String,
    pub uid: u32,
    gid: u32,
}

/// Looks a user up in `/etc/passwd`, where `useradd --system` writes.
#[must_use]
pub fn owner(name: &str) -> Option<Owner> {
    let text = std::fs::read_to_string("/etc/passwd").ok()?;
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == name).then_some(())?;
        let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(Owner { name: name.to_owned(), uid, gid })
    })
}

/// Steps before Proxmox is touched: the secrets need a place.
///
/// # Errors
/// When something that is no folder, or belongs to another user, is at a folder's path.
pub fn prepare(choices: &Choices) -> Result<Vec<LocalStep>, LocalError> {
    let mut steps = Vec::new();
    if let Some(name) = &choices.system_user {
        let status = if owner(name).is_some() { StepState::Done } else { StepState::Missing };
        let act = LocalAct::SystemUser { name: name.clone(), home: choices.state_dir.clone() };
        steps.push(LocalStep { what: format!("Debian user {name}, without a shell"), status, act });
    }
    let open = choices.config.parent().map(|path| LocalAct::OpenFolder(path.to_owned()));
    let private = [choices.state_dir.clone(), choices.state_dir.join("secrets")].map(LocalAct::PrivateFolder);
    for act in open.into_iter().chain(private) {
        let (LocalAct::OpenFolder(path) | LocalAct::PrivateFolder(path)) = &act else { continue };
        let what = format!("folder {}", path.display());
        let status = folder_state(path, &act, choices.system_user.as_deref())?;
        steps.push(LocalStep { what, status, act });
    }
    Ok(steps)
}

fn folder_state(path: &Path, act: &LocalAct, user: Option<&str>) -> Result<StepState, LocalError> {
    let folder = match HeldFolder::open(path) {
        Ok(folder) => folder,
        Err(error) if error.is_missing() => return Ok(StepState::Missing),
        Err(error) => return Err(error.into()),
    };
    if !matches!(act, LocalAct::PrivateFolder(_)) {
        return Ok(StepState::Done);
    }
    let (uid, _) = folder.owner();
    let wanted = user.map(|user| owner(user).map(|owner| owner.uid));
    let owned = wanted.is_none_or(|wanted| wanted == Some(uid));
    // A folder owned by root was made by an interrupted run. A third user's folder is not taken from that user.
    if !owned && uid != 0 && uid != rustix::process::geteuid().as_raw() {
        return Err(HeldError::of(path, Refusal::Owner { uid }).into());
    }
    Ok(match (folder.mode() & 0o077, owned) {
        (0, true) => StepState::Done,
        (0, false) => StepState::Differs("it belongs to somebody else"),
        _ => StepState::Differs("others can look into it"),
    })
}

/// The step after: the settings file.
///
/// # Errors
/// When the file at its path cannot be read, or is a link.
pub fn settings_step(choices: &Choices) -> Result<LocalStep, LocalError> {
    let text = settings_text(choices);
    let differs = StepState::Differs("it says other things; the old one is kept as agent.toml.old");
    let status = file_state(&choices.config, &text, differs)?;
    let what = format!("settings {}", choices.config.display());
    Ok(LocalStep { what, status, act: LocalAct::Settings { path: choices.config.clone(), text } })
}

/// The state of a file with this text.
///
/// # Errors
/// When the file at its path cannot be read, or is a link.
pub fn file_state(path: &Path, text: &str, differs: StepState) -> Result<StepState, LocalError> {
    Ok(match atomic_file::read(path, crate::settings::CONFIG_BYTES_MAX)? {
        Some(there) if there.as_slice() == text.as_bytes() => StepState::Done,
        Some(_) => differs,
        None => StepState::Missing,
    })
}

/// Carries one step out.
///
/// # Errors
/// Says which file or command failed.
pub async fn carry_out(act: &LocalAct, choices: &Choices) -> Result<(), LocalError> {
    match act {
        LocalAct::SystemUser { name, home } => {
            run_local(&useradd(name, home)).await.map_err(LocalError::UserAdd)?;
        }
        LocalAct::OpenFolder(path) => {
            HeldFolder::make_all(path)?;
        }
        LocalAct::PrivateFolder(path) => {
            atomic_file::private_folder_for(path, to_own(choices)?)?;
        }
        LocalAct::Settings { path, text } => {
            if let Some(old) = atomic_file::read(path, crate::settings::CONFIG_BYTES_MAX)? {
                atomic_file::write(&path.with_extension("toml.old"), &old, Readers::Group)?;
            }
            // The settings say which images root approved: the agent reads them and cannot change them.
            let given = match to_own(choices)? {
                Given::To { gid, .. } => Given::ToGroup { gid },
                given @ (Given::Kept | Given::ToGroup { .. }) => given,
            };
            atomic_file::write_for(path, text.as_bytes(), Readers::Group, given)?;
        }
        LocalAct::TrustFile { path, text } | LocalAct::PlainFile { path, text } => {
            atomic_file::write(path, text.as_bytes(), Readers::All)?
        }
        LocalAct::GroupFile { path } => {
            let given = match to_own(choices)? {
                Given::To { gid, .. } => Given::ToGroup { gid },
                given @ (Given::Kept | Given::ToGroup { .. }) => given,
            };
            atomic_file::write_for(path, &[], Readers::OwnerGroupWrites, given)?;
        }
        LocalAct::HelperPolicy { path } => {
            let user = choices.system_user.clone().unwrap_or_default();
            let owner = owner(&user).ok_or(LocalError::NoUser { user })?;
            let there = atomic_file::read(path, crate::settings::CONFIG_BYTES_MAX)?;
            let there = there.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            let dump = choices.golden_dump.as_ref().map(|dump| dump.folder.as_path());
            let text = super::helper_policy::fitted(there.as_deref(), owner.uid, dump);
            atomic_file::write(path, text.as_bytes(), Readers::All)?;
        }
        LocalAct::Command(words) => run_local(words).await.map_err(LocalError::Command)?,
    }
    Ok(())
}

/// The command that makes the Debian user.
#[must_use]
pub fn useradd(name: &str, home: &Path) -> Vec<String> {
    let home = home.display().to_string();
    let words = ["useradd", "--system", "--user-group", "--no-create-home", "--home-dir", &home];
    words.into_iter().chain(["--shell", "/usr/sbin/nologin", name]).map(str::to_owned).collect()
}

/// The agent's user, as whose a file or folder is made.
fn to_own(choices: &Choices) -> Result<Given, LocalError> {
    let Some(user) = &choices.system_user else { return Ok(Given::Kept) };
    let owner = owner(user).ok_or_else(|| LocalError::NoUser { user: user.clone() })?;
    Ok(Given::To { uid: owner.uid, gid: owner.gid })
}

/// Keeps a new token's secret, for the agent's user alone.
///
/// # Errors
/// When it cannot be written; the caller reports it, and the next run makes the token anew.
pub fn keep_secret(choices: &Choices, role: Role, secret: &Secret) -> Result<(), LocalError> {
    let (path, given) = (choices.secret_file(role), to_own(choices)?);
    if role == Role::Storage {
        let key = host_key::open_for(&choices.state_dir, given)?;
        // A run that was cut off may have left it root's.
        atomic_file::give(&host_key::path_in(&choices.state_dir), given)?;
        let token = Token::new(choices.token_id(role), secret.clone()).map_err(LocalError::Token)?;
        return Ok(sealed_token::write(&path, &token, &key, given)?);
    }
    Ok(atomic_file::write_for(&path, secret.expose().as_bytes(), Readers::Owner, given)?)
}

/// The tokens whose secrets exist on this host.
///
/// # Errors
/// When there is a link or another user's file at a secret's path. That is reported before Proxmox makes a token whose
/// secret could then not be stored.
pub fn secrets_at_hand(choices: &Choices) -> Result<BTreeSet<Role>, LocalError> {
    let mut found = BTreeSet::new();
    for role in choices.roles() {
        let path = choices.secret_file(role);
        // Whatever a run will write over, be it of no use now.
        atomic_file::may_be_written(&path)?;
        let at_hand = if role == Role::Storage {
            atomic_file::may_be_written(&host_key::path_in(&choices.state_dir))?;
            is_sealed_here(choices)
        } else {
            secret(&path)?.is_some()
        };
        if at_hand {
            found.insert(role);
        }
    }
    Ok(found)
}

/// The secret in a token's file, where the agent would accept it.
fn secret(path: &Path) -> Result<Option<Secret>, LocalError> {
    match held_folder::open_file(path) {
        Ok(file) => Ok(secret_file::read_from(file, path).ok()),
        Err(error) if !error.is_refusal() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether the sealed token is the one of this name, and this host's key opens it.
fn is_sealed_here(choices: &Choices) -> bool {
    let Ok(Some(key)) = host_key::read(&choices.state_dir) else { return false };
    let sealed = sealed_token::read(&choices.secret_file(Role::Storage)).ok();
    let token = sealed.and_then(|sealed| Token::open(&sealed, &key).ok());
    token.is_some_and(|token| token.id() == choices.token_id(Role::Storage))
}

/// The settings file.
#[must_use]
pub fn settings_text(choices: &Choices) -> String {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let list = |items: Vec<String>| items.iter().map(|item| quoted(item)).collect::<Vec<_>>().join(", ");
    let [first, last] = choices.vmid_range;
    let mut text = String::from("# Written by `agentd setup`; run it again to change it.\n\n[proxmox]\n");
    let mut line = |key: &str, value: String| text.push_str(&format!("{key} = {value}\n"));
    line("url", quoted(&choices.url));
    line("node", quoted(choices.node.as_str()));
    line("pins", format!("[{}]", list(choices.pins.iter().map(ToString::to_string).collect())));
    line("pool", quoted(choices.pool.as_str()));
    line("storage", quoted(choices.storage.as_str()));
    for (key, storage) in
        [("bulk_storage", &choices.bulk_storage), ("backup_storage", &choices.backup_storage)]
    {
        if let Some(storage) = storage {
            line(key, quoted(storage.as_str()));
        }
    }
    if !choices.guest_storages.is_empty() {
        line(
            "guest_storages",
            format!("[{}]", list(choices.guest_storages.iter().map(ToString::to_string).collect())),
        );
    }
    line("bridge", quoted(choices.bridge.as_str()));
    if !choices.reserved_addresses.is_empty() {
        let ranges = choices.reserved_addresses.iter().map(ToString::to_string).collect();
        line("reserved_addresses", format!("[{}]", list(ranges)));
    }
    line("vmid_range", format!("[{first}, {last}]"));
    for role in [Role::Observe, Role::Operate, Role::Allocate] {
        line(&format!("\n[proxmox.tokens.{role}]\nid"), quoted(&choices.token_id(role)));
        line("secret_file", quoted(&choices.secret_file(role).display().to_string()));
    }
    if let Some(scratch) = &choices.scratch {
        let [first, last] = scratch.vmid_range;
        line("\n[scratch]\npool", quoted(scratch.pool.as_str()));
        line("vmid_range", format!("[{first}, {last}]"));
        line("storage", quoted(scratch.storage.as_str()));
        line("memory_mib", scratch.memory.get().to_string());
        line("cores", scratch.cores.get().to_string());
        if let Some(speech) = &scratch.speech {
            line("\n[scratch.speech]\nbridge", quoted(speech.bridge.as_str()));
            line("guest", quoted(&speech.guest.to_string()));
            line("listener", quoted(&speech.listener.to_string()));
        }
        let meant = "# Backups on the left are read for tests by the entry on the right, whose account may only read.";
        let twins = scratch.twins.iter().enumerate();
        twins.for_each(|(n, (of, counterpart))| {
            let head = if n == 0 { format!("\n[scratch.twins]\n{meant}\n") } else { String::new() };
            line(&format!("{head}{}", quoted(of.as_str())), quoted(counterpart.as_str()));
        });
        line("\n[scratch.token]\nid", quoted(&choices.token_id(Role::Scratch)));
        line("secret_file", quoted(&choices.secret_file(Role::Scratch).display().to_string()));
    }
    for golden in &choices.goldens {
        line("\n[[golden]]\nversion", quoted(golden.version.as_str()));
        line("archive", quoted(golden.archive.as_str()));
        line("sha256", quoted(&golden.sha256));
        line("file", quoted(&golden.file.display().to_string()));
    }
    if let Some(dump) = &choices.golden_dump {
        line("\n[golden_dump]\nstorage", quoted(dump.storage.as_str()));
        line("folder", quoted(&dump.folder.display().to_string()));
        line("refresh_days", dump.refresh_days.to_string());
    }
    tunnel_settings::text(&choices.tunnels, &mut line);
    line(
        "\n[local_api]\nlisten",
        format!("[{}]", list(choices.listen.iter().map(ToString::to_string).collect())),
    );
    line("\n[state]\ndir", quoted(&choices.state_dir.display().to_string()));
    let brake = BrakeRule::usual();
    let meant = "# Of the running guests, documents may stop, restart or resize so many within the window without a signature.";
    line(&format!("\n[brake]\n{meant}\nat_least"), brake.at_least.to_string());
    line("share_percent", brake.share_percent.to_string());
    line("window_hours", brake.window_h.to_string());
    let meant = "# Who may sign for this box (OpenSSH's allowed_signers), and how many of them for what. Root lays these down.";
    line(&format!("\n[trust]\n{meant}\noperators"), quoted(&copy_of(choices, "operators")));
    line("policy", quoted(&copy_of(choices, "policy.toml")));
    if !choices.targets.is_empty() {
        let meant = "# The agent may make these entries of storages in Proxmox, once an operator has signed for them.";
        let token = choices.secret_file(Role::Storage).display().to_string();
        line(&format!("\n[storage_entries]\n{meant}\nsealed_token"), quoted(&token));
        line("targets", format!("[{}]", list(choices.targets.iter().map(ToString::to_string).collect())));
    }
    text
}

/// A file next to the settings.
fn copy_of(choices: &Choices, name: &str) -> String {
    choices.config.with_file_name(name).display().to_string()
}

#[cfg(test)]
mod tests;
