//! The first steps of a hub that has no guest yet.

use holdfast_protocol::operator::HostView;
use holdfast_protocol::sign_in::SignInState;

/// How far a new hub is.
pub struct FirstStart {
    pub has_password: bool,
    pub has_authenticator: bool,
    /// The first host that was enrolled.
    pub host: Option<String>,
    /// Whether that host was heard of.
    pub is_heard: bool,
    /// Hosts that ask to be let in.
    pub requests: usize,
}

impl FirstStart {
    /// The steps, or none where they are done: some host has a document with something in it.
    #[must_use]
    pub fn of(state: &SignInState, hosts: &[HostView], requests: usize) -> Option<Self> {
        let host = hosts.first();
        (!Self::is_done(hosts)).then(|| Self {
            has_password: state.password_set_at.is_some(),
            has_authenticator: state.totp_since.is_some(),
            host: host.map(|host| host.name.to_string()),
            is_heard: host.is_some_and(|host| host.seen_at.is_some()),
            requests,
        })
    }

    /// Whether some host has guests, or a document that would make some.
    #[must_use]
    pub fn is_done(hosts: &[HostView]) -> bool {
        hosts.iter().any(|host| host.guests > 0 || host.wanted.number() > 0)
    }

    pub(crate) fn has_account(&self) -> bool {
        self.has_password && self.has_authenticator
    }
}
