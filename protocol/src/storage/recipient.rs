//! The public key to which secrets for a host are sealed.
//!
//! Here only the form is known. Deliberately absent: the key itself, and the check of the text's own checksum, which
//! the sealing program makes.

use crate::text::texts;

texts! {
    /// An `age` recipient: `age1` and 58 characters of its alphabet.
    HostRecipient, 62..=62, "a host's sealing key is an age recipient: `age1` and 58 characters in lower case", is_recipient;
}

fn is_recipient(text: &str) -> bool {
    text.strip_prefix("age1").is_some_and(|rest| {
        rest.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
            && !rest.contains(['1', 'b', 'i', 'o'])
    })
}

impl std::fmt::Display for HostRecipient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for HostRecipient {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::try_from(text.to_owned())
    }
}
