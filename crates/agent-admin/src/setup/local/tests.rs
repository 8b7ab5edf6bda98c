//! Tests of the files that setup writes.

use std::os::unix::fs::MetadataExt as _;

use super::super::plan::tests::{choices, tried};
use super::*;
use crate::model::policy::GoldenDump;
use crate::settings::Settings;

#[test]
fn the_agent_reads_what_setup_writes() {
    let mut choices = choices();
    let (storage, folder) = ("local".parse().unwrap(), "/var/lib/vz/dump".into());
    choices.golden_dump = Some(GoldenDump { storage, folder, refresh_days: 14 });
    choices.guest_storages = BTreeSet::from(["ssd2".parse().unwrap()]);
    choices.reserved_addresses = vec!["10.66.0.100-10.66.0.199".parse().unwrap()];
    let settings = Settings::parse(&settings_text(&choices), &choices.config).unwrap();
    assert_eq!(settings.proxmox.reserved_addresses, choices.reserved_addresses);
    assert_eq!(settings.proxmox.guest_storages, choices.guest_storages);
    let dump = settings.golden_dump.unwrap();
    assert_eq!((dump.folder.as_path(), dump.refresh_days), (std::path::Path::new("/var/lib/vz/dump"), 14));
    let places = choices.places();
    assert!(places.archive_storages.iter().any(|storage| storage.as_str() == "local"));
    assert!(settings.storage_entries.is_none());
    assert_eq!(settings.proxmox.tokens.allocate.id, "holdfast@pve!allocate");
    assert_eq!(settings.proxmox.bulk_storage, choices.bulk_storage);
    assert_eq!(settings.golden[0].sha256, Some(choices.goldens[0].sha256.clone()));
    assert_eq!(settings.state.dir, choices.state_dir);
    assert_eq!(settings.proxmox.vmid_range, choices.vmid_range);
    assert_eq!(settings.brake.rule(), BrakeRule::usual());
    assert_eq!(settings.trust.operators, std::path::Path::new("/etc/holdfast/operators"));
    assert_eq!(settings.trust.policy, std::path::Path::new("/etc/holdfast/policy.toml"));
}

#[test]
fn twins_are_read_as_they_were_named() {
    let mut choices = tried();
    let twins = &mut choices.scratch.as_mut().unwrap().twins;
    // Written bare, this name would be a key within another.
    twins.insert("backup2".parse().unwrap(), "back.read".parse().unwrap());
    let twins = twins.clone();
    let settings = Settings::parse(&settings_text(&choices), &choices.config).unwrap();
    assert_eq!(settings.scratch.unwrap().twins, twins);
}

/// As root for another user, as on a real host; any other user can set up only for themselves.
#[tokio::test]
async fn the_agent_owns_its_secrets_and_only_reads_its_settings() {
    let dir = tempfile::tempdir().unwrap();
    let me = rustix::process::geteuid();
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let mine = |line: &&str| line.split(':').nth(2) == Some(me.as_raw().to_string().as_str());
    let name = users.lines().find(mine).and_then(|line| line.split(':').next()).unwrap();
    let name = if me.is_root() { "nobody" } else { name };
    let user = owner(name).unwrap();
    let mut choices = choices();
    (choices.state_dir, choices.config) = (dir.path().join("state"), dir.path().join("etc/agent.toml"));
    choices.system_user = Some(name.to_owned());
    let steps = prepare(&choices).unwrap().into_iter().chain([settings_step(&choices).unwrap()]);
    for step in steps.filter(|step| step.status != StepState::Done) {
        carry_out(&step.act, &choices).await.unwrap();
    }
    keep_secret(&choices, Role::Observe, &Secret::new("uuid".to_owned())).unwrap();
    let seen = |path: &Path| {
        let meta = std::fs::metadata(path).unwrap();
        (meta.uid(), meta.gid(), meta.mode() & 0o777)
    };
    assert_eq!(seen(&choices.config), (me.as_raw(), user.gid, 0o640));
    assert_eq!(seen(&choices.secret_file(Role::Observe)), (user.uid, user.gid, 0o600));
}

#[tokio::test]
async fn files_come_and_stay_closed() {
    let dir = tempfile::tempdir().unwrap();
    let mut choices = choices();
    (choices.state_dir, choices.config) = (dir.path().join("state"), dir.path().join("etc/agent.toml"));
    choices.system_user = None;
    assert!(prepare(&choices).unwrap().iter().all(|step| step.status == StepState::Missing));
    for step in prepare(&choices).unwrap().iter().chain([&settings_step(&choices).unwrap()]) {
        carry_out(&step.act, &choices).await.unwrap();
    }
    keep_secret(&choices, Role::Observe, &Secret::new("uuid".to_owned())).unwrap();
    assert_eq!(secrets_at_hand(&choices).unwrap(), [Role::Observe].into());
    let mode = std::fs::metadata(choices.secret_file(Role::Observe)).unwrap().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let again = prepare(&choices).unwrap().into_iter().chain([settings_step(&choices).unwrap()]);
    assert!(again.map(|step| step.status).all(|status| status == StepState::Done));
}

#[tokio::test]
async fn the_storage_token_lies_sealed_to_the_hosts_own_key() {
    let dir = tempfile::tempdir().unwrap();
    let mut choices = choices();
    (choices.state_dir, choices.config) = (dir.path().join("state"), dir.path().join("etc/agent.toml"));
    choices.system_user = None;
    choices.targets = BTreeSet::from(["nas1".parse().unwrap()]);
    for step in prepare(&choices).unwrap() {
        carry_out(&step.act, &choices).await.unwrap();
    }
    let secret = Secret::new("11111111-2222-3333-4444-555555555555".to_owned());
    keep_secret(&choices, Role::Storage, &secret).unwrap();
    assert!(secrets_at_hand(&choices).unwrap().contains(&Role::Storage));
    let file = choices.secret_file(Role::Storage);
    assert!(!std::fs::read_to_string(&file).unwrap().contains("1111"));
    let settings = Settings::parse(&settings_text(&choices), &choices.config).unwrap();
    let entries = settings.storage_entries.unwrap();
    assert_eq!((entries.sealed_token, entries.targets), (file, choices.targets.clone()));
    // Another key opens nothing: the token is made anew.
    std::fs::remove_file(host_key::path_in(&choices.state_dir)).unwrap();
    host_key::open(&choices.state_dir).unwrap();
    assert!(!secrets_at_hand(&choices).unwrap().contains(&Role::Storage));
}

#[tokio::test]
async fn a_changed_settings_file_is_kept_with_the_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut choices = choices();
    choices.system_user = None;
    choices.config = dir.path().join("agent.toml");
    std::fs::write(&choices.config, "# mine\n").unwrap();
    let step = settings_step(&choices).unwrap();
    assert!(matches!(step.status, StepState::Differs(_)));
    carry_out(&step.act, &choices).await.unwrap();
    assert_eq!(std::fs::read_to_string(dir.path().join("agent.toml.old")).unwrap(), "# mine\n");
}
