//! The arguments of `agentd setup`, and the choices made of them.
//!
//! Input: the command line, and on a Proxmox host its certificate and name. Output: [`Choices`], or the missing
//! arguments. A golden's archive is hashed here: naming it to `setup` is how root approves it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use holdfast_protocol::id::{BridgeName, GoldenVersion, NodeName, PoolName, StorageName, TargetName, Vmid};
use holdfast_protocol::net::{CidrError, Ipv4Cidr};
use holdfast_protocol::pin::{Pin, PinKind, PinSet};
use holdfast_protocol::size::{Cores, MemoryMib, VlanTag};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use sha2::{Digest, Sha256};

use super::plan::{Choices, Golden, Scratch, archive_vmid};
use super::signer_files::{self, SignerFilesError};
use super::test_bridge;
use super::tunnel_settings::{TunnelSettingsError, installed};
use crate::Output;
use crate::model::addresses::AddressRange;
use crate::model::policy::{GoldenDump, TestBridge};
use crate::port::pve::VolumeId;
use crate::settings::{ConfigPath, counterpart_mistake};

/// The arguments.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
On a Proxmox host, as root, this runs `pveum` and related commands. --print writes the same as a script. --api URL \
does it through the API, for another host or a simulator, with the credential of a user who may change access control: \
an API token (user@realm!name=secret) or a ticket and its CSRF token on two lines, from a file or standard input, \
never an argument.

