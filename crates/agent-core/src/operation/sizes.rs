//! *reconfigure* and *grow*: a guest's sizes, name, network and protection.

use holdfast_protocol::desired::Resolver;
use holdfast_protocol::id::GuestName;
use holdfast_protocol::size::{Cores, DiskGib, MemoryMib, SwapMib};
use serde::{Deserialize, Serialize};

use super::Target;
use crate::model::filter::FilterRequest;
use crate::model::net::NetPlace;

/// What is put right. What is not set stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reconfigure {
    pub target: Target,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<Cores>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryMib>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap: Option<SwapMib>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<GuestName>,
    /// Where its first network is plugged in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetPlace>,
    /// From which addresses it may send, by Proxmox's firewall.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<FilterRequest>,
    /// Whom it asks for names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolver: Option<Resolver>,
    /// Whether protection, which somebody took off, is put back.
    pub protection: KeepProtection,
}

/// What becomes of a guest's protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeepProtection {
    /// It is on.
    AsItIs,
    /// It was taken off by hand; it is put back.
    PutBack,
}

/// A disk that becomes larger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grow {
    pub target: Target,
    /// Which of its disks.
    pub disk: DiskRef,
    /// How large it becomes.
    pub size: DiskGib,
}

/// A disk of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiskRef {
    /// The root disk.
    Rootfs,
    /// A mount, by its slot.
    Mount(u8),
}
