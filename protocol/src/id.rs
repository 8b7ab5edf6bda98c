//! Ids and names, each its own type.
//!
//! Names are checked when they are made: what exists can be put into a path, a property string or a log line without
//! escaping. Ids made of UUIDs are made by the callers; this crate has no randomness.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A name or id that is not of its kind's form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{value:?} is not a {kind}: {rule}")]
pub struct IdError {
    kind: &'static str,
    rule: &'static str,
    value: String,
}

macro_rules! uuid_ids {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        #[schemars(with = "Uuid")]
        pub struct $name(#[schemars(with = "Uuid")] Uuid);

        impl $name {
            /// Takes a UUID that the caller made for this purpose.
            #[must_use]
            pub const fn new(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// The UUID inside.
            #[must_use]
            pub const fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                // One spelling each: an id that is compared as text or signed must not be written in two ways.
                let plain = Uuid::from_str(text).ok().filter(|uuid| uuid.hyphenated().to_string() == text);
                plain.map(Self).ok_or_else(|| IdError {
                    kind: stringify!($name),
                    rule: "a UUID in lower case, such as 018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55",
                    value: clip(text),
                })
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.to_string()
            }
        }
    )*};
}

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident { max: $max:expr, rule: $rule:literal, pattern: $pattern:literal, ok: $ok:expr })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                let ok: fn(&str) -> bool = $ok;
                if !text.is_empty() && text.len() <= $max && ok(&text) {
                    Ok(Self(text))
                } else {
                    Err(IdError { kind: stringify!($name), rule: $rule, value: clip(&text) })
                }
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::try_from(text.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "minLength": 1, "maxLength": $max, "pattern": $pattern, "description": $rule })
            }
        }
    )*};
}

uuid_ids! {
    /// Follows one piece of work through hub, agent and audit line.
    CorrelationId
    /// Our identity of a guest. It outlives the guest's VMID.
    GuestUid
    /// One enrolled Proxmox host.
    HostId
    /// One open or used invitation to enrol.
    InviteId
    /// Names a session of a person, which is not its token.
    SessionId
    /// One signed act.
    JobId
    /// One host that requests enrollment without an invite.
    EnrollmentRequestId
    /// One journaled piece of work on a host.
    OperationId
    /// One request and its answer.
    RequestId
    /// One order of the hub to a host that needs no signature.
    WorkOrderId
}

