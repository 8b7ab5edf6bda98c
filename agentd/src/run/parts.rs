//! Everything that is opened before the first loop starts.
//!
//! In: the settings and the files that they name. Out: [`Parts`], or the first reason why there are none. The lock and
//! the database come first: they keep a second agent away from everything else in the folder.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use holdfast_protocol::id::BridgeName;
use holdfast_protocol::job::SeenHost;
use holdfast_seal::HostKey;
use net::tls::Trust;

use super::RunError;
use crate::execute::entry::Keeper;
use crate::model::addresses::ReservedAddresses;
use crate::model::policy::{Golden, GoldenDump, Policy, QuiesceBound, Sha256Hex, TestPlace, VmidRange};
use crate::model::records::VolumeId;
use crate::port::artifacts::Artifacts;
use crate::port::clock::{Clock, RealClock};
use crate::port::host_key;
use crate::port::host_replacement::HandOverFolder;
use crate::port::identity::{Identity, IdentityFolder};
use crate::port::local_tls::LocalLeaf;
use crate::port::pve::storage_admin;
use crate::port::pve::{Pve, PveClient, RealPace, SetUpError};
use crate::port::slots_file;
use crate::port::store::Store;
use crate::settings::{ScratchSettings, Settings, pve_settings};
use crate::task::report::TokenAges;
use crate::task::token_exchange::{self, TakeTokensCall};

/// Everything that is opened before the first loop starts.
pub(super) struct Parts {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) store: Store,
    pub(super) folder: IdentityFolder,
    pub(super) identity: Identity,
    pub(super) leaf: LocalLeaf,
    pub(super) host_key: Arc<HostKey>,
    pub(super) own: SeenHost,
    pub(super) keeper: Option<Keeper>,
    pub(super) pve: Arc<dyn Pve>,
    /// Exchanges its tokens.
    pub(super) take_tokens: TakeTokensCall,
    pub(super) token_ages: TokenAges,
    pub(super) scratch: Option<Arc<dyn Pve>>,
    pub(super) policy: Policy,
    pub(super) artifacts: Artifacts,
    pub(super) handed: HandOverFolder,
    pub(super) quiesce_bound: QuiesceBound,
}

impl Parts {
    pub(super) fn open(settings: &Settings) -> Result<Self, RunError> {
        let state: &Path = &settings.state.dir;
        let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
        // First of all: it holds the lock that keeps a second agent away from everything else in the folder.
        let store = Store::open_by(state, clock.now(), slots_file::own_standing())?;
        let folder = IdentityFolder::open(state)?;
        let identity = folder.read()?.ok_or(RunError::NotEnrolled)?;
        logging::set_host(identity.enrolled.host_id);
        let leaf = LocalLeaf::open(state)?;
        let host_key = Arc::new(host_key::open(state)?);
        let keeper = keeper(settings, &host_key)?;
        let recipient = host_key.recipient().map_err(RunError::Recipient)?;
        let own = SeenHost::of(identity.enrolled.host_id, identity.enrolled.host_name.clone(), &recipient);
        let client = Arc::new(PveClient::new(&pve_settings(settings)?, Arc::new(RealPace::default()))?);
        let of_tokens = settings.clone();
        Ok(Self {
            quiesce_bound: settings.quiesce.bound_s,
            artifacts: Artifacts::of(state),
            handed: HandOverFolder::of(state),
            clock,
            store,
            folder,
            identity,
            leaf,
            host_key,
            own,
            keeper,
            scratch: client.for_scratch().map(|pve| Arc::new(pve) as Arc<dyn Pve>),
            take_tokens: token_exchange::call(Arc::clone(&client), settings.clone()),
            token_ages: Arc::new(move || of_tokens.token_ages()),
            pve: client,
            policy: policy(settings)?,
        })
    }
}

/// The keeper that may change storage entries. Its token stays sealed until a signed job needs it.
fn keeper(settings: &Settings, key: &Arc<HostKey>) -> Result<Option<Keeper>, SetUpError> {
    let Some(entries) = &settings.storage_entries else { return Ok(None) };
    let transport =
        storage_admin::transport(&settings.proxmox.url, &Trust::Pins(settings.proxmox.pins.clone()))?;
    let (token, targets) = (entries.sealed_token.clone(), entries.targets.clone());
    Ok(Some(Keeper { key: Arc::clone(key), token, transport, targets }))
}

/// What root named in the configuration; a golden named with its digest is thereby approved.
fn policy(settings: &Settings) -> Result<Policy, RunError> {
    let refused = |at: String, rule| RunError::Setting { at, rule };
    let proxmox = &settings.proxmox;
    let mut goldens = BTreeMap::new();
    for (index, golden) in settings.golden.iter().enumerate() {
        let named = golden.sha256.as_ref().map(|text| Sha256Hex::try_from(text.to_ascii_lowercase()));
        let sha256 = named.transpose().map_err(|rule| refused(format!("golden[{index}].sha256"), rule))?;
        let archive = VolumeId::new(golden.archive.clone());
        let file = golden.file.clone();
        goldens.insert(golden.version.clone(), Golden { archive, sha256, file, build: None });
    }
    Ok(Policy {
        range: VmidRange::try_from(proxmox.vmid_range)
            .map_err(|rule| refused("proxmox.vmid_range".to_owned(), rule))?,
        pool: proxmox.pool.clone(),
        storage: proxmox.storage.clone(),
        bulk_storage: proxmox.bulk_storage.clone(),
        guest_storages: proxmox.guest_storages.clone(),
        backup_storage: proxmox.backup_storage.clone(),
        bridge: proxmox.bridge.clone(),
        kept: kept(settings),
        goldens,
        golden_dump: settings.golden_dump.as_ref().map(|dump| GoldenDump {
            storage: dump.storage.clone(),
            folder: dump.folder.clone(),
            refresh_days: dump.refresh_days,
        }),
        brake: settings.brake.rule(),
        scratch: settings.scratch.as_ref().map(|scratch| test_place(scratch, &proxmox.bridge)).transpose()?,
    })
}

/// Addresses that no guest of a document may have.
fn kept(settings: &Settings) -> ReservedAddresses {
    let listeners = settings.local_api.listen.iter().filter_map(|listener| match listener.ip() {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    });
    ReservedAddresses { listeners: listeners.collect(), ranges: settings.proxmox.reserved_addresses.clone() }
}

fn test_place(scratch: &ScratchSettings, bridge: &BridgeName) -> Result<TestPlace, RunError> {
    let refused = |rule| RunError::Setting { at: "scratch.vmid_range".to_owned(), rule };
    Ok(TestPlace {
        range: VmidRange::try_from(scratch.vmid_range).map_err(refused)?,
        pool: scratch.pool.clone(),
        storage: scratch.storage.clone(),
        bridge: bridge.clone(),
        memory: scratch.memory_mib,
        cores: scratch.cores,
        speech: scratch.speech.clone(),
        twins: scratch.twins.clone(),
    })
}
