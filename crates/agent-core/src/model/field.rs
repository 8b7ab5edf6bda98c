//! Fields of a guest as text: desired, observed, last applied.
//!
//! One form for all three, so that they can be compared and shown side by side.

use std::collections::BTreeMap;

use holdfast_protocol::desired::field::GuestField;
use holdfast_protocol::desired::{DesiredGuest, FirewallFlag, GuestLimits, Mtu, Rate, Resolver, RunState};
use holdfast_protocol::report::FieldState;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use super::applied::{Applied, AppliedField};
use super::cpu;
use super::net::{NetLine, NetPlace, ResolverText};
use super::observed::GuestFacts;
use holdfast_protocol::report::Running;

/// Fields with their texts.
pub type Texts = BTreeMap<GuestField, String>;

/// All fields of a guest, where they are known, and when they were read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestFields {
    /// When its configuration was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<Timestamp>,
    /// When the guest was started, where it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_at: Option<Timestamp>,
    pub fields: Vec<FieldState>,
    /// Whether Proxmox's firewall holds it to its addresses, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
}

const NONE: &str = "none";

/// What the document says. What it does not name is left out.
#[must_use]
pub fn wanted(guest: &DesiredGuest) -> Texts {
    let size = guest.size;
    let run = match guest.run {
        RunState::Running => Running::Running,
        RunState::Stopped => Running::Stopped,
    };
    let mut texts = Texts::from([
        (GuestField::Name, guest.name.to_string()),
        (GuestField::Run, running(run).to_owned()),
        (GuestField::Cores, size.cores.get().to_string()),
        (GuestField::Memory, size.memory_mib.to_string()),
        (GuestField::Swap, size.swap_mib.to_string()),
        (GuestField::Rootfs, size.rootfs_gib.to_string()),
    ]);
    texts.extend(guest.limits.iter().flat_map(of_limits));
    texts.extend(of_place(&NetPlace::of(&guest.network)));
    texts.extend(guest.network.resolver.as_ref().map(|goal| (GuestField::Resolver, resolver(goal))));
    texts
}

/// Limits of CPU time. What stays as it is is left out.
#[must_use]
pub fn of_limits(limits: &GuestLimits) -> Texts {
    let named = [
        (GuestField::CpuLimit, limits.cpu.map(cpu::wanted)),
        (GuestField::CpuWeight, limits.cpu_weight.map(|weight| weight.get().to_string())),
    ];
    named.into_iter().filter_map(|(field, text)| Some((field, text?))).collect()
}

/// A place of the network. What stays as it is is left out.
#[must_use]
pub fn of_place(place: &NetPlace) -> Texts {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| NONE.to_owned());
    let mtu = |mtu| match mtu {
        Mtu::Bridge => "bridge".to_owned(),
        Mtu::Bytes(bytes) => bytes.get().to_string(),
    };
    let rate = |rate| match rate {
        Rate::Unlimited => "unlimited".to_owned(),
        Rate::MibPerS(rate) => rate.to_string(),
    };
    let firewall = |flag| match flag {
        FirewallFlag::On => "on".to_owned(),
        FirewallFlag::Off => "off".to_owned(),
    };
    let named = [
        (GuestField::Bridge, Some(place.bridge.to_string())),
        (GuestField::Address, place.address.map(|address| address.to_string())),
        (GuestField::Gateway, Some(or_none(place.gateway.map(|gateway| gateway.to_string())))),
        (GuestField::Vlan, Some(or_none(place.vlan.map(|tag| tag.get().to_string())))),
        (GuestField::Mtu, place.mtu.map(mtu)),
        (GuestField::Rate, place.rate.map(rate)),
        (GuestField::Firewall, place.firewall.map(firewall)),
    ];
    named.into_iter().filter_map(|(field, text)| Some((field, text?))).collect()
}

/// The name servers that a guest is to use.
#[must_use]
pub fn resolver(goal: &Resolver) -> String {
    resolver_text(&ResolverText::of(goal))
}

fn resolver_text(text: &ResolverText) -> String {
    match text {
        ResolverText { servers: None, search: None } => "host".to_owned(),
        text => text.to_string(),
    }
}

/// What Proxmox has.
#[must_use]
pub fn seen(run: Running, facts: &GuestFacts) -> Texts {
    let mut texts = Texts::from([
        (GuestField::Run, running(run).to_owned()),
        (GuestField::Cores, facts.cores.map_or_else(|| "all".to_owned(), |cores| cores.to_string())),
        (GuestField::Memory, format!("{} MiB", facts.memory_mib)),
        (GuestField::Swap, format!("{} MiB", facts.swap_mib)),
        (GuestField::CpuLimit, facts.cpu.limit.to_string()),
        (GuestField::CpuWeight, facts.cpu.weight_words()),
        (GuestField::Resolver, resolver_text(&facts.resolver)),
    ]);
    texts.extend(facts.name.clone().map(|name| (GuestField::Name, name)));
    texts.extend(facts.rootfs_bytes.map(|bytes| (GuestField::Rootfs, format!("{} GiB", bytes >> 30))));
    texts.extend(facts.net.iter().flat_map(of_line));
    texts
}

fn of_line(line: &NetLine) -> Texts {
    let or = |key: &str, none: &str| line.value(key).unwrap_or(none).to_owned();
    let rate = line.value("rate").map_or_else(|| "unlimited".to_owned(), |rate| format!("{rate} MiB/s"));
    let firewall = if line.value("firewall") == Some("1") { "on" } else { "off" };
    Texts::from([
        (GuestField::Bridge, or("bridge", NONE)),
        (GuestField::Address, or("ip", NONE)),
        (GuestField::Gateway, or("gw", NONE)),
        (GuestField::Vlan, or("tag", NONE)),
        (GuestField::Mtu, or("mtu", "bridge")),
        (GuestField::Rate, rate),
        (GuestField::Firewall, firewall.to_owned()),
    ])
}

/// Whether it runs, as documents write it.
#[must_use]
pub const fn running(run: Running) -> &'static str {
    match run {
        Running::Running => "running",
        Running::Stopped => "stopped",
        Running::Unknown => "unknown",
    }
}
