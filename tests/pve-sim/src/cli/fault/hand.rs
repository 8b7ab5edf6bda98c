//! An administrator's manual changes as command-line arguments.
use anyhow::Context as _;
use clap::Subcommand;
use pve_sim::fault::admin::Edit;
use pve_sim::fault::control::Order;
use pve_sim::fault::usage::Percent;

/// A hand edit.
#[derive(Debug, Subcommand)]
pub enum Hand {
    /// By hand: set options in a guest's configuration file.
    Set {
        /// The guest.
        vmid: u32,
        /// `key=value`, one or more.
        #[arg(required = true)]
        options: Vec<String>,
    },
    /// By hand: remove options, `lock` too.
    Unset {
        /// The guest.
        vmid: u32,
        /// The keys.
        #[arg(required = true)]
        keys: Vec<String>,
    },
    /// By hand: stop a guest at once.
    Stop {
        /// The guest.
        vmid: u32,
    },
    /// By hand: start a guest.
    Start {
        /// The guest.
        vmid: u32,
    },
    /// By hand: destroy a guest and its volumes.
    Destroy {
        /// The guest.
        vmid: u32,
    },
    /// By hand: destroy a guest and make another one under its number.
    Reuse {
        /// The number.
        vmid: u32,
        /// The storage of the new guest's disk.
        storage: String,
    },
    /// The same, with the tags of the one that was there.
    Impostor {
        /// The number.
        vmid: u32,
        /// The storage of the new guest's disk.
        storage: String,
    },
    /// By hand: take a guest out of its pool.
    Unpool {
        /// The guest.
        vmid: u32,
    },
    /// By hand: attach a new volume.
    Attach {
        /// The guest.
        vmid: u32,
        /// `mp5`
        key: String,
        /// The storage.
        storage: String,
        /// The path in the guest.
        mount: String,
    },
    /// By hand: remove a volume's files.
    RemoveVolume {
        /// Its id.
        volid: String,
    },
    /// Take a storage away.
    StorageOffline {
        /// Its name.
        storage: String,
    },
    /// Bring a storage back.
    StorageOnline {
        /// Its name.
        storage: String,
    },
    /// A storage is so full, in percent; without a number, as full as it is.
    StorageFill {
        /// Its name.
        storage: String,
        /// How full.
        percent: Option<u64>,
    },
    /// A running guest, or the node without a number, uses this much; without figures, what it really uses.
    Use {
        /// The guest.
        #[arg(long)]
        vmid: Option<u32>,
        /// CPU time, memory and root disk in percent.
        #[arg(long, num_args = 3, value_names = ["CPU", "MEMORY", "DISK"])]
        percent: Option<Vec<u64>>,
    },
    /// No configuration can be written, as without quorum.
    QuorumLost,
    /// Configurations can be written again.
    QuorumBack,
    /// The node's clock is so many seconds ahead; behind, when negative.
    Clock {
        /// How far.
        #[arg(allow_negative_numbers = true)]
        ahead_s: i64,
    },
    /// A token expires at a time in Unix seconds; 0 for never.
    TokenExpiry {
        /// The full id.
        id: String,
        /// When.
        expire: i64,
    },
    /// Reboot the node at once, as after a power loss.
    Reboot,
    /// Reboot the node in good order: running tasks get a stop request.
    ShutDown,
    /// Lose a task from the index.
    ForgetTask {
        /// Its name.
        upid: String,
    },
}

impl Hand {
    /// The orders for it.
    ///
    /// # Errors
    /// For an option that is not `key=value`.
    pub fn orders(self) -> anyhow::Result<Vec<Order>> {
        let edit = match self {
            Self::Set { vmid, options } => return options.iter().map(|text| set(vmid, text)).collect(),
            Self::Unset { vmid, keys } => {
                return Ok(keys.into_iter().map(|key| Order::Edit(Edit::Unset { vmid, key })).collect());
            }
            Self::Stop { vmid } => Edit::Stop { vmid },
            Self::Start { vmid } => Edit::Start { vmid },
            Self::Destroy { vmid } => Edit::Destroy { vmid },
            Self::Reuse { vmid, storage } => Edit::Reuse { vmid, storage },
            Self::Impostor { vmid, storage } => Edit::Impostor { vmid, storage },
            Self::Unpool { vmid } => Edit::Unpool { vmid },
            Self::Attach { vmid, key, storage, mount } => Edit::Attach { vmid, key, storage, mount },
            Self::RemoveVolume { volid } => Edit::RemoveVolume { volid },
            Self::StorageOffline { storage } => Edit::StorageOffline { storage },
            Self::StorageOnline { storage } => Edit::StorageOnline { storage },
            Self::StorageFill { storage, percent } => Edit::StorageFill { storage, percent },
            Self::Use { vmid, percent } => {
                let percent = percent.as_deref().and_then(|all| match all {
                    [cpu, memory, disk] => Some(Percent { cpu: *cpu, memory: *memory, disk: *disk }),
                    _ => None,
                });
                Edit::Use { vmid, percent }
            }
            Self::QuorumLost => Edit::Quorum { held: false },
            Self::QuorumBack => Edit::Quorum { held: true },
            Self::Clock { ahead_s } => Edit::Clock { ahead_s },
            Self::TokenExpiry { id, expire } => Edit::TokenExpiry { id, expire },
            Self::Reboot => Edit::Reboot,
            Self::ShutDown => Edit::ShutDown,
            Self::ForgetTask { upid } => Edit::ForgetTask { upid },
        };
        Ok(vec![Order::Edit(edit)])
    }
}

fn set(vmid: u32, text: &str) -> anyhow::Result<Order> {
    let (key, value) = text.split_once('=').with_context(|| format!("`{text}` is not key=value"))?;
    Ok(Order::Edit(Edit::Set { vmid, key: key.to_owned(), value: value.to_owned() }))
}
