//! Whether a revoked host comes back as who it was.
//!
//! In: the host as it is kept, the name the operator wrote, and whether a host that is not revoked has that name. Out: the
//! number of its next certificate, or why not. Deliberately absent: whose box asks. No key of before is taken again, since a
//! host may have been revoked because its key was stolen, so only the operator's look at the box says that.

use holdfast_protocol::id::{HostId, HostName};

use super::identity::HostStanding;

/// A host as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Former {
    /// What it is called.
    pub name: HostName,
    /// How it stands.
    pub standing: HostStanding,
    /// The newest certificate issued.
    pub issued: u32,
}

/// Whether a host that is not revoked has the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameUse {
    /// None has.
    Free,
    /// One has.
    Taken,
}

/// Why a host does not come back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadmitError {
    /// There is none.
    #[error(
        "there is no host {0}: `holdfast host knocks` shows the ids of revoked hosts of the name; nobody was let in"
    )]
    Unknown(HostId),
    /// It is served, or frozen.
    #[error(
        "{name} was not revoked, so nothing comes back: revoke it first if its agent asks anew, or have operators sign \
         `holdfast host restore` if another box takes its place; nobody was let in"
    )]
    NotRevoked {
        /// Its name.
        name: HostName,
    },
    /// The operator wrote another name.
    #[error("that host is called {name}: approve the knock with that name; nobody was let in")]
    OtherName {
        /// Its name.
        name: HostName,
    },
    /// The name went to another.
    #[error(
        "another host is called {name} now: a host comes back under its own name alone; nobody was let in"
    )]
    Taken {
        /// The name.
        name: HostName,
    },
    /// There is no number left.
    #[error("this host has had every certificate there is: approve the box as a new host, without --returns")]
    Exhausted,
}

/// The number of the certificate with which the host comes back.
///
/// # Errors
/// [`ReadmitError`].
pub fn judge(former: &Former, written: &HostName, name_use: NameUse) -> Result<u32, ReadmitError> {
    let name = || former.name.clone();
    match (former.standing, name_use) {
        (HostStanding::Active | HostStanding::Frozen, _) => Err(ReadmitError::NotRevoked { name: name() }),
        (HostStanding::Revoked, _) if former.name != *written => {
            Err(ReadmitError::OtherName { name: name() })
        }
        (HostStanding::Revoked, NameUse::Taken) => Err(ReadmitError::Taken { name: name() }),
        (HostStanding::Revoked, NameUse::Free) => former.issued.checked_add(1).ok_or(ReadmitError::Exhausted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_against_each_approval() {
        let (own, other): (HostName, HostName) = ("box7".parse().unwrap(), "box8".parse().unwrap());
        let former = |standing, issued| Former { name: own.clone(), standing, issued };
        let name = own.clone();
        let revoked = former(HostStanding::Revoked, 4);
        assert_eq!(judge(&revoked, &own, NameUse::Free), Ok(5));
        assert_eq!(judge(&revoked, &own, NameUse::Taken), Err(ReadmitError::Taken { name: name.clone() }));
        for name_use in [NameUse::Free, NameUse::Taken] {
            let refused = Err(ReadmitError::OtherName { name: name.clone() });
            assert_eq!(judge(&revoked, &other, name_use), refused);
            for standing in [HostStanding::Active, HostStanding::Frozen] {
                let refused = Err(ReadmitError::NotRevoked { name: name.clone() });
                assert_eq!(judge(&former(standing, 4), &own, name_use), refused);
            }
        }
        let last = former(HostStanding::Revoked, u32::MAX);
        assert_eq!(judge(&last, &own, NameUse::Free), Err(ReadmitError::Exhausted));
    }
}
