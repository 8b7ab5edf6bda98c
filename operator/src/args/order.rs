//! Arguments of `holdfast order`.

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use holdfast_protocol::id::{SnapshotName, WorkOrderId};
use holdfast_protocol::protection::Tier;
use holdfast_protocol::work_order::{DiagnosticName, WorkOrderState};

/// Of `holdfast order`.
#[derive(Debug, Subcommand)]
pub enum OrderCommand {
    /// Take a backup of a guest now, whatever is due.
    Backup {
        #[command(flatten)]
        of: OfGuest,
        /// The tier; without it to the host's own backup storage.
        #[arg(long, value_enum)]
        tier: Option<OrderTier>,
        #[command(flatten)]
        order: OrderArgs,
    },
    /// Take a snapshot of a guest. It goes by itself when its time is over.
    Snapshot {
        #[command(flatten)]
        of: OfGuest,
        /// Its name, such as before-update.
        name: SnapshotName,
        /// Keep it so many hours.
        #[arg(long, value_name = "HOURS", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=744))]
        keep: u32,
        #[command(flatten)]
        order: OrderArgs,
    },
    /// Shut a running guest down and start it again; where it has maintenance windows, in the next one.
    Restart {
        #[command(flatten)]
        of: OfGuest,
        /// At once, also outside the guest's maintenance window.
        #[arg(long)]
        at_once: bool,
        #[command(flatten)]
        order: OrderArgs,
    },
    /// Try the newest good backup of a guest now, whatever is due.
    RestoreTest {
        #[command(flatten)]
        of: OfGuest,
        /// Of this tier; without it the newest of any.
        #[arg(long, value_enum)]
        tier: Option<OrderTier>,
        #[command(flatten)]
        order: OrderArgs,
    },
    /// Read the whole host anew.
    Refresh {
        /// The host's name or id.
        host: String,
        #[command(flatten)]
        order: OrderArgs,
    },
    /// Read one named thing of the host, and show the text. There is no free command.
    Diagnose {
        /// The host's name or id.
        host: String,
        /// What is read.
        #[arg(value_enum)]
        name: Reading,
        /// Only of this guest, where the reading is of guests: its name or uid.
        guest: Option<String>,
        #[command(flatten)]
        order: OrderArgs,
    },
    /// Show the work orders of a host, newest first.
    List {
        /// The host's name or id.
        host: String,
        /// Only those in this state.
        #[arg(long, value_enum)]
        state: Option<OrderStateArg>,
    },
    /// Show one work order: phases, log and result, and the text of a reading.
    Show(OneOrder),
    /// Take a work order back that has not begun. The host has the last word.
    Cancel(OneOrder),
    /// Follow a work order until it ends.
    Watch {
        #[command(flatten)]
        one: OneOrder,
        /// Stop following after this many seconds.
        #[arg(long, value_name = "SECONDS", default_value_t = 3_600, value_parser = clap::value_parser!(u64).range(1..=172_800))]
        timeout: u64,
    },
}

/// Of an order for one guest.
#[derive(Debug, ClapArgs)]
pub struct OfGuest {
    /// The host's name or id.
    pub host: String,
    /// The guest's name or uid.
    pub guest: String,
}

/// Of every new order.
#[derive(Debug, ClapArgs)]
pub struct OrderArgs {
    /// The order ends by itself when it could not begin within so many minutes.
    #[arg(long, value_name = "MINUTES", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=1_440))]
    pub within: u32,
    /// Follow the order until it ends.
    #[arg(long)]
    pub wait: bool,
}

/// An order that is there.
#[derive(Debug, ClapArgs)]
pub struct OneOrder {
    /// The host's name or id.
    pub host: String,
    /// The order's id.
    pub order: WorkOrderId,
}

/// A tier of backups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OrderTier {
    /// In the same place as the host.
    Local,
    /// Elsewhere.
    OffSite,
}

impl From<OrderTier> for Tier {
    fn from(tier: OrderTier) -> Self {
        match tier {
            OrderTier::Local => Self::Local,
            OrderTier::OffSite => Self::OffSite,
        }
    }
}

/// A reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Reading {
    /// What is wrong with the host, as the agent finds it.
    Doctor,
    /// Storages and targets, and the health of disks.
    Storage,
    /// Addresses and filters of guests, and tunnels.
    Network,
    /// Locks and running tasks, with user and beginning.
    Locks,
    /// The newest operations with their steps.
    Journal,
    /// What the guest agents said last.
    GuestAgent,
}

impl From<Reading> for DiagnosticName {
    fn from(name: Reading) -> Self {
        match name {
            Reading::Doctor => Self::Doctor,
            Reading::Storage => Self::Storage,
            Reading::Network => Self::Network,
            Reading::Locks => Self::Locks,
            Reading::Journal => Self::Journal,
            Reading::GuestAgent => Self::GuestAgent,
        }
    }
}

/// A state of orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OrderStateArg {
    /// The host has not spoken of it.
    Pending,
    /// The host took it, and it waits there.
    Claimed,
    /// It is under way.
    Running,
    /// It is done.
    Succeeded,
    /// It came to nothing.
    Failed,
    /// It was taken back before it began.
    Cancelled,
    /// Its time ended before it began.
    Expired,
}

impl From<OrderStateArg> for WorkOrderState {
    fn from(state: OrderStateArg) -> Self {
        match state {
            OrderStateArg::Pending => Self::Pending,
            OrderStateArg::Claimed => Self::Claimed,
            OrderStateArg::Running => Self::Running,
            OrderStateArg::Succeeded => Self::Succeeded,
            OrderStateArg::Failed => Self::Failed,
            OrderStateArg::Cancelled => Self::Cancelled,
            OrderStateArg::Expired => Self::Expired,
        }
    }
}