The plan is shown first. Running it again changes only what is not as it should be.")]
pub struct SetupArguments {
    #[command(flatten)]
    pub(super) config: ConfigPath,
    /// The node [default: this host's host name].
    #[arg(long)]
    pub(super) node: Option<NodeName>,
    /// The Proxmox user to create.
    #[arg(long, default_value = "holdfast@pve", default_value_if("remove", "true", None), value_parser = user)]
    pub(super) user: Option<String>,
    /// The pool for the agent's guests.
    #[arg(long, default_value = "holdfast", default_value_if("remove", "true", None))]
    pub(super) pool: Option<PoolName>,
    /// Also create a pool and a token for scratch guests, in which backups are tested.
    #[arg(long, value_name = "POOL", num_args = 0..=1, default_missing_value = "holdfast-scratch")]
    pub(super) scratch_pool: Option<PoolName>,
    /// The VMIDs for scratch guests; none of them may be in --vmid-range.
    #[arg(long, value_name = "FIRST-LAST", requires = "scratch_pool", value_parser = vmid_range)]
    pub(super) scratch_range: Option<[Vmid; 2]>,
    /// The storage for the disks of scratch guests; it must have no archives [default: --storage].
    #[arg(long, value_name = "STORAGE", requires = "scratch_pool")]
    pub(super) scratch_storage: Option<StorageName>,
    /// The Proxmox entry through which the backups of a storage are read for tests: the same namespace of the same
    /// backup server, by an account that may only read there; may be given several times. Root creates the entry, and
    /// the `scratch` token then has no rights on the storage itself.
    #[arg(long = "scratch-twin", value_name = "STORAGE=ENTRY", requires = "scratch_pool", value_parser = counterpart)]
    pub(super) scratch_twins: Vec<(StorageName, StorageName)>,
    /// How much memory a scratch guest gets, in MiB.
    #[arg(long, value_name = "MIB", default_value = "2048", value_parser = memory)]
    pub(super) scratch_memory: MemoryMib,
    /// How many cores a scratch guest gets.
    #[arg(long, value_name = "COUNT", default_value = "2", value_parser = cores)]
    pub(super) scratch_cores: Cores,
    /// Also create a bridge on which scratch guests reach only the agent, so that their guest agents can report whether
    /// the programs of a restored backup run: this host's address there; the guest gets the next one.
    #[arg(
        long,
        value_name = "ADDRESS/PREFIX",
        num_args = 0..=1,
        default_missing_value = "10.254.254.1/30",
        requires = "scratch_pool",
        value_parser = test_network
    )]
    pub(super) test_network: Option<TestBridge>,
    /// The storage for root disks and hot volumes.
    #[arg(long, required_unless_present = "remove")]
    pub(super) storage: Option<StorageName>,
    /// The storage for bulk volumes.
    #[arg(long)]
    pub(super) bulk_storage: Option<StorageName>,
    /// A further storage on which documents may place root disks and volumes, as a target with role primary or
    /// bulk-data; may be given several times.
    #[arg(long = "guest-storage", value_name = "STORAGE")]
    pub(super) guest_storages: Vec<StorageName>,
    /// The storage for backups.
    #[arg(long)]
    pub(super) backup_storage: Option<StorageName>,
    /// A storage target (disk, share or backup server) whose entry in Proxmox the agent may create, once it is signed
    /// for; may be given several times. Creates a `storage` token, which is stored sealed.
    #[arg(long = "target", value_name = "NAME")]
    pub(super) targets: Vec<TargetName>,
    /// The bridge for the agent's guests.
    #[arg(long, default_value = "vmbr0")]
    pub(super) bridge: BridgeName,
    /// Addresses on the bridge that others use, such as a DHCP server's range: no document may give one to a guest; may
    /// be given several times.
    #[arg(long = "reserve", value_name = "ADDRESS[-ADDRESS]")]
    pub(super) reserved_addresses: Vec<AddressRange>,
    /// A VLAN on the bridge that guests may use; may be given several times.
    #[arg(long = "vlan", value_parser = vlan)]
    pub(super) vlans: Vec<VlanTag>,
    /// The VMIDs that the agent may use.
    #[arg(long, value_name = "FIRST-LAST", required_unless_present = "remove", value_parser = vmid_range)]
    pub(super) vmid_range: Option<[Vmid; 2]>,
    /// An address of this host on the bridge, with port; may be given several times.
    #[arg(long, required_unless_present = "remove")]
    pub(super) listen: Vec<SocketAddr>,
    /// A golden archive, approved by naming it: VERSION,VOLUME,FILE; may be given several times.
    #[arg(long = "golden", value_name = "VERSION,VOLUME,FILE")]
    pub(super) goldens: Vec<GoldenArgument>,
    /// Where the root helper builds golden images, and after how many days a new one is due [default: 30]:
    /// STORAGE,FOLDER[,DAYS], such as local,/var/lib/vz/dump.
    #[arg(long, value_name = "STORAGE,FOLDER,DAYS", value_parser = golden_dump)]
    pub(super) golden_dump: Option<GoldenDump>,
    /// The operators who may sign for this host: a file of public keys in OpenSSH's allowed_signers format, installed
    /// as root's.
    #[arg(long, value_name = "FILE")]
    pub(super) operators: Option<PathBuf>,
    /// The policy: how many signatures each verb needs, its delay and its daily cap; by default the built-in rules
    /// apply.
    #[arg(long, value_name = "FILE", requires = "operators")]
    pub(super) policy: Option<PathBuf>,
    /// Who may sign releases of the agent for this host: a file of public keys in the form of the operators file,
    /// installed as root's. Without it the agent is updated by its package alone.
    #[arg(long, value_name = "FILE")]
    pub(super) release_keys: Option<PathBuf>,
    /// The folder for persistent data.
    #[arg(long, default_value = "/var/lib/holdfast", default_value_if("remove", "true", None))]
    pub(super) state_dir: Option<PathBuf>,
    /// The Debian user of the agent (with --api: no user is made and the files are yours).
    #[arg(long, default_value = "holdfast", value_parser = system_user)]
    pub(super) system_user: String,
    /// The address the agent will use [default: https://127.0.0.1:8006, or that of --api].
    #[arg(long)]
    pub(super) url: Option<String>,
    /// A pin of Proxmox's certificate; may be given several times [default: the key of this host's own].
    #[arg(long = "pin")]
    pub(super) pins: Vec<Pin>,
    /// Make the changes through the API at this address.
    #[arg(long, value_name = "URL", requires = "credential", conflicts_with = "print")]
    pub(super) api: Option<String>,
    /// The file with the credential for --api, or `-` for standard input.
    #[arg(long, value_name = "FILE", requires = "api")]
    pub(super) credential: Option<PathBuf>,
    /// Write a script instead of making the changes.
    #[arg(long)]
    pub(super) print: bool,
    /// Show the plan and stop.
    #[arg(long, conflicts_with = "print")]
    pub(super) dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(long)]
    pub(super) yes: bool,
    /// Remove what was set up: the items that the settings name, unless they are named here. Guests and the state
    /// folder stay.
    #[arg(long)]
    pub(super) remove: bool,
    /// Table for people, or JSON for programs.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    pub(super) output: Output,
}

