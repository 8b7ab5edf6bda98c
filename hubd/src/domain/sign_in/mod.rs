//! Rules of sign-in: passwords, one-time codes, lives of sessions.
//!
//! In: what a person sent, what is stored, the time. Out: yes, no, and what is to be stored. Deliberately absent: rates,
//! threads and keys.
//!
//! | module | decides |
//! | --- | --- |
//! | [`password`] | whether a new password is accepted |
//! | [`password_hash`] | whether a password is the stored one, and what is stored of it |
//! | [`recovery_code`] | the form of recovery codes |
//! | [`totp`] | which step a code belongs to |

pub mod password;
pub mod password_hash;
pub mod recovery_code;
pub mod totp;

use holdfast_protocol::operator::Role;
use holdfast_protocol::sign_in::SessionKind;
use jiff::{SignedDuration, Timestamp};

/// How long a sign-in link is valid.
pub const LINK_LIFE: SignedDuration = SignedDuration::from_mins(15);

/// A session by a link is for setting up, which takes minutes.
pub const SETUP_LIFE: SignedDuration = SignedDuration::from_mins(30);

/// The use of a session is written down at most this often.
pub const USE_WRITTEN_EVERY: SignedDuration = SignedDuration::from_mins(1);

/// Whether admins need an authenticator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecondFactorRule {
    /// Without one, an admin may only set one up.
    Admins,
    /// Who has set one up needs it; others do not.
    Optional,
}

/// The settings of sign-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignInRules {
    /// How long a session lives without use.
    pub idle: SignedDuration,
    /// How long a session lives in any case.
    pub absolute: SignedDuration,
    pub second_factor: SecondFactorRule,
}

impl Default for SignInRules {
    fn default() -> Self {
        Self {
            idle: SignedDuration::from_mins(30),
            absolute: SignedDuration::from_hours(12),
            second_factor: SecondFactorRule::Admins,
        }
    }
}

/// When a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionEnds {
    /// Unless it is used.
    pub idle: Timestamp,
    /// In any case.
    pub absolute: Timestamp,
}

impl SignInRules {
    /// The ends of a session that begins now.
    #[must_use]
    pub fn ends(&self, kind: SessionKind, now: Timestamp) -> SessionEnds {
        let life = match kind {
            SessionKind::Full => self.absolute,
            SessionKind::Setup => SETUP_LIFE.min(self.absolute),
        };
        let absolute = after(now, life);
        SessionEnds { idle: self.idle_end(now, absolute), absolute }
    }

    /// When a session that is used now ends unless it is used again.
    #[must_use]
    pub fn idle_end(&self, now: Timestamp, absolute: Timestamp) -> Timestamp {
        after(now, self.idle).min(absolute)
    }

    /// What a right password opens for somebody without an authenticator.
    #[must_use]
    pub const fn without_second_factor(&self, role: Role) -> SessionKind {
        match (self.second_factor, role) {
            (SecondFactorRule::Admins, Role::Admin) => SessionKind::Setup,
            (SecondFactorRule::Admins, Role::Customer | Role::Viewer | Role::Operator)
            | (SecondFactorRule::Optional, _) => SessionKind::Full,
        }
    }
}

/// A clock at its very end gives a session that ends at once.
fn after(now: Timestamp, life: SignedDuration) -> Timestamp {
    now.checked_add(life).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_end_is_never_after_the_absolute_one() {
        let (rules, now) = (SignInRules::default(), Timestamp::from_second(1_700_000_000).unwrap());
        let ends = rules.ends(SessionKind::Full, now);
        assert_eq!(ends.idle, now + SignedDuration::from_mins(30));
        assert_eq!(ends.absolute, now + SignedDuration::from_hours(12));
        let late = ends.absolute - SignedDuration::from_mins(1);
        assert_eq!(rules.idle_end(late, ends.absolute), ends.absolute);
        assert_eq!(rules.ends(SessionKind::Setup, now).absolute, now + SETUP_LIFE);
        assert_eq!(rules.ends(SessionKind::Full, Timestamp::MAX).absolute, Timestamp::MAX);
    }

    #[test]
    fn admins_need_an_authenticator_unless_the_settings_say_otherwise() {
        let rules = SignInRules::default();
        assert_eq!(rules.without_second_factor(Role::Admin), SessionKind::Setup);
        assert_eq!(rules.without_second_factor(Role::Operator), SessionKind::Full);
        let rules = SignInRules { second_factor: SecondFactorRule::Optional, ..rules };
        assert_eq!(rules.without_second_factor(Role::Admin), SessionKind::Full);
    }
}
