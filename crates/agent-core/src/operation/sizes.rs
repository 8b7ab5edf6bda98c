//! *reconfigure* and *grow*: a guest's sizes, name, network and protection.

use holdfast_protocol::desired::field::GuestField;
use holdfast_protocol::desired::{GuestLimits, Resolver};
use holdfast_protocol::id::GuestName;
use holdfast_protocol::size::{Cores, DiskGib, MemoryMib, SwapMib};
use serde::{Deserialize, Serialize};

use super::applied::AppliedBy;
use super::spec::{ChangeLimit, Facts, Holds, Spec, Subject, Takes, Target};
use super::step::Step;
use crate::gate::Effect;
use crate::model::field::{self, Texts};
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
    /// How much CPU time it may use: those limits that it does not have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<GuestLimits>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<GuestName>,
    /// Where its first network is plugged in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetPlace>,
    /// From which addresses it may send, by Proxmox's firewall.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<FilterRequest>,
    /// Its name servers.
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

impl Reconfigure {
    /// The fields that it changes.
    fn changed(&self) -> Texts {
        let Self {
            target: _,
            cores,
            memory,
            swap,
            limits,
            name,
            network,
            filter: _,
            resolver,
            protection: _,
        } = self;
        let named = [
            (GuestField::Cores, cores.map(|cores| cores.get().to_string())),
            (GuestField::Memory, memory.map(|size| size.to_string())),
            (GuestField::Swap, swap.map(|size| size.to_string())),
            (GuestField::Name, name.as_ref().map(ToString::to_string)),
            (GuestField::Resolver, resolver.as_ref().map(field::resolver)),
        ];
        let named = named.into_iter().filter_map(|(field, text)| Some((field, text?)));
        let limits = limits.iter().flat_map(field::of_limits);
        network.iter().flat_map(field::of_place).chain(limits).chain(named).collect()
    }
}

impl Reconfigure {
    /// A change of sizes, limits, network or resolver counts: with little CPU time its programs answer nobody, and without the right resolver its programs reach no other machine
    /// after its next start. Putting protection back alone takes nothing away.
    pub(super) const fn change_limit(&self) -> ChangeLimit {
        let sizes = self.cores.is_some() || self.memory.is_some() || self.swap.is_some();
        if sizes || self.limits.is_some() || self.network.is_some() || self.resolver.is_some() {
            ChangeLimit::Counts
        } else {
            ChangeLimit::Exempt
        }
    }
}

impl Spec for Reconfigure {
    fn facts(&self) -> Facts<'_> {
        Facts { guest: self.target.guest(), holds: Holds::Guest, takes: Takes::Nothing }
    }

    fn subject(&self) -> Subject {
        Subject::Guest
    }

    fn steps(&self) -> Vec<Step> {
        vec![Step::Configure]
    }

    fn effects(&self) -> Vec<Effect> {
        match self.protection {
            KeepProtection::AsItIs => vec![Effect::Reconfigure],
            KeepProtection::PutBack => vec![Effect::Reconfigure, Effect::Protect],
        }
    }

    fn applied(&self) -> Option<AppliedBy> {
        Some(AppliedBy::Changed(self.changed()))
    }
}

impl Spec for Grow {
    fn facts(&self) -> Facts<'_> {
        Facts { guest: self.target.guest(), holds: Holds::Guest, takes: Takes::Nothing }
    }

    fn subject(&self) -> Subject {
        Subject::Guest
    }

    fn steps(&self) -> Vec<Step> {
        vec![Step::GrowDisk]
    }

    fn effects(&self) -> Vec<Effect> {
        vec![Effect::GrowDisk]
    }

    fn applied(&self) -> Option<AppliedBy> {
        match self.disk {
            DiskRef::Rootfs => AppliedBy::one(GuestField::Rootfs, self.size.to_string()),
            DiskRef::Mount(_) => None,
        }
    }
}