/// `VERSION,VOLUME,FILE`.
#[derive(Clone, Debug)]
pub(super) struct GoldenArgument {
    version: GoldenVersion,
    archive: VolumeId,
    file: PathBuf,
}

impl FromStr for GoldenArgument {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(3, ',');
        let mut next =
            |what: &str| parts.next().filter(|part| !part.is_empty()).ok_or(format!("{what} is missing"));
        Ok(Self {
            version: next("the version")?.parse().map_err(|error| format!("{error}"))?,
            archive: next("the volume")?.parse().map_err(|error| format!("{error}"))?,
            file: PathBuf::from(next("the file")?),
        })
    }
}

fn golden_dump(text: &str) -> Result<GoldenDump, String> {
    let mut parts = text.splitn(3, ',');
    let (Some(storage), Some(folder)) = (parts.next(), parts.next()) else {
        return Err("a storage and its folder, such as local,/var/lib/vz/dump".to_owned());
    };
    let folder = PathBuf::from(folder);
    if !folder.is_absolute() {
        return Err("the folder is an absolute path".to_owned());
    }
    let refresh_days = parts.next().map_or(Ok(GoldenDump::REFRESH_DAYS), |days| {
        let days = days.parse().ok().filter(|days| GoldenDump::REFRESH_DAYS_POSSIBLE.contains(days));
        days.ok_or("1 to 3650 days")
    })?;
    Ok(GoldenDump { storage: storage.parse().map_err(|error| format!("{error}"))?, folder, refresh_days })
}

/// `name@pve`: only characters that Proxmox takes and that have no special meaning in a path or a line.
fn user(text: &str) -> Result<String, String> {
    let plain =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    match text.split_once('@') {
        Some((name, realm)) if plain(name) && plain(realm) && text.len() <= 64 => Ok(text.to_owned()),
        _ => Err("a user such as holdfast@pve".to_owned()),
    }
}

fn system_user(text: &str) -> Result<String, String> {
    let plain = text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_');
    let first = text.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    if plain && first && text.len() <= 32 {
        Ok(text.to_owned())
    } else {
        Err("a user name such as holdfast".to_owned())
    }
}

fn vlan(text: &str) -> Result<VlanTag, String> {
    let number: u32 = text.parse().map_err(|_| "a number from 1 to 4094".to_owned())?;
    VlanTag::try_from(number).map_err(|error| error.to_string())
}

fn memory(text: &str) -> Result<MemoryMib, String> {
    let number: u32 = text.parse().map_err(|_| "a number of MiB".to_owned())?;
    MemoryMib::try_from(number).map_err(|error| error.to_string())
}

fn cores(text: &str) -> Result<Cores, String> {
    let number: u32 = text.parse().map_err(|_| "a number of cores".to_owned())?;
    Cores::try_from(number).map_err(|error| error.to_string())
}

fn vmid_range(text: &str) -> Result<[Vmid; 2], String> {
    let (first, last) = text.split_once('-').ok_or("two VMIDs with a dash between, such as 5000-5999")?;
    let vmid = |text: &str| Vmid::from_str(text).map_err(|error| error.to_string());
    let range = [vmid(first)?, vmid(last)?];
    let [first, last] = range;
    if first <= last { Ok(range) } else { Err("the first VMID is above the last".to_owned()) }
}