names! {
    /// A bridge of the host, such as `vmbr0`.
    BridgeName { max: 15, rule: "a bridge name of letters, digits, '_' and '-' that starts with a letter", pattern: "^[A-Za-z][A-Za-z0-9_-]*$",
        ok: |t| starts_with_letter(t) && t.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') }
    /// Who a guest belongs to.
    CustomerId { max: 63, rule: "lower-case letters, digits and '-', not at the ends", pattern: "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", ok: dns_label }
    /// The version of a golden image, `YYYY.MM.N`.
    GoldenVersion { max: 16, rule: "a golden version such as 2026.11.1", pattern: "^[0-9]{4}\\.[0-9]{2}\\.[0-9]{1,4}$", ok: golden_version }
    /// The name of a guest, which is also its host name.
    GuestName { max: 63, rule: "lower-case letters, digits and '-', not at the ends", pattern: "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", ok: dns_label }
    /// What operators call a host.
    HostName { max: 63, rule: "lower-case letters, digits and '-', not at the ends", pattern: "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", ok: dns_label }
    /// The key of a mutating request, by which a repeat is known.
    IdempotencyKey { max: 128, rule: "1 to 128 letters, digits, '-', '_', '.' or ':', not '.' or '..'", pattern: "^[A-Za-z0-9_.:-]+$",
        ok: |t| t.chars().all(|c| c.is_ascii_alphanumeric() || "-_.:".contains(c)) && !leads_away(t) }
    /// The fingerprint of a backup key, as Proxmox shows it: 32 bytes in hex with colons.
    KeyFingerprint { max: 95, rule: "32 bytes in lower-case hex with colons between them", pattern: "^[0-9a-f]{2}(:[0-9a-f]{2}){31}$", ok: key_fingerprint }
    /// Where a volume is mounted inside a guest.
    MountPath { max: 255, rule: "an absolute path of letters, digits, '.', '_' and '-', without '.' or '..' parts, not '/'", pattern: "^(/[A-Za-z0-9._-]+)+$", ok: mount_path }
    /// A node of Proxmox.
    NodeName { max: 63, rule: "letters, digits and '-', not at the ends", pattern: "^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$",
        ok: |t| dns_label(&t.to_ascii_lowercase()) }
    /// A human operator, as the hub and the audit name them.
    OperatorName { max: 63, rule: "letters, digits, '.', '_', '@' and '-', not '.' or '..'", pattern: "^[A-Za-z0-9._@-]+$",
        ok: |t| t.chars().all(|c| c.is_ascii_alphanumeric() || "._@-".contains(c)) && !leads_away(t) }
    /// What a backup policy is called in the desired document.
    PolicyName { max: 32, rule: "lower-case letters, digits and '-', not at the ends", pattern: "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", ok: dns_label }
    /// A pool of Proxmox.
    PoolName { max: 63, rule: "letters, digits, '.', '_' and '-', not '.' or '..'", pattern: "^[A-Za-z0-9._-]+$",
        ok: |t| t.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)) && !leads_away(t) }
    /// What a channel for alerts is called in the settings of its hub or agent.
    ReceiverName { max: 32, rule: "lower-case letters, digits and '-', not at the ends", pattern: "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", ok: dns_label }
    /// A snapshot of a guest.
    SnapshotName { max: 40, rule: "2 to 40 letters, digits, '_' and '-' that start with a letter; not current, pending or vzdump", pattern: "^[A-Za-z][A-Za-z0-9_-]+$", ok: snapshot_name }
    /// What a stack of programs is called inside its guest.
    StackName { max: 63, rule: "lower-case letters, digits and '-', not at the ends", pattern: "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", ok: dns_label }
    /// A storage of Proxmox.
    StorageName { max: 63, rule: "letters, digits, '.', '_' and '-' that starts with a letter", pattern: "^[A-Za-z][A-Za-z0-9._-]*$",
        ok: |t| starts_with_letter(t) && t.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)) }
    /// A storage target of the manifest. Its entry in Proxmox and its folder beneath `/mnt/holdfast` have the same
    /// name.
    TargetName { max: 32, rule: "2 to 32 lower-case letters, digits and inner '-' that start with a letter", pattern: "^[a-z][a-z0-9-]*[a-z0-9]$",
        ok: |t| t.len() >= 2 && starts_with_letter(t) && dns_label(t) }
    /// What a tunnel of the host is called in the settings of its agent.
    TunnelName { max: 32, rule: "lower-case letters, digits and '-', not at the ends", pattern: "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", ok: dns_label }
    /// A service of systemd, such as `wg-quick@wg0.service`.
    UnitName { max: 128, rule: "a service's whole name of letters, digits and ':', '_', '.', '@', '-', such as cloudflared.service", pattern: "^[A-Za-z0-9][A-Za-z0-9:_.@-]*[.]service$", ok: unit_name }
    /// What a volume of a guest is called in the desired document.
    VolumeName { max: 32, rule: "lower-case letters, digits and '-', not at the ends", pattern: "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", ok: dns_label }
}

/// The number Proxmox gives a guest: 100 to 999,999,999. It is reused by hand, so alone it proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "u32", into = "u32")]
pub struct Vmid(#[schemars(range(min = 100, max = 999_999_999))] u32);

impl Vmid {
    /// The number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl TryFrom<u32> for Vmid {
    type Error = IdError;
    fn try_from(number: u32) -> Result<Self, IdError> {
        if (100..=999_999_999).contains(&number) {
            Ok(Self(number))
        } else {
            Err(IdError { kind: "Vmid", rule: "a number from 100 to 999999999", value: number.to_string() })
        }
    }
}

impl From<Vmid> for u32 {
    fn from(vmid: Vmid) -> Self {
        vmid.0
    }
}

impl fmt::Display for Vmid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Vmid {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        let number = text.parse::<u32>().ok().filter(|n| n.to_string() == text);
        number.and_then(|n| Self::try_from(n).ok()).ok_or_else(|| IdError {
            kind: "Vmid",
            rule: "a number from 100 to 999999999",
            value: clip(text),
        })
    }
}

/// An error message repeats at most this much of what was refused.
fn clip(text: &str) -> String {
    text.chars().take(64).collect()
}

