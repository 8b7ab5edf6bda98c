//! The identity of a guest, read from its configuration.
//!
//! In: a configuration as it is. Out: its identity, or the changes from it to another identity; none when both are
//! equal. A network that was added or removed by hand is not a matter of identity: then nothing is set. Deliberately
//! absent: whose guest it is, and sending anything.

use std::collections::BTreeMap;

use holdfast_protocol::id::GuestName;

use crate::model::net::NetLine;
use crate::operation::swap_guest::identity::{AtBoot, GuestIdentity};
use crate::port::pve::change::{Description, NetSlot, Tag};
use crate::port::pve::config::Switch;
use crate::port::pve::{ConfigChange, GuestConfig};

/// The face of a guest.
pub(super) fn of(config: &GuestConfig) -> Result<GuestIdentity, String> {
    let name = config.hostname.clone().unwrap_or_default();
    Ok(GuestIdentity {
        tags: config.tags.clone(),
        description: config.description.clone(),
        hostname: name.parse::<GuestName>().map_err(|_| format!("its host name {name:?} is none of ours"))?,
        at_boot: at_boot(config.onboot),
        nets: nets(config)?,
    })
}

/// What must be set to give it this identity. Only labels, name, start with the node and networks.
pub(super) fn changes(config: &GuestConfig, wanted: &GuestIdentity) -> Result<Vec<ConfigChange>, String> {
    let seen = nets(config)?;
    if !seen.keys().eq(wanted.nets.keys()) {
        return Err("a network of it came or went by hand".to_owned());
    }
    let mut changes = Vec::new();
    if config.tags != wanted.tags {
        let tags = wanted.tags.iter().map(|tag| tag.parse::<Tag>()).collect::<Result<Vec<_>, _>>();
        changes.push(ConfigChange::Tags(tags.map_err(|error| error.to_string())?));
    }
    if config.description != wanted.description {
        let text = Description::try_from(wanted.description.clone()).map_err(|error| error.to_string())?;
        changes.push(ConfigChange::Description(text));
    }
    if config.hostname.as_deref() != Some(wanted.hostname.as_str()) {
        changes.push(ConfigChange::Hostname(wanted.hostname.clone()));
    }
    if at_boot(config.onboot) != wanted.at_boot {
        changes.push(ConfigChange::AtBoot(match wanted.at_boot {
            AtBoot::Starts => Switch::On,
            AtBoot::Stays => Switch::Off,
        }));
    }
    let differs = wanted.nets.iter().filter(|(number, line)| seen.get(number) != Some(line));
    changes.extend(differs.map(|(number, line)| ConfigChange::Net(NetSlot(*number), line.clone())));
    Ok(changes)
}

/// Whether no network of it is plugged in.
pub(super) fn is_unplugged(config: &GuestConfig) -> bool {
    nets(config).is_ok_and(|nets| nets.values().all(NetLine::is_unplugged))
}

const fn at_boot(onboot: Switch) -> AtBoot {
    match onboot {
        Switch::On => AtBoot::Starts,
        Switch::Off => AtBoot::Stays,
    }
}

fn nets(config: &GuestConfig) -> Result<BTreeMap<u8, NetLine>, String> {
    let read = |(number, text): (&u16, &String)| {
        let slot = u8::try_from(*number).map_err(|_| format!("it has a net{number}"))?;
        Ok((slot, text.parse::<NetLine>().map_err(|error| error.to_string())?))
    };
    config.nets.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config() -> GuestConfig {
        let seen = json!({
            "digest": "0efe9d8b6dd8ab19dfd1c70300537ee86bad8bf0", "hostname": "web-1", "tags": "a;b", "onboot": 1,
            "description": "one\ntwo\n", "net0": "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:01,type=veth"
        });
        GuestConfig::read(&seen).unwrap()
    }

    #[test]
    fn an_identity_that_was_read_needs_no_change() {
        let config = config();
        assert_eq!(changes(&config, &of(&config).unwrap()), Ok(Vec::new()));
    }

    #[test]
    fn each_part_is_set_for_itself_and_a_network_by_hand_stops_it() {
        let config = config();
        let identity = of(&config).unwrap();
        let unplugged = identity.nets.iter().map(|(number, net)| (*number, net.unplugged())).collect();
        let wanted = GuestIdentity {
            hostname: "web-1-former".parse().unwrap(),
            at_boot: AtBoot::Stays,
            nets: unplugged,
            ..identity.clone()
        };
        let net = wanted.nets[&0].clone();
        let all = vec![
            ConfigChange::Hostname("web-1-former".parse().unwrap()),
            ConfigChange::AtBoot(Switch::Off),
            ConfigChange::Net(NetSlot(0), net.clone()),
        ];
        assert_eq!(changes(&config, &wanted), Ok(all));
        let mut more = wanted;
        more.nets.insert(1, net);
        assert!(changes(&config, &more).is_err());
        assert!(
            changes(&config, &GuestIdentity { tags: ["Not one".to_owned()].into(), ..identity }).is_err()
        );
    }
}
