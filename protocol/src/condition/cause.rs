//! Classes of causes, by which conditions are grouped and inhibited.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! causes {
    ($($(#[$doc:meta])* $name:ident = $text:literal)*) => {
        /// What kind of fault is behind a condition. Conditions of one host and one cause travel in one notice.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Cause {
            $($(#[$doc])* #[serde(rename = $text)] $name,)*
        }

        impl Cause {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// As written in rules and labels.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

causes! {
    /// Clocks.
    Clock = "clock"
    /// A channel for alerts.
    Delivery = "delivery"
    /// Recovery codes and wrapped keys.
    Escrow = "escrow"
    /// A guest itself.
    Guest = "guest"
    /// Disks and other parts of a machine.
    Hardware = "hardware"
    /// A host is not heard.
    HostSilence = "host_silence"
    /// The hub itself.
    Hub = "hub"
    /// Backups and restore tests of guests.
    Protection = "protection"
    /// Proxmox does not answer.
    Proxmox = "proxmox"
    /// The records of an agent.
    Records = "records"
    /// Storages and storage targets.
    Storage = "storage"
    /// Evidence that identities or records were tampered with.
    Tampering = "tampering"
    /// Signatures, certificates, tokens and approvals.
    Trust = "trust"
    /// Tunnels of hosts.
    Tunnel = "tunnel"
    /// Images, versions of the programs, and packages of hosts.
    Update = "update"
    /// CPU time, memory and root disks in use.
    Use = "use"
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which other conditions of the same host a condition makes superfluous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inhibits {
    /// None.
    Nothing,
    /// Those of these causes.
    Causes(&'static [Cause]),
    /// All, except evidence of tampering.
    Host,
}

impl Inhibits {
    /// Whether a condition of this cause is inhibited.
    #[must_use]
    pub fn covers(self, cause: Cause) -> bool {
        match self {
            Self::Nothing => false,
            Self::Causes(causes) => causes.contains(&cause),
            Self::Host => cause != Cause::Tampering,
        }
    }
}
