//! Texts of settings, each its own type.

use std::fmt;

use holdfast_protocol::secret::Secret;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde::{Deserialize, Serialize};

/// Text that does not fit its field. The text is not in it, because it may be a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FieldError(pub(crate) &'static str);

/// Secrets: documentation, name, the sentence of a refusal, and what must hold.
macro_rules! secrets {
    ($($(#[$doc:meta])* $name:ident, $rule:literal, $ok:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Serialize, Deserialize)]
        #[serde(try_from = "Secret", into = "Secret")]
        pub struct $name(Secret);

        impl $name {
            /// The text itself.
            #[must_use]
            pub fn expose(&self) -> &str {
                self.0.expose()
            }
        }

        impl TryFrom<Secret> for $name {
            type Error = FieldError;
            fn try_from(text: Secret) -> Result<Self, FieldError> {
                let ok: fn(&str) -> bool = $ok;
                if ok(text.expose()) { Ok(Self(text)) } else { Err(FieldError($rule)) }
            }
        }

        impl From<$name> for Secret {
            fn from(text: $name) -> Self {
                text.0
            }
        }
    )*};
}

fn visible(text: &str, bytes: std::ops::RangeInclusive<usize>) -> bool {
    bytes.contains(&text.len()) && text.bytes().all(|c| c.is_ascii_graphic())
}

fn bot_token(text: &str) -> bool {
    let Some((bot, key)) = text.split_once(':') else { return false };
    let of_key = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_');
    (1..=20).contains(&bot.len())
        && bot.bytes().all(|c| c.is_ascii_digit())
        && (20..=100).contains(&key.len())
        && key.bytes().all(of_key)
}

secrets! {
    /// A token that travels in a header.
    Token, "a token has 1 to 512 visible ASCII characters without spaces", |text| visible(text, 1..=512);
    /// The key of a webhook's signatures.
    SigningKey, "a signing key has 32 to 512 visible ASCII characters without spaces", |text| visible(text, 32..=512);
    /// The topic of a push server. Where topics are public, its name is the only protection.
    Topic, "a topic has 1 to 64 letters, digits, `-` and `_`",
        |text| visible(text, 1..=64) && text.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_'));
    /// The token of a bot, as its maker shows it.
    BotToken, "a bot's token is a number, a colon, and 20 to 100 letters, digits, `-` and `_`", bot_token;
    /// A password of a mail account.
    Password, "a password has 1 to 512 bytes and no control characters",
        |text| (1..=512).contains(&text.len()) && !text.chars().any(char::is_control);
}

/// A chat: its number, or the name of a public channel with `@`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ChatId(String);

impl ChatId {
    /// The number or name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ChatId {
    type Error = FieldError;
    fn try_from(text: String) -> Result<Self, FieldError> {
        let name = |name: &str| {
            (1..=64).contains(&name.len()) && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
        };
        if text.parse::<i64>().is_ok() || text.strip_prefix('@').is_some_and(name) {
            Ok(Self(text))
        } else {
            Err(FieldError("a chat is a number, or the name of a public channel such as @operations"))
        }
    }
}

impl From<ChatId> for String {
    fn from(chat: ChatId) -> Self {
        chat.0
    }
}

/// A room by its id; an alias may move to another room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RoomId(String);

impl RoomId {
    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for RoomId {
    type Error = FieldError;
    fn try_from(text: String) -> Result<Self, FieldError> {
        if text.starts_with('!') && visible(&text, 2..=255) {
            Ok(Self(text))
        } else {
            Err(FieldError("a room's id begins with `!`; an alias with `#` cannot be used"))
        }
    }
}

impl From<RoomId> for String {
    fn from(room: RoomId) -> Self {
        room.0
    }
}

/// The most bytes of a CA file.
const CA_BYTES_MAX: usize = 64 * 1024;

/// PEM text of the CA that alone is trusted for one server, instead of the system's.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CaPem(String);

impl CaPem {
    /// The certificates in it: at least one.
    #[must_use]
    pub fn certificates(&self) -> Vec<CertificateDer<'static>> {
        CertificateDer::pem_slice_iter(self.0.as_bytes()).filter_map(Result::ok).collect()
    }
}

impl TryFrom<String> for CaPem {
    type Error = FieldError;
    fn try_from(text: String) -> Result<Self, FieldError> {
        if text.len() > CA_BYTES_MAX {
            return Err(FieldError("a CA file has at most 64 KiB"));
        }
        let mut roots = rustls::RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
            let certificate =
                certificate.map_err(|_| FieldError("the CA file is not PEM, or was cut off"))?;
            roots.add(certificate).map_err(|_| FieldError("a certificate of the CA file cannot be used"))?;
        }
        if roots.is_empty() {
            return Err(FieldError("the CA file holds no PEM certificate"));
        }
        Ok(Self(text))
    }
}

impl From<CaPem> for String {
    fn from(ca: CaPem) -> Self {
        ca.0
    }
}

impl fmt::Debug for CaPem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CaPem({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret<T: TryFrom<Secret, Error = FieldError>>(text: &str) -> bool {
        T::try_from(Secret::new(text.to_owned())).is_ok()
    }

    #[test]
    fn fields_take_what_their_servers_give_out() {
        assert!(secret::<Token>("tk_AgQdq7mVBoFD37zQVN29RhuMzNIz2"));
        assert!(secret::<Topic>("holdfast-alerts_1"));
        assert!(secret::<SigningKey>(&"k".repeat(32)));
        assert!(secret::<BotToken>("123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11"));
        assert!(secret::<Password>("correct horse"));
        for good in ["-1001234567890", "42", "@operations"] {
            ChatId::try_from(good.to_owned()).unwrap();
        }
        RoomId::try_from("!abc:matrix.example".to_owned()).unwrap();
    }

    #[test]
    fn fields_refuse_what_could_leave_them() {
        for bad in ["", "a b", "a\r\nX: y", "ä"] {
            assert!(!secret::<Token>(bad) && !secret::<Topic>(bad), "{bad:?}");
        }
        assert!(!secret::<Topic>("a/b") && !secret::<Topic>(&"a".repeat(65)));
        assert!(!secret::<SigningKey>(&"k".repeat(31)));
        for bad in [
            "123456",
            "x:ABC-DEF1234ghIkl-zyx57W2v1u123ew11",
            "1:short",
            "1:ABC-DEF1234ghIkl/zyx57W2v1u123ew11",
        ] {
            assert!(!secret::<BotToken>(bad), "{bad}");
        }
        for bad in ["", "operations", "@", "@a b", "1.5"] {
            ChatId::try_from(bad.to_owned()).unwrap_err();
        }
        for bad in ["#alias:matrix.example", "!", "!a b"] {
            RoomId::try_from(bad.to_owned()).unwrap_err();
        }
        for bad in ["", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            CaPem::try_from(bad.to_owned()).unwrap_err();
        }
    }

    #[test]
    fn secrets_show_nothing() {
        let token = Token::try_from(Secret::new("hunter2hunter2".to_owned())).unwrap();
        assert!(!format!("{token:?}").contains("hunter2"));
        let refused = Token::try_from(Secret::new("hunter2 hunter2".to_owned())).unwrap_err();
        assert!(!format!("{refused:?} {refused}").contains("hunter2"));
    }
}
