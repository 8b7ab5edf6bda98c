//! The invariant that a guest and its copy never meet.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Evidence, GONE, Violations};

/// Two guests of ours that would answer under one address.
pub(super) fn no_address_twice(evidence: &Evidence<'_>) -> Violations {
    let mut under: BTreeMap<String, u32> = BTreeMap::new();
    let mut found = Violations::new();
    for (number, text) in &evidence.after.raw {
        for address in plugged(text) {
            if let Some(other) = under.insert(address.clone(), *number) {
                found.push(format!("{other} and {number} are both plugged in under {address}"));
            }
        }
    }
    found
}

/// The fixed addresses of a guest's plugged networks.
pub(crate) fn plugged(text: &str) -> impl Iterator<Item = String> + '_ {
    let own = text.split("\n[").next().unwrap_or_default();
    let nets = own.lines().filter(|line| line.starts_with("net")).filter_map(|line| line.split_once(": "));
    let in_use = nets.map(|(_, net)| net).filter(|net| !net.split(',').any(|part| part == "link_down=1"));
    let address = |net: &str| net.split(',').find_map(|part| part.strip_prefix("ip=")).map(str::to_owned);
    in_use.filter_map(address).filter(|address| !matches!(address.as_str(), "dhcp" | "manual"))
}

/// By all tasks that took effect, in their order: the two of a pair never ran at the same time.
pub(super) fn never_both_at_once(evidence: &Evidence<'_>) -> Violations {
    let Some(pair) = evidence.never_both else { return Violations::new() };
    let mut turns: Vec<(Duration, u32, bool)> = Vec::new();
    for (task, status) in evidence.tasks {
        let took = status == "OK"
            || status.starts_with("WARNINGS")
            || status == "unexpected status"
            || status == GONE;
        let number = task.id.parse().unwrap_or_default();
        match task.kind.as_str() {
            "vzstart" if took => turns.push((task.from, number, true)),
            "vzstop" | "vzshutdown" if took => turns.push((task.to.unwrap_or(task.from), number, false)),
            _ => {}
        }
    }
    turns.sort_by_key(|(at, _, on)| (*at, *on));
    let mut running = pair.map(|number| evidence.before.running.contains(&number));
    let mut found = Violations::new();
    for (at, number, on) in turns {
        for (place, own) in pair.iter().enumerate() {
            if let Some(runs) = running.get_mut(place).filter(|_| *own == number) {
                *runs = on;
            }
        }
        if running == [true, true] {
            found.push(format!("{} and {} both ran at {at:?}", pair[0], pair[1]));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_plugged_in_has_an_address() {
        let text = "hostname: web-1\nnet0: name=eth0,bridge=vmbr0,ip=10.66.0.1/24\nnet1: name=eth1,ip=dhcp\n\
                    net2: name=eth2,ip=10.66.0.2/24,link_down=1\n\n[s1]\nnet0: name=eth0,ip=10.66.0.9/24";
        assert_eq!(plugged(text).collect::<Vec<_>>(), ["10.66.0.1/24"]);
    }
}