fn starts_with_letter(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// The two names that mean another place in every path.
fn leads_away(text: &str) -> bool {
    matches!(text, "." | "..")
}

fn dns_label(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    text.chars().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// Nothing that a shell, a path or systemd's escapes would read in another way.
fn unit_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || ":_.@-".contains(c);
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(plain)
        && text.strip_suffix(".service").is_some_and(|stem| !stem.is_empty())
}

fn golden_version(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let digits = |t: &str| !t.is_empty() && t.chars().all(|c| c.is_ascii_digit());
    matches!(parts.as_slice(), [y, m, n] if y.len() == 4 && m.len() == 2 && n.len() <= 4 && digits(y) && digits(m) && digits(n))
}

fn key_fingerprint(text: &str) -> bool {
    let byte = |part: &str| {
        part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    text.split(':').count() == 32 && text.split(':').all(byte)
}

/// Proxmox's rule for names in a configuration, except the names that have a meaning there.
fn snapshot_name(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let reserved = ["current", "pending", "vzdump"].iter().any(|word| text.eq_ignore_ascii_case(word));
    text.len() >= 2 && starts_with_letter(text) && text.chars().all(inner) && !reserved
}

fn mount_path(text: &str) -> bool {
    let part = |p: &str| {
        !p.is_empty()
            && p != "."
            && p != ".."
            && p.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    text.strip_prefix('/').is_some_and(|rest| rest.split('/').all(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_could_splice_a_property_string_is_refused() {
        for bad in
            ["", "a,b", "a=b", "a b", "A", "-a", "a-", "a\n", "../x", "ä", "a;b", "$(x)", &"a".repeat(64)]
        {
            assert!(GuestName::from_str(bad).is_err(), "{bad:?}");
        }
        assert_eq!(GuestName::from_str("web-1").unwrap().as_str(), "web-1");
    }

    #[test]
    fn a_snapshot_is_called_what_proxmox_takes() {
        for bad in
            ["", "a", "1bad", "has space", "current", "vzdump", "Pending", "a/b", "a?b", &"a".repeat(41)]
        {
            assert!(SnapshotName::from_str(bad).is_err(), "{bad:?}");
        }
        for good in ["s1", "before-update_2", &"a".repeat(40)] {
            assert!(SnapshotName::from_str(good).is_ok(), "{good:?}");
        }
    }

    #[test]
    fn a_mount_path_stays_a_path() {
        for bad in ["", "/", "data", "/a/../b", "/a//b", "/a/", "/a,b", "/./a", "/a b"] {
            assert!(MountPath::from_str(bad).is_err(), "{bad:?}");
        }
        assert!(MountPath::from_str("/mnt/bulk.1").is_ok());
    }

    /// Found by fuzzing: both would lead a path elsewhere.
    #[test]
    fn no_name_leads_a_path_elsewhere() {
        for bad in [".", ".."] {
            assert!(PoolName::from_str(bad).is_err() && OperatorName::from_str(bad).is_err(), "{bad:?}");
            assert!(IdempotencyKey::from_str(bad).is_err() && StorageName::from_str(bad).is_err(), "{bad:?}");
        }
        assert!(PoolName::from_str("...").is_ok() && IdempotencyKey::from_str("..a").is_ok());
    }

    #[test]
    fn a_vmid_is_a_plain_number_in_range() {
        for bad in ["99", "1000000000", "0104", "104 ", "-1", "+104", ""] {
            assert!(Vmid::from_str(bad).is_err(), "{bad:?}");
        }
        assert_eq!(Vmid::from_str("104").unwrap().number(), 104);
    }

    #[test]
    fn a_unit_is_a_service_and_no_option_or_path() {
        for good in ["cloudflared.service", "wg-quick@wg0.service", "tailscaled.service"] {
            assert!(UnitName::from_str(good).is_ok(), "{good:?}");
        }
        for bad in [
            "",
            ".service",
            "-x.service",
            "a/b.service",
            "a b.service",
            "sshd",
            "a.timer",
            "a.service ",
            "a*.service",
            "a\\x2d.service",
        ] {
            assert!(UnitName::from_str(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn golden_versions_have_three_parts() {
        assert!(GoldenVersion::from_str("2026.11.1").is_ok());
        for bad in ["2026.11", "2026.1.1", "x.11.1", "2026.11.1.1", "2026.11."] {
            assert!(GoldenVersion::from_str(bad).is_err(), "{bad:?}");
        }
    }
}
