//! The name Proxmox gives a task: `UPID:node:pid:pstart:starttime:type:id:user@realm!token:`.
//!
//! Input: text from Proxmox or from the journal. Output: its parts, of which the agent needs the start time, the kind,
//! the guest and the token that started it. Deliberately absent: any use of pid and pstart.

use std::fmt;
use std::str::FromStr;

use holdfast_protocol::id::Vmid;
use serde::{Deserialize, Serialize};

/// One task's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Upid {
    text: String,
    start_epoch_s: u64,
}

/// Text that is no task name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a task name of Proxmox (UPID:node:pid:pstart:start:type:id:user:)")]
pub struct UpidError {
    text: String,
}

impl Upid {
    /// The whole name, as it is used in a path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The node that runs it.
    #[must_use]
    pub fn node(&self) -> &str {
        self.part(1)
    }

    /// When it started, by the node's clock.
    #[must_use]
    pub fn start_epoch_s(&self) -> u64 {
        self.start_epoch_s
    }

    /// `vzrestore`, `vzstart`, `resize`, …
    #[must_use]
    pub fn kind(&self) -> &str {
        self.part(5)
    }

    /// The guest it works on, when its id names one (`141`, but also `141@backup2` and `210-mp0>213-mp0`).
    #[must_use]
    pub fn vmid(&self) -> Option<Vmid> {
        let digits = self.part(6).split(|c: char| !c.is_ascii_digit()).next()?;
        Vmid::from_str(digits).ok()
    }

    /// What it works on, as Proxmox names it: a guest, or more precisely (`210-mp0>213-mp0`).
    #[must_use]
    pub fn subject(&self) -> &str {
        self.part(6)
    }

    /// All eight parts are there: parsing checked that.
    fn part(&self, number: usize) -> &str {
        self.text.split(':').nth(number).unwrap_or_default()
    }

    /// Who started it: `user@realm`, or `user@realm!token`.
    #[must_use]
    pub fn owner(&self) -> &str {
        self.part(7)
    }
}

impl fmt::Display for Upid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Upid {
    type Err = UpidError;

    fn from_str(text: &str) -> Result<Self, UpidError> {
        parse(text).ok_or_else(|| UpidError { text: text.chars().take(120).collect() })
    }
}

/// Long enough for the longest node, id and user that Proxmox allows.
const LEN_MAX: usize = 512;

fn parse(text: &str) -> Option<Upid> {
    if text.len() > LEN_MAX || text.chars().any(|c| c.is_control() || c == '/') {
        return None;
    }
    let parts: Vec<&str> = text.split(':').collect();
    let ["UPID", node, pid, pstart, start, kind, _id, owner, ""] = parts.as_slice() else { return None };
    let hex = |digits: &str| u64::from_str_radix(digits, 16).ok();
    let named = !node.is_empty() && !kind.is_empty() && owner.contains('@');
    let (_, _, start_epoch_s) = (hex(pid)?, hex(pstart)?, hex(start)?);
    named.then(|| Upid { text: text.to_owned(), start_epoch_s })
}

impl TryFrom<String> for Upid {
    type Error = UpidError;
    fn try_from(text: String) -> Result<Self, UpidError> {
        text.parse()
    }
}

impl From<Upid> for String {
    fn from(upid: Upid) -> Self {
        upid.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_recorded_name() {
        let upid: Upid =
            "UPID:pve1:00000CEA:000654F7:6B0117B2:vzrestore:150:agent@pve!hostagent:".parse().unwrap();
        assert_eq!((upid.kind(), upid.owner(), upid.node()), ("vzrestore", "agent@pve!hostagent", "pve1"));
        assert_eq!(upid.start_epoch_s(), 1_795_233_714);
        assert_eq!(upid.vmid().unwrap().number(), 150);
        assert_eq!(upid.to_string().parse::<Upid>().unwrap(), upid);
    }

    #[test]
    fn ids_that_are_empty_or_name_more_than_a_guest() {
        let of = |id: &str| {
            format!("UPID:pve1:0000D396:000B6B1E:6B0124B7:vzdump:{id}:hf@pve!operate:").parse::<Upid>()
        };
        assert_eq!(of("").unwrap().vmid(), None);
        assert_eq!(of("141@backup2").unwrap().vmid().unwrap().number(), 141);
        assert_eq!(of("210-mp0>213-mp0").unwrap().vmid().unwrap().number(), 210);
        assert_eq!(of("local").unwrap().vmid(), None);
    }

    #[test]
    fn what_could_lead_a_path_elsewhere_is_refused() {
        let good = "UPID:pve1:0000D396:000B6B1E:6B0124B7:vzdump:141:hf@pve!operate:";
        assert!(good.parse::<Upid>().is_ok());
        for bad in [
            "",
            "UPID:",
            "UPID:pve1:0000D396:000B6B1E:6B0124B7:vzdump:141:hf@pve!operate",
            "UPID:pve1:XYZ:000B6B1E:6B0124B7:vzdump:141:hf@pve!operate:",
            "UPID:pve1:0000D396:000B6B1E:6B0124B7:vzdump:141:operate:",
            "UPID:pve1:0000D396:000B6B1E:6B0124B7:vzdump:../..:hf@pve!operate:",
            "UPID:pve1:0000D396:000B6B1E:6B0124B7:vzdump:141:hf@pve!operate:extra:",
            "UPID:pve1:0000D396:000B6B1E:6B0124B7:vzdump:1\n1:hf@pve!operate:",
        ] {
            assert!(bad.parse::<Upid>().is_err(), "{bad:?}");
        }
    }
}
