//! Delivery by mail: settings, and the mail as bytes.
//!
//! All mails of a group refer to one id, so that a mail program shows them as one thread. The id of a mail comes from
//! the outbox row: a mail that is sent again after a lost answer is known as the same. The connection is in
//! [`crate::send`].

use std::fmt::Write as _;
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use lettre::Address;
use serde::{Deserialize, Serialize};

use crate::field::{CaPem, FieldError, Password};
use crate::id::OutboxId;
use crate::message::Message;
use crate::text::{heading, plain};

/// The most recipients of one channel.
pub const RECIPIENTS_MAX: usize = 20;
/// The most bytes of an encoded word's text. The word has at most 75 characters, of which `=?UTF-8?B?` and `?=` take twelve; base64 makes four of three.
const WORD_BYTES_MAX: usize = 45;
/// The characters of one line of base64.
const BASE64_LINE: usize = 76;

/// How the connection is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Security {
    /// TLS from the first byte, port 465.
    Tls,
    /// TLS by `STARTTLS`, port 587. A server that does not offer it gets nothing.
    Starttls,
    /// None, port 25: only to a server on this machine.
    PlainLoopback,
}

/// An address, ASCII alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MailAddress(Address);

impl MailAddress {
    pub(crate) const fn address(&self) -> &Address {
        &self.0
    }
}

impl TryFrom<String> for MailAddress {
    type Error = FieldError;
    fn try_from(text: String) -> Result<Self, FieldError> {
        const RULE: FieldError = FieldError("a mail address is name@domain, ASCII, at most 254 characters");
        if !text.bytes().all(|c| c.is_ascii_graphic()) || text.len() > 254 {
            return Err(RULE);
        }
        text.parse().map(Self).map_err(|_| RULE)
    }
}

impl From<MailAddress> for String {
    fn from(address: MailAddress) -> Self {
        address.0.to_string()
    }
}

/// An account at the server.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Login {
    pub user: String,
    pub password: Password,
}

/// The settings of a mail channel as they are written.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmtpSettings {
    /// A name, or an address.
    pub server: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    pub security: Security,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<Login>,
    pub from: MailAddress,
    pub to: Vec<MailAddress>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<CaPem>,
}

/// A mail server and the recipients, checked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "SmtpSettings", into = "SmtpSettings")]
pub struct Smtp(SmtpSettings);

impl TryFrom<SmtpSettings> for Smtp {
    type Error = FieldError;
    fn try_from(settings: SmtpSettings) -> Result<Self, FieldError> {
        let name = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'.');
        let address: Option<IpAddr> = settings.server.parse().ok();
        let is_name = (1..=253).contains(&settings.server.len()) && settings.server.bytes().all(name);
        if address.is_none() && !is_name {
            return Err(FieldError("a mail server is the name or the address of a host, without a port"));
        }
        if !(1..=RECIPIENTS_MAX).contains(&settings.to.len()) {
            return Err(FieldError("a mail channel has 1 to 20 recipients"));
        }
        let this_machine = settings.server == "localhost" || address.is_some_and(|ip| ip.is_loopback());
        if settings.security == Security::PlainLoopback && !this_machine {
            return Err(FieldError("mail without TLS is sent to a server on this machine alone"));
        }
        if settings.login.as_ref().is_some_and(|login| {
            !(1..=254).contains(&login.user.len()) || login.user.chars().any(char::is_control)
        }) {
            return Err(FieldError("a user of a mail server has 1 to 254 bytes and no control characters"));
        }
        Ok(Self(settings))
    }
}

impl From<Smtp> for SmtpSettings {
    fn from(smtp: Smtp) -> Self {
        smtp.0
    }
}

impl std::ops::Deref for Smtp {
    type Target = SmtpSettings;
    fn deref(&self) -> &SmtpSettings {
        &self.0
    }
}

