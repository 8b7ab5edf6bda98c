//! `agentd setup --remove`: removes what `setup` made.
//!
//! Input: the installed settings, and arguments that override them; then the present state in Proxmox and on the host.
//! Output: steps, or a script that finds out the present state itself. Nothing has to be named a second time.
//! Deliberately absent: guests, storages, archives, the agent's records and its Debian user: all of these stay.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use holdfast_protocol::id::PoolName;

use super::access::{Way, run_local};
use super::args::{ChoiceError, SetupArguments, absolute};
use super::current::{CurrentSetup, PrivSep};
use super::diff::{Step, StepState, unsettle};
use super::helper::Unit;
use super::local::LocalError;
use super::plan::{DesiredSetup, secret_name};
use super::privilege::pve_roles;
use super::show::{self, PrintedStep};
use super::write::{Write, quoted};
use super::{SetupError, helper, trust, tunnels};
use crate::port::atomic_file;
use crate::port::pve::Role;
use crate::port::tunnels::files::FOLDER;
use crate::settings::{Settings, SettingsError};

const USER: &str = "holdfast@pve";
const POOL: &str = "holdfast";
const SCRATCH_POOL: &str = "holdfast-scratch";
const STATE: &str = "/var/lib/holdfast";
const POLICY_BYTES_MAX: u64 = 64 * 1024;

/// The names of our items.
#[derive(Clone, Debug)]
pub struct Ours {
    /// The user of Proxmox.
    pub user: String,
    /// The pool of our guests.
    pub pool: PoolName,
    /// The pool of scratch guests, where there was a token for them.
    pub scratch_pool: PoolName,
    /// The state folder.
    pub state_dir: PathBuf,
    /// The settings.
    pub config: PathBuf,
    /// The Debian user; none when the files belong to the user who runs this.
    pub system_user: Option<String>,
}