fn counterpart(text: &str) -> Result<(StorageName, StorageName), String> {
    let (of, counterpart) = text.split_once('=').ok_or("a storage and its twin, such as off1=off1-read")?;
    let storage = |text: &str| StorageName::from_str(text).map_err(|error| error.to_string());
    Ok((storage(of)?, storage(counterpart)?))
}

fn test_network(text: &str) -> Result<TestBridge, String> {
    let own: Ipv4Cidr = text.parse().map_err(|error: CidrError| error.to_string())?;
    test_bridge::both_ends(own).map_err(str::to_owned)
}

/// Why the choices are not complete.
#[derive(Debug, thiserror::Error)]
pub enum ChoiceError {
    /// A choice that was not made.
    #[error("{0} is missing: it is needed to set up a box")]
    Missing(&'static str),
    /// Archives are stored where scratch guests' disks would be.
    #[error(
        "archives lie on {storage}: the token of scratch guests could delete them there; name another storage with --scratch-storage"
    )]
    ScratchStorage {
        /// The storage.
        storage: StorageName,
    },
    /// A twin that cannot be one.
    #[error("--scratch-twin for {of}: name {rule}")]
    Counterpart {
        /// The storage.
        of: StorageName,
        /// The expected value.
        rule: &'static str,
    },
    /// No node.
    #[error("this box has no host name that could be a node: name the node with --node")]
    Node,
    /// No certificate on this host.
    #[error("no certificate of Proxmox is found on this box: name its pin with --pin spki/sha256:…")]
    Pin,
    /// A golden's archive cannot be read.
    #[error("the golden archive {} cannot be read: it must be a file on this box", path.display())]
    Archive {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A golden whose name has no VMID.
    #[error("{archive} is not an archive of a container: its name must say vzdump-lxc-VMID")]
    ArchiveName {
        /// The volume.
        archive: VolumeId,
    },
    #[error(transparent)]
    Signers(#[from] SignerFilesError),
    /// The tunnels of the installed settings.
    #[error(transparent)]
    Tunnels(TunnelSettingsError),
    /// A relative path.
    #[error("{} is not an absolute path", path.display())]
    Relative {
        /// The path.
        path: PathBuf,
    },
}

impl SetupArguments {
    /// Completes the choices from this host.
    pub(super) fn choices(&self) -> Result<Choices, ChoiceError> {
        // The parser of the arguments demands these, or fills them in.
        let state_dir = chosen(&self.state_dir, "--state-dir")?;
        for path in [&state_dir, &self.config.config] {
            absolute(path)?;
        }
        let url = self.url.as_ref().or(self.api.as_ref()).map(|url| url.trim_end_matches('/').to_owned());
        Ok(Choices {
            user: chosen(&self.user, "--user")?,
            url: url.unwrap_or_else(|| "https://127.0.0.1:8006".to_owned()),
            node: self.node.clone().or_else(own_node).ok_or(ChoiceError::Node)?,
            pins: self.pins()?,
            pool: chosen(&self.pool, "--pool")?,
            scratch: self.scratch()?,
            storage: chosen(&self.storage, "--storage")?,
            bulk_storage: self.bulk_storage.clone(),
            guest_storages: self.guest_storages.iter().cloned().collect(),
            backup_storage: self.backup_storage.clone(),
            targets: self.targets.iter().cloned().collect(),
            bridge: self.bridge.clone(),
            reserved_addresses: self.reserved_addresses.clone(),
            vlans: self.vlans.clone(),
            vmid_range: chosen(&self.vmid_range, "--vmid-range")?,
            goldens: self.goldens.iter().map(golden).collect::<Result<_, _>>()?,
            golden_dump: self.golden_dump.clone(),
            trust: signer_files::trust(self.operators.as_deref(), self.policy.as_deref())?,
            release_keys: signer_files::release_keys(self.release_keys.as_deref())?,
            tunnels: installed(&self.config.config).map_err(ChoiceError::Tunnels)?,
            listen: self.listen.clone(),
            state_dir,
            config: self.config.config.clone(),
            system_user: self.owner(),
        })
    }

    fn scratch(&self) -> Result<Option<Scratch>, ChoiceError> {
        let Some(pool) = self.scratch_pool.clone() else { return Ok(None) };
        let storage = chosen(&self.scratch_storage.clone().or_else(|| self.storage.clone()), "--storage")?;
        let archives = self.goldens.iter().filter_map(|golden| golden.archive.storage().parse().ok());
        if self.backup_storage.iter().cloned().chain(archives).any(|held: StorageName| held == storage) {
            return Err(ChoiceError::ScratchStorage { storage });
        }
        let vmid_range = chosen(&self.scratch_range, "--scratch-range")?;
        Ok(Some(Scratch {
            pool,
            vmid_range,
            memory: self.scratch_memory,
            cores: self.scratch_cores,
            speech: self.test_network.clone(),
            twins: self.twins(&storage)?,
            storage,
        }))
    }

    fn twins(&self, scratch: &StorageName) -> Result<BTreeMap<StorageName, StorageName>, ChoiceError> {
        let twins: BTreeMap<_, _> = self.scratch_twins.iter().cloned().collect();
        let backups = self.backup_storage.iter().map(StorageName::as_str);
        let backups = backups.chain(self.targets.iter().map(TargetName::as_str)).collect();
        let others =
            self.storage.iter().chain(&self.bulk_storage).chain(&self.guest_storages).chain([scratch]);
        let others = others.chain(self.golden_dump.iter().map(|dump| &dump.storage)).map(StorageName::as_str);
        let goldens = self.goldens.iter().map(|golden| golden.archive.storage());
        match counterpart_mistake(&twins, &backups, &others.chain(goldens).collect()) {
            None => Ok(twins),
            Some((of, rule)) => Err(ChoiceError::Counterpart { of: of.clone(), rule }),
        }
    }

    /// The user that owns the files on this host, where it is not the user who runs this.
    pub(super) fn owner(&self) -> Option<String> {
        self.api.is_none().then(|| self.system_user.clone())
    }

    /// The keys that Proxmox's certificate may have.
    pub(super) fn pins(&self) -> Result<PinSet, ChoiceError> {
        match PinSet::try_from(self.pins.clone()) {
            Ok(pins) => Ok(pins),
            Err(_) => own_pin().map(PinSet::from).ok_or(ChoiceError::Pin),
        }
    }
}

fn chosen<T: Clone>(choice: &Option<T>, name: &'static str) -> Result<T, ChoiceError> {
    choice.clone().ok_or(ChoiceError::Missing(name))
}

/// Files are named from the top, so that a service finds them, too.
pub(super) fn absolute(path: &Path) -> Result<(), ChoiceError> {
    if path.is_absolute() { Ok(()) } else { Err(ChoiceError::Relative { path: path.to_owned() }) }
}

fn golden(argument: &GoldenArgument) -> Result<Golden, ChoiceError> {
    let archive = argument.archive.clone();
    let vmid = archive_vmid(&archive).ok_or(ChoiceError::ArchiveName { archive: archive.clone() })?;
    absolute(&argument.file)?;
    let sha256 = file_sha256(&argument.file)
        .map_err(|source| ChoiceError::Archive { path: argument.file.clone(), source })?;
    Ok(Golden { version: argument.version.clone(), archive, vmid, sha256, file: argument.file.clone() })
}

/// Hashes a file piece by piece.
pub(crate) fn file_sha256(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut piece = vec![0_u8; 1 << 20];
    loop {
        let count = file.read(&mut piece)?;
        let Some(bytes) = piece.get(..count).filter(|bytes| !bytes.is_empty()) else { break };
        hash.update(bytes);
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The key of the certificate that pveproxy shows: the administrator's own certificate has priority over the node's.
fn own_pin() -> Option<Pin> {
    ["/etc/pve/local/pveproxy-ssl.pem", "/etc/pve/local/pve-ssl.pem"].iter().find_map(|path| {
        let certificate = CertificateDer::from_pem_file(path).ok()?;
        net::tls::pin_of(PinKind::Spki, &certificate).ok()
    })
}

fn own_node() -> Option<NodeName> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    name.trim().split('.').next()?.parse().ok()
}