impl Smtp {
    /// The port, by the kind of protection where none is given.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.0.port.unwrap_or(match self.0.security {
            Security::Tls => 465,
            Security::Starttls => 587,
            Security::PlainLoopback => 25,
        })
    }

    /// The mail: header and body, CRLF, ASCII alone.
    #[must_use]
    pub fn mail(&self, message: &Message, id: &OutboxId, now: Timestamp) -> Vec<u8> {
        let domain = self.from.0.domain();
        let thread = format!("<{}.group@{domain}>", message.group);
        let recipients: Vec<String> = self.to.iter().map(|to| format!("<{}>", to.0)).collect();
        let sent = now.strftime("%a, %d %b %Y %H:%M:%S +0000");
        let header = [
            ("Date", sent.to_string()),
            ("From", format!("Holdfast <{}>", self.from.0)),
            ("To", recipients.join(",\r\n ")),
            ("Subject", encoded_words(&heading(message))),
            ("Message-ID", format!("<{id}@{domain}>")),
            ("In-Reply-To", thread.clone()),
            ("References", thread),
            // No answer by a machine, such as a note of absence.
            ("Auto-Submitted", "auto-generated".to_owned()),
            ("MIME-Version", "1.0".to_owned()),
            ("Content-Type", "text/plain; charset=utf-8".to_owned()),
        ];
        let mut mail = String::new();
        for (name, value) in header {
            // Writing to a string cannot fail.
            let _ = write!(mail, "{name}: {value}\r\n");
        }
        let text = format!("{}\n", plain(message, usize::MAX, str::len));
        if text.is_ascii() {
            mail.push_str("Content-Transfer-Encoding: 7bit\r\n\r\n");
            mail.push_str(&text.replace('\n', "\r\n"));
        } else {
            mail.push_str("Content-Transfer-Encoding: base64\r\n\r\n");
            let encoded = STANDARD.encode(text.replace('\n', "\r\n"));
            for line in encoded.as_bytes().chunks(BASE64_LINE) {
                mail.push_str(&String::from_utf8_lossy(line));
                mail.push_str("\r\n");
            }
        }
        mail.into_bytes()
    }
}

/// The text for a header: as it is, or in encoded words of whole characters (RFC 2047).
fn encoded_words(text: &str) -> String {
    if text.is_ascii() && !text.contains("=?") {
        return text.to_owned();
    }
    let mut words: Vec<String> = Vec::new();
    for c in text.chars() {
        match words.last_mut() {
            Some(word) if word.len().saturating_add(c.len_utf8()) <= WORD_BYTES_MAX => word.push(c),
            Some(_) | None => words.push(c.to_string()),
        }
    }
    let encode = |word: String| format!("=?UTF-8?B?{}?=", STANDARD.encode(word));
    words.into_iter().map(encode).collect::<Vec<_>>().join("\r\n ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_ascii_in_words_of_whole_characters() {
        assert_eq!(encoded_words("[critical] web1"), "[critical] web1");
        assert_eq!(encoded_words("=?UTF-8?B?YQ==?="), "=?UTF-8?B?PT9VVEYtOD9CP1lRPT0/PQ==?=");
        let text = "ü日".repeat(40);
        let encoded = encoded_words(&text);
        let mut decoded = String::new();
        for word in encoded.split("\r\n ") {
            assert!(word.is_ascii() && word.len() <= 75, "{word}");
            let inner = word.strip_prefix("=?UTF-8?B?").unwrap().strip_suffix("?=").unwrap();
            decoded.push_str(&String::from_utf8(STANDARD.decode(inner).unwrap()).unwrap());
        }
        assert_eq!(decoded, text);
    }

    #[test]
    fn settings_that_would_send_unprotected_are_refused() {
        let smtp = |server: &str, security: &str, to: usize| {
            let to: Vec<String> = (0..to).map(|n| format!("a{n}@x.example")).collect();
            serde_json::from_value::<Smtp>(serde_json::json!({
                "server": server, "security": security, "from": "holdfast@x.example", "to": to,
            }))
            .map(|smtp| smtp.port())
            .map_err(|error| error.to_string())
        };
        assert_eq!(smtp("mail.example", "tls", 1), Ok(465));
        assert_eq!(smtp("mail.example", "starttls", RECIPIENTS_MAX), Ok(587));
        for server in ["localhost", "127.0.0.1", "::1"] {
            assert_eq!(smtp(server, "plain_loopback", 1), Ok(25));
        }
        for server in ["mail.example", "192.168.0.1", "localhost.example"] {
            assert!(
                smtp(server, "plain_loopback", 1).unwrap_err().contains("on this machine alone"),
                "{server}"
            );
        }
        for (server, to) in
            [("", 1), ("a b", 1), ("a/b", 1), ("a:25", 1), ("mail.example", 0), ("mail.example", 21)]
        {
            smtp(server, "tls", to).unwrap_err();
        }
        smtp("mail.example", "opportunistic", 1).unwrap_err();
    }

    #[test]
    fn addresses_cannot_add_lines_to_a_header() {
        for bad in ["", "a", "a@b@c", "a@x.example\r\nBcc: b@x.example", "ü@x.example", "Name <a@x.example>"]
        {
            MailAddress::try_from(bad.to_owned()).unwrap_err();
        }
        MailAddress::try_from("on-call+a@x.example".to_owned()).unwrap();
    }
}
