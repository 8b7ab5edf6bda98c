//! The decision to readmit a revoked host.
//!
//! In: the host's record, the name that the operator wrote, and whether a host that is not revoked has that name. Out: the
//! generation of its next certificate, or a refusal. Deliberately absent: proof of the machine. A host may have been revoked
//! because its key was stolen, so no earlier key counts; the operator compares the new fingerprint on the machine.

use holdfast_protocol::id::{HostId, HostName};

use super::identity::HostStatus;

/// The record of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevokedRecord {
    /// What it is called.
    pub name: HostName,
    /// Its status.
    pub status: HostStatus,
    /// The newest certificate issued.
    pub issued: u32,
}

/// Whether a host that is not revoked has the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameUse {
    Free,
    Taken,
}

/// Why a host is not readmitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadmitError {
    /// There is none.
    #[error(
        "there is no host {0}: `holdfast host requests` shows the ids of revoked hosts; nothing was approved"
    )]
    Unknown(HostId),
    /// It is served, or frozen.
    #[error(
        "{name} is not revoked, so it is not readmitted: revoke it first if its agent has to enroll anew, or sign `holdfast host \
         restore` if another machine replaces it; nothing was approved"
    )]
    NotRevoked { name: HostName },
    /// The operator wrote another name.
    #[error("that host is called {name}: approve the request with that name; nothing was approved")]
    OtherName { name: HostName },
    /// The name went to another.
    #[error(
        "another host is called {name} now, and a host is readmitted under its own name only; nothing was approved"
    )]
    Taken { name: HostName },
    /// There is no number left.
    #[error("this host has no certificate generation left: approve it as a new host, without --returns")]
    Exhausted,
}

/// The generation of the certificate for the readmitted host.
///
/// # Errors
/// [`ReadmitError`].
pub fn judge(record: &RevokedRecord, written: &HostName, name_use: NameUse) -> Result<u32, ReadmitError> {
    let name = || record.name.clone();
    match (record.status, name_use) {
        (HostStatus::Active | HostStatus::Frozen, _) => Err(ReadmitError::NotRevoked { name: name() }),
        (HostStatus::Revoked, _) if record.name != *written => Err(ReadmitError::OtherName { name: name() }),
        (HostStatus::Revoked, NameUse::Taken) => Err(ReadmitError::Taken { name: name() }),
        (HostStatus::Revoked, NameUse::Free) => record.issued.checked_add(1).ok_or(ReadmitError::Exhausted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_against_each_approval() {
        let (own, other): (HostName, HostName) = ("box7".parse().unwrap(), "box8".parse().unwrap());
        let record = |status, issued| RevokedRecord { name: own.clone(), status, issued };
        let name = own.clone();
        let revoked = record(HostStatus::Revoked, 4);
        assert_eq!(judge(&revoked, &own, NameUse::Free), Ok(5));
        assert_eq!(judge(&revoked, &own, NameUse::Taken), Err(ReadmitError::Taken { name: name.clone() }));
        for name_use in [NameUse::Free, NameUse::Taken] {
            let refused = Err(ReadmitError::OtherName { name: name.clone() });
            assert_eq!(judge(&revoked, &other, name_use), refused);
            for status in [HostStatus::Active, HostStatus::Frozen] {
                let refused = Err(ReadmitError::NotRevoked { name: name.clone() });
                assert_eq!(judge(&record(status, 4), &own, name_use), refused);
            }
        }
        let last = record(HostStatus::Revoked, u32::MAX);
        assert_eq!(judge(&last, &own, NameUse::Free), Err(ReadmitError::Exhausted));
    }
}
