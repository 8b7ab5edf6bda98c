//! The table of hosts and the CAs of their certificates.

use holdfast_protocol::id::HostName;
use jiff::Timestamp;

use crate::authority::CaSet;
use crate::store::HostCertificate;

/// Which CA a host's certificate is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// Of the CA that stays.
    Stays,
    /// Of the CA that goes.
    Goes,
    /// It is not on record: the hub was restored from an older backup.
    Unknown,
    /// It ended: the host has to ask to be let in again, whichever CA there is.
    Ended,
}

/// A host as a line.
pub(super) struct HostLine {
    host: HostCertificate,
    at: Use,
}

impl HostLine {
    pub(super) fn of(host: HostCertificate, cas: &CaSet, now: Timestamp) -> Self {
        let leaving = cas.change().map(|(leaving, _)| leaving);
        let at = match (&host.pem, leaving) {
            (Some(_), _) if host.ends_at <= now => Use::Ended,
            (None, _) => Use::Unknown,
            (Some(pem), Some(leaving)) if leaving.is_issuer_of(pem) => Use::Goes,
            (Some(_), _) => Use::Stays,
        };
        Self { host, at }
    }

    /// Whether it would be locked out.
    pub(super) fn depends(&self) -> bool {
        matches!(self.at, Use::Goes | Use::Unknown)
    }

    pub(super) fn is(&self, name: &HostName) -> bool {
        self.host.name == *name
    }
}

pub(super) fn names(hosts: &[&HostLine]) -> String {
    hosts.iter().map(|host| host.host.name.as_str()).collect::<Vec<_>>().join(", ")
}

pub(super) fn lines(hosts: &[HostLine]) -> String {
    if hosts.is_empty() {
        return String::new();
    }
    let width = hosts.iter().map(|host| host.host.name.as_str().len()).max().unwrap_or(0).max(4);
    let mut text =
        format!("\n{:width$}  {:11}  {:20}  {}\n", "HOST", "CA", "CERTIFICATE ENDS", "LAST HEARD OF");
    for HostLine { host, at } in hosts {
        let word = match at {
            Use::Stays => "stays",
            Use::Goes => "goes",
            Use::Unknown => "not known",
            Use::Ended => "ended",
        };
        let seen = host.seen_at.map_or_else(|| "never".to_owned(), |seen| format!("{seen:.0}"));
        let (name, ends) = (host.name.as_str(), format!("{:.0}", host.ends_at));
        text.push_str(&format!("{name:width$}  {word:11}  {ends:20}  {seen}\n"));
    }
    text
}
