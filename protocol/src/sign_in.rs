//! Sign-in by password: one-time codes, sessions, links.
//!
//! In: what a browser or a program sends for a person. Out: a session, whose token travels in a cookie alone. Deliberately
//! absent: tokens of machines, which [`crate::operator`] has.
//!
//! | call | request | answer |
//! | --- | --- | --- |
//! | `POST /v1/login` | [`LoginRequest`] | [`SessionOpened`], sets the cookie |
//! | `POST /v1/sign-in-link` | [`LinkRedemption`] | [`SessionOpened`], sets the cookie |
//! | `POST /v1/logout` | | [`SessionView`], removes the cookie |
//! | `GET /v1/session` | | [`SessionOpened`] |
//! | `GET /v1/sessions` | | [`Page`](crate::operator::Page) of [`SessionView`]; admins see those of everybody |
//! | `DELETE /v1/sessions/{id}` | | [`SessionView`] |
//! | `POST /v1/password` | [`PasswordChange`] | [`SignInState`] |
//! | `POST /v1/totp` | [`TotpRequest`] | [`TotpOffer`] |
//! | `POST /v1/totp/confirm` | [`TotpConfirmation`] | [`RecoveryCodes`] |
//! | `POST /v1/operators/{name}/sign-in-link` | | [`SignInLink`], for admins |

use std::fmt;

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};
use zeroize::Zeroizing;

use crate::id::{OperatorName, SessionId};
use crate::operator::Role;
use crate::secret::Secret;

/// The cookie with the token of a session. Its prefix makes browsers refuse it without `Secure` and `Path=/`.
pub const SESSION_COOKIE: &str = "__Host-holdfast-session";

/// The header that a change by a session carries, with [`SessionOpened::csrf`].
pub const CSRF_HEADER: &str = "x-holdfast-csrf";

/// What the fragment of a sign-in link begins with.
pub const LINK_TOKEN_PREFIX: &str = "hfl_";

/// The longest password, in bytes.
pub const PASSWORD_BYTES_MAX: usize = 256;

macro_rules! hidden_texts {
    ($($(#[$doc:meta])* $name:ident up to $max:expr, $rule:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(Zeroizing<String>);

        impl $name {
            /// The text itself. Every call deserves a check in review.
            #[must_use]
            pub fn expose(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = &'static str;
            fn try_from(text: String) -> Result<Self, &'static str> {
                let text = Zeroizing::new(text);
                if (1..=$max).contains(&text.len()) { Ok(Self(text)) } else { Err($rule) }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($name), "(…)"))
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "minLength": 1, "maxLength": $max, "writeOnly": true, "description": $rule })
            }
        }
    )*};
}

hidden_texts! {
    /// A password, as typed. It is wiped when dropped and shows nothing in `Debug`.
    Password up to PASSWORD_BYTES_MAX, "a password has 1 to 256 bytes";
    /// Six digits of an authenticator, or a recovery code. It is wiped when dropped and shows nothing in `Debug`.
    OneTimeCode up to 64, "a code has six digits; a recovery code has sixteen letters and digits";
}

/// What a session may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionKind {
    /// All that its operator may.
    Full,
    /// Nothing but to set a password and an authenticator.
    Setup,
}

/// Signs a person in.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoginRequest {
    /// The operator.
    pub name: OperatorName,
    /// Their password.
    pub password: Password,
    /// The code of their authenticator, or a recovery code, where they have set one up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<OneTimeCode>,
}

/// Signs a person in by a link, once.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkRedemption {
    /// What the link has after its `#`.
    pub token: Secret,
}

/// A session, without its token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionView {
    /// Names it in `DELETE /v1/sessions/{id}`.
    pub id: SessionId,
    /// Whose it is.
    pub operator: OperatorName,
    /// What it may do.
    pub kind: SessionKind,
    /// When the person signed in.
    pub made_at: Timestamp,
    /// When it was last used, to the minute.
    pub used_at: Timestamp,
    /// When it ends unless it is used.
    pub idle_ends_at: Timestamp,
    /// When it ends in any case.
    pub ends_at: Timestamp,
    /// The address, or the IPv6 network, that the person signed in from.
    pub address: String,
    /// The browser, as it names itself, shortened.
    pub user_agent: String,
}

/// A session that was opened, or that asks for itself.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionOpened {
    /// The session.
    pub session: SessionView,
    /// What its operator may do.
    pub role: Role,
    /// For the header `x-holdfast-csrf` of every change.
    pub csrf: Secret,
}

/// Sets one's own password. All one's other sessions end.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PasswordChange {
    /// The password so far. A session by a link needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<Password>,
    /// The new one: 12 characters or more, 256 bytes at most.
    pub password: Password,
}

/// What a person has set up for signing in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignInState {
    /// When the password was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_set_at: Option<Timestamp>,
    /// When the authenticator was confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub totp_since: Option<Timestamp>,
    /// How many recovery codes are left.
    pub recovery_codes: u32,
}

/// Begins the set-up of an authenticator. One that is in use stays until the new one is confirmed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TotpRequest {
    /// One's password. A session that may only set up needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Password>,
}

/// The secret for an authenticator, shown this once.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TotpOffer {
    /// For a QR code: `otpauth://totp/…`.
    pub uri: Secret,
    /// The same secret to be typed, in Base32.
    pub secret: Secret,
}

/// Proves that the authenticator has the secret.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TotpConfirmation {
    /// The code that it shows now.
    pub code: OneTimeCode,
}

/// Codes for a day without the authenticator, each for one sign-in, shown this once.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecoveryCodes {
    /// All of them. Those before do not work any more.
    pub codes: Vec<Secret>,
}

/// A link by which an operator signs in once, to set a password and an authenticator.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignInLink {
    /// The operator.
    pub name: OperatorName,
    /// The link. What proves it is after the `#`, which browsers send to no server.
    pub url: Secret,
    /// When it ends.
    pub expires_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_shows_nothing_and_has_a_bound() {
        let request: LoginRequest =
            serde_json::from_str(r#"{"name":"ada","password":"correct horse","code":"123456"}"#).unwrap();
        let shown = format!("{request:?}");
        assert!(!shown.contains("horse") && !shown.contains("123456"), "{shown}");
        for bad in [String::new(), "x".repeat(257)] {
            assert!(Password::try_from(bad).is_err());
        }
        assert!(Password::try_from("x".repeat(256)).is_ok());
    }
}
