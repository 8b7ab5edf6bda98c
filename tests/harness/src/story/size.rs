//! Changing a guest's sizes and network.

use agentd::model::net::NetPlace;
use agentd::operation::{DiskRef, Grow, KeepProtection, Operation, Reconfigure};
use holdfast_protocol::desired::{FirewallFlag, GuestLimits, Mtu, Rate, Resolver};

use super::Story;
use crate::fixtures::{guest, target};
use crate::ground::Ground;

pub(super) fn reconfigure() -> Vec<Story> {
    vec![Story::done("reconfigure", Ground::GuestRuns, |_| {
        Operation::Reconfigure(Reconfigure {
            name: None,
            network: Some(network()),
            filter: None,
            resolver: Some(resolver()),
            target: target(1),
            cores: Some(1.try_into().unwrap()),
            memory: Some(128.try_into().unwrap()),
            swap: None,
            limits: Some(limits()),
            protection: KeepProtection::AsItIs,
        })
    })]
}

/// Its own network place, with all other fields that a document can set.
fn network() -> NetPlace {
    NetPlace {
        mtu: Some(Mtu::Bytes(1400.try_into().unwrap())),
        rate: Some(Rate::MibPerS(50.try_into().unwrap())),
        firewall: Some(FirewallFlag::On),
        ..NetPlace::of(&guest(1).network)
    }
}

fn limits() -> GuestLimits {
    serde_json::from_value(serde_json::json!({ "cpu": { "core_percent": 150 }, "cpu_weight": 50 })).unwrap()
}

fn resolver() -> Resolver {
    let servers = serde_json::json!({ "own": { "servers": ["9.9.9.9"], "search": ["lan.example"] } });
    serde_json::from_value(servers).unwrap()
}

pub(super) fn grow() -> Vec<Story> {
    vec![Story::done("grow", Ground::GuestStands, |_| {
        Operation::Grow(Grow { target: target(1), disk: DiskRef::Mount(0), size: 2.try_into().unwrap() })
    })]
}