impl Ours {
    /// The names from the arguments, else from the settings, else the defaults.
    pub fn of(arguments: &SetupArguments) -> Result<Self, SetupError> {
        absolute(&arguments.config.config)?;
        let laid_down = match Settings::load(&arguments.config) {
            Ok(settings) => Some(settings),
            Err(SettingsError::Read { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => None,
            // Names would be guessed otherwise.
            Err(error) if arguments.user.is_none() || arguments.pool.is_none() => return Err(error.into()),
            Err(_) => None,
        };
        let laid_down = laid_down.as_ref();
        let user = laid_down.and_then(|settings| settings.proxmox.tokens.observe.id.split_once('!'));
        let named = |name: &str, option| name.parse().map_err(|_| ChoiceError::Missing(option));
        let pool = arguments.pool.clone().or(laid_down.map(|settings| settings.proxmox.pool.clone()));
        let state_dir = arguments.state_dir.clone().or(laid_down.map(|settings| settings.state.dir.clone()));
        let ours = Self {
            user: arguments.user.clone().unwrap_or_else(|| user.map_or(USER, |(user, _)| user).to_owned()),
            pool: pool.map_or_else(|| named(POOL, "--pool"), Ok)?,
            scratch_pool: arguments
                .scratch_pool
                .clone()
                .map_or_else(|| named(SCRATCH_POOL, "--scratch-pool"), Ok)?,
            state_dir: state_dir.unwrap_or_else(|| STATE.into()),
            config: arguments.config.config.clone(),
            system_user: arguments.owner(),
        };
        absolute(&ours.state_dir)?;
        Ok(ours)
    }

    /// Everything of ours that could be there in Proxmox. Grants are found by whose they are.
    fn wanted(&self, seen: &CurrentSetup) -> DesiredSetup {
        // A pool of that name is ours where there is a token for it.
        let scratch = seen.tokens.contains_key(Role::Scratch.text()).then_some(&self.scratch_pool);
        DesiredSetup {
            pools: std::iter::once(&self.pool).chain(scratch).cloned().collect(),
            pve_roles: pve_roles(&Role::ALL).into_iter().collect(),
            user: self.user.clone(),
            tokens: Role::ALL.to_vec(),
            grants: Vec::new(),
            no_longer: Vec::new(),
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        let secrets = self.state_dir.join("secrets");
        let secrets = Role::ALL.map(|role| secrets.join(secret_name(role)));
        let own = [self.config.clone(), tunnels::list(&self.config)];
        secrets.into_iter().chain(own).chain(trust::files(&self.config)).collect()
    }

    fn policy(&self) -> Result<Policy, LocalError> {
        let path = helper::file(&self.config);
        if self.system_user.is_none() {
            return Ok(Policy::None);
        }
        Ok(match atomic_file::read(&path, POLICY_BYTES_MAX)? {
            Some(there) if helper::is_as_written(&String::from_utf8_lossy(&there)) => Policy::Goes(path),
            Some(_) => Policy::Stays(path),
            None => Policy::None,
        })
    }
}

/// What happens to the helper's policy: root's own entries in it stay.
enum Policy {
    None,
    Goes(PathBuf),
    Stays(PathBuf),
}

/// The steps, in this order, and what stays.
struct Todo {
    units: Vec<&'static Unit>,
    /// The units that hear the agent about tunnels.
    path_units: Vec<String>,
    steps: Vec<Step>,
    files: Vec<PathBuf>,
    left: Vec<String>,
}

impl Todo {
    async fn find(ours: &Ours, way: &Way) -> Result<Self, SetupError> {
        let seen = super::look(way, &ours.user).await?;
        let wanted = ours.wanted(&seen);
        let (mut files, mut left) = (ours.files(), left(ours, &wanted));
        match ours.policy()? {
            Policy::Goes(path) => files.push(path),
            Policy::Stays(path) => left.push(format!("{}, which root has added to", path.display())),
            Policy::None => {}
        }
        files = there(files)?;
        let here = ours.system_user.is_some();
        let units = helper::ENABLED.iter().rev().filter(|unit| here && helper::is_wanted(unit)).collect();
        let path_units = if here { tunnels::enabled() } else { Vec::new() };
        Ok(Self { units, path_units, steps: unsettle(&wanted, &seen), files, left })
    }

    fn shown(&self, outcome: &'static str) -> PrintedStep {
        let line = |what: String, why| show::here(&what, &StepState::Differs(why));
        let names = self.units.iter().map(|unit| unit.name).chain(self.path_units.iter().map(String::as_str));
        let units = names.map(|name| line(format!("unit {name}, stopped"), "it is enabled"));
        let steps = self.steps.iter().map(show::there);
        let files = self.files.iter().map(|path| line(format!("file {}", path.display()), "it is there"));
        PrintedStep::of(outcome, units.chain(steps).chain(files).collect()).leaving(&self.left)
    }
}

/// Those that exist. A link on the way to one is reported before anything is removed.
fn there(files: Vec<PathBuf>) -> Result<Vec<PathBuf>, LocalError> {
    let mut there = Vec::new();
    for path in files {
        if atomic_file::is_there(&path)? {
            there.push(path);
        }
    }
    Ok(there)
}

/// The items that are not touched, as text.
fn left(ours: &Ours, wanted: &DesiredSetup) -> Vec<String> {
    let pools = wanted.pools.iter();
    let mut left: Vec<String> = pools
        .map(|pool| format!("every guest in the pool {pool}, and the pool as long as it has one"))
        .collect();
    left.push("every storage, archive and backup".to_owned());
    left.push(format!("{} with the agent's records and identity", ours.state_dir.display()));
    left.extend(Path::new(FOLDER).exists().then(|| format!("{FOLDER} with the tokens of tunnels")));
    left.extend(ours.system_user.iter().map(|user| format!("the Debian user {user}")));
    left
}

/// Shows the plan, asks for confirmation, and carries it out.
pub async fn take_away(arguments: &SetupArguments, ours: &Ours, way: &Way) -> Result<(), SetupError> {
    let todo = Todo::find(ours, way).await?;
    if !super::agreed(arguments, &todo.shown("planned"))? {
        return Ok(());
    }
    for unit in &todo.units {
        run_local(&unit.disabling()).await.map_err(LocalError::Command)?;
    }
    for unit in &todo.path_units {
        run_local(&tunnels::disabling(unit)).await.map_err(LocalError::Command)?;
    }
    for write in todo.steps.iter().flat_map(|step| &step.writes) {
        match (write, way.write(write).await) {
            (Write::DeletePool(pool), Err(error)) => {
                eprintln!("agentd: the pool {pool} stays: {}", holdfast_protocol::json::chain(&error));
            }
            (_, answer) => drop(answer?),
        }
    }
    for path in &todo.files {
        atomic_file::remove(path).map_err(LocalError::from)?;
    }
    // A pool with guests in it stays when everything else is gone.
    let is_pool = |step: &&Step| step.writes.iter().all(|write| matches!(write, Write::DeletePool(_)));
    let again = Todo::find(ours, way).await?;
    if let Some(step) = again.steps.iter().find(|step| !is_pool(step)) {
        return Err(SetupError::NotSettled(step.what.clone()));
    }
    super::done(arguments, &todo.shown("done"));
    Ok(())
}

/// The removal as a script to run by hand on the node; it finds out the present state itself.
#[must_use]
pub fn script(ours: &Ours) -> String {
    let mut text = super::script::head("takes away what the agent had; guests and the state folder stay");
    let mut add = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    if ours.system_user.is_some() {
        for unit in helper::ENABLED.iter().rev() {
            add(format!("{} 2>/dev/null || true", unit.disabling().join(" ")));
        }
        add(TUNNELS.to_owned());
    }
    add(format!("export HF_USER={}", quoted(&ours.user)));
    add(REVOKE.to_owned());
    let mut everything = CurrentSetup::default();
    everything.users.insert(ours.user.clone());
    everything.tokens.extend(Role::ALL.map(|role| (role.text().to_owned(), PrivSep::Yes)));
    let wanted = ours.wanted(&everything);
    everything.pools.extend(wanted.pools.iter().map(ToString::to_string));
    everything.roles.extend(wanted.pve_roles.iter().map(|(name, _)| ((*name).to_owned(), BTreeSet::new())));
    let scratch = Write::DeletePool(ours.scratch_pool.to_string());
    let token = format!("pvesh get /access/users/{}/token/scratch >/dev/null 2>&1", quoted(&ours.user));
    add(format!("if {token}; then\n  {} || true\nfi", scratch.line()));
    for write in unsettle(&wanted, &everything).iter().flat_map(|step| &step.writes) {
        if *write != scratch {
            add(format!("{} || true", write.line()));
        }
    }
    let (theirs, files): (Vec<PathBuf>, Vec<PathBuf>) =
        ours.files().into_iter().partition(|file| file.starts_with(&ours.state_dir));
    let removing = |files: &[PathBuf]| {
        format!("rm -f {}", files.iter().map(|file| path(file)).collect::<Vec<_>>().join(" "))
    };
    add("# Whoever owns a folder can put links into it: what lies beneath is taken away as that user."
        .to_owned());
    add(format!("{} || true", super::script::as_owner(ours.system_user.as_deref(), &removing(&theirs))));
    add(removing(&files));
    if ours.system_user.is_some() {
        let policy = path(&helper::file(&ours.config));
        add("# What names disks is root's own.".to_owned());
        add(format!(
            "if [ -e {policy} ] && ! grep -q '^\\[\\[target\\]\\]' {policy}; then\n  rm -f {policy}\nfi"
        ));
    }
    text
}

/// The units that hear the agent about tunnels, whichever there are.
const TUNNELS: &str = r#"for unit in /etc/systemd/system/paths.target.wants/holdfast-tunnel-restart@*.path; do
  ! [ -L "$unit" ] || systemctl disable --now "${unit##*/}" 2>/dev/null || true
done"#;

/// Whatever was granted to the user and its tokens, wherever that was.
const REVOKE: &str = r#"pvesh get /access/acl --output-format json | perl -MJSON -0777 -ne '
  for (@{decode_json($_)}) {
    print "$_->{type}s $_->{ugid} $_->{roleid} $_->{path}\n" if $_->{ugid} =~ /^\Q$ENV{HF_USER}\E(!|$)/;
  }' | while read -r whose who role path; do
  pveum acl delete "$path" "--$whose" "$who" --roles "$role" </dev/null || true
done"#;

fn path(path: &std::path::Path) -> String {
    quoted(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::choices;
    use super::*;

    fn ours() -> Ours {
        let choices = choices();
        Ours {
            user: choices.user,
            pool: choices.pool,
            scratch_pool: SCRATCH_POOL.parse().unwrap(),
            state_dir: choices.state_dir,
            config: choices.config,
            system_user: choices.system_user,
        }
    }

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        setup: SetupArguments,
    }

    fn arguments(words: &[&str]) -> Result<SetupArguments, clap::Error> {
        use clap::Parser as _;
        Line::try_parse_from(std::iter::once(&"setup").chain(words)).map(|line| line.setup)
    }

    #[test]
    fn a_removal_needs_no_choices_and_a_setup_does() {
        assert!(arguments(&["--remove"]).is_ok());
        assert!(arguments(&["--storage", "tank", "--vmid-range", "1000-1999"]).is_err());
        let setup = ["--storage", "tank", "--vmid-range", "1000-1999", "--listen", "10.0.0.1:1"];
        let setup = arguments(&setup).unwrap();
        assert_eq!((setup.user.as_deref(), setup.pool.unwrap().as_str()), (Some(USER), POOL));
        assert_eq!(setup.state_dir.unwrap(), std::path::Path::new(STATE));
    }

    #[test]
    fn what_was_laid_down_names_what_goes() {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("agent.toml");
        let at = config.to_str().unwrap();
        let of = |words: &[&str]| {
            let words: Vec<&str> =
                ["--remove", "--config", at].into_iter().chain(words.iter().copied()).collect();
            Ours::of(&arguments(&words).unwrap())
        };
        let usual = of(&[]).unwrap();
        assert_eq!((usual.user.as_str(), usual.pool.as_str()), (USER, POOL));
        let mut choices = choices();
        (choices.user, choices.pool) = ("robot@pve".to_owned(), "ours".parse().unwrap());
        choices.state_dir = "/srv/agent".into();
        std::fs::write(&config, super::super::local::settings_text(&choices)).unwrap();
        let named = of(&[]).unwrap();
        assert_eq!((named.user.as_str(), named.pool.as_str()), ("robot@pve", "ours"));
        assert!(named.files().contains(&"/srv/agent/secrets/proxmox-scratch".into()));
        assert_eq!(of(&["--user", "other@pve"]).unwrap().user, "other@pve");
        std::fs::write(&config, "nonsense").unwrap();
        assert!(matches!(of(&[]), Err(SetupError::Settings(_))), "no name is guessed");
        assert_eq!(of(&["--user", "other@pve", "--pool", "ours"]).unwrap().pool.as_str(), "ours");
    }

    #[test]
    fn the_printed_script() {
        insta::assert_snapshot!("removal_script", script(&ours()));
    }
}
