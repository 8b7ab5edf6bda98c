//! Fuzzed desired documents and generations.

use std::collections::BTreeSet;
use std::fmt::Debug;

use holdfast_protocol::desired::{DOCUMENT_BYTES_MAX, Desired, DesiredDocument, VOLUMES_MAX};
use holdfast_protocol::generation::{ContentHash, Generation, JUMP_MAX, Numbered, Offer, judge};

use crate::round::{self, Unique};

/// One input.
///
/// # Panics
/// When a rule does not hold.
pub fn target(data: &[u8]) {
    generations(data);
    let desired = match Desired::parse(data) {
        Ok(desired) => desired,
        Err(error) => return assert!(!error.code().as_str().is_empty() && !error.to_string().is_empty()),
    };
    assert!(serde_json::from_slice::<Unique>(data).is_ok(), "a key stands twice");
    round::document::<DesiredDocument>(data, DOCUMENT_BYTES_MAX).expect("it was read before");
    unique("uid", desired.guests().iter().map(|guest| guest.uid));
    unique("name", desired.guests().iter().map(|guest| guest.name.to_string().to_lowercase()));
    unique("vmid", desired.guests().iter().filter_map(|guest| guest.vmid));
    unique("address", desired.guests().iter().map(|guest| guest.network.address.address()));
    for guest in desired.guests() {
        assert!(guest.volumes.len() <= VOLUMES_MAX);
        unique("volume", guest.volumes.iter().map(|volume| volume.name.as_str()));
        unique("mount", guest.volumes.iter().map(|volume| volume.mount.as_str()));
        for volume in &guest.volumes {
            let mount = volume.mount.as_str();
            assert!(mount.starts_with('/') && mount.split('/').all(|part| part != ".."), "{mount}");
        }
        if let Some(gateway) = guest.network.gateway {
            let bits = u32::from(guest.network.address.prefix());
            let net = |address: std::net::Ipv4Addr| u64::from(address.to_bits()) >> (32 - bits);
            assert_eq!(net(gateway), net(guest.network.address.address()), "the way out is elsewhere");
        }
    }
    let pretty = serde_json::to_vec_pretty(desired.document()).expect("it can be written");
    if pretty.len() <= DOCUMENT_BYTES_MAX {
        assert_eq!(Desired::parse(&pretty).expect("spaces do not matter").numbered(), desired.numbered());
    }
}

fn unique<T: Ord + Debug>(what: &str, all: impl Iterator<Item = T>) {
    let mut seen = BTreeSet::new();
    for one in all {
        assert!(!seen.contains(&one), "{what} {one:?} twice");
        seen.insert(one);
    }
}

fn generations(data: &[u8]) {
    let Some((head, rest)) = data.split_first_chunk::<17>() else { return };
    let number = |bytes: &[u8]| bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let (held, offered) = (number(&head[..8]), number(&head[8..16]));
    let content = |what: &[u8]| ContentHash::of(what);
    let other = head[16] % 2 == 1;
    let of = |generation, what: &[u8]| Numbered {
        generation: Generation::new(generation),
        content: content(what),
    };
    let held_is = of(held, rest);
    let offered_is = of(offered, if other { b"other" } else { rest });
    let same = held_is.content == offered_is.content;
    let verdict = judge(Some(held_is), offered_is);
    let near = offered != 0 && offered >= held && offered - held <= JUMP_MAX;
    let expected = match (near, offered == held, same) {
        (true, true, true) => Some(Offer::Held),
        (true, false, _) => Some(Offer::Newer),
        _ => None,
    };
    assert_eq!(verdict.ok(), expected, "held {held}, offered {offered}, same {same}");
    assert_eq!(judge(None, offered_is).is_ok(), (1..=JUMP_MAX).contains(&offered));
}
