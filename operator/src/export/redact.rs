//! Texts without what looks like a secret.
//!
//! In: a row as JSON. Out: the same, with each secret in a text replaced. The types of the rows have no place for secrets; this
//! is for what a host or a person wrote into a sentence.

use serde_json::Value;

/// What stands in a secret's place.
pub const REDACTED: &str = "[redacted]";

/// What a secret begins with, and how long it is at least with that.
const BEGINNINGS: &[(&str, usize)] = &[
    // Tokens of operators, and credentials for guests.
    ("hfo_", 24),
    ("hfg_", 24),
    ("AGE-SECRET-KEY-", 24),
    // Sealed credentials and wrapped keys: an age file as base64.
    ("YWdlLWVuY3J5cHRpb24ub3JnL3Yx", 28),
    ("age-encryption.org/v1", 21),
    ("-----BEGIN", 10),
    // A token of Proxmox in a header.
    ("PVEAPIToken=", 12),
    ("PBSAPIToken=", 12),
    ("Bearer ", 16),
    // A token of a tunnel.
    ("eyJ", 40),
];

/// Replaces secrets in all texts of a row, and counts them.
pub fn redact(value: &mut Value) -> u32 {
    match value {
        Value::String(text) => match replaced(text) {
            Some((clean, count)) => {
                *text = clean;
                count
            }
            None => 0,
        },
        Value::Array(list) => list.iter_mut().map(redact).sum(),
        Value::Object(map) => map.values_mut().map(redact).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

const fn is_of_secret(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '+' | '/' | '=' | '.' | '!' | '@' | ':')
}

/// The text without its secrets, and how many there were; none where there was none.
fn replaced(text: &str) -> Option<(String, u32)> {
    let (mut clean, mut rest, mut count) = (String::new(), text, 0);
    while let Some((at, length)) = first(rest) {
        let (before, found) = rest.split_at_checked(at)?;
        clean.push_str(before);
        clean.push_str(REDACTED);
        count += 1;
        rest = found.get(length..)?;
    }
    (count > 0).then(|| {
        clean.push_str(rest);
        (clean, count)
    })
}

/// Where the first secret begins, and how long it is.
fn first(text: &str) -> Option<(usize, usize)> {
    let found = BEGINNINGS.iter().filter_map(|(begin, least)| {
        let mut from = 0;
        while let Some(at) = text.get(from..)?.find(begin).map(|at| at + from) {
            let length = length(text.get(at..)?, begin);
            if length >= *least {
                return Some((at, length));
            }
            from = at + begin.len();
        }
        None
    });
    found.min()
}

/// A key in several lines is a secret to the end of the text.
fn length(text: &str, begin: &str) -> usize {
    if begin.starts_with('-') {
        return text.len();
    }
    let after = text.get(begin.len()..).unwrap_or_default();
    let more = after.find(|letter| !is_of_secret(letter)).unwrap_or(after.len());
    begin.len() + more
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_replaced_wherever_they_are_and_words_are_not() {
        let token = format!("hfo_{}", "Ab3-".repeat(10));
        let sealed = format!("YWdlLWVuY3J5cHRpb24ub3JnL3Yx{}", "QUJD".repeat(8));
        let mut row = json!({ "message": format!("login with {token} and {token}, then go on"),
            "list": [{ "note": format!("creds {sealed}") }], "count": 3, "hfo": "hfo_short eyJ",
            "key": "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\ndef", "header": "Bearer abcdefghijklmnop ok",
            "proxmox": "PVEAPIToken=holdfast@pve!audit=0123-4567 failed" });
        assert_eq!(redact(&mut row), 6);
        assert_eq!(row["message"], "login with [redacted] and [redacted], then go on");
        assert_eq!(row["list"][0]["note"], "creds [redacted]");
        assert_eq!((&row["hfo"], &row["key"]), (&json!("hfo_short eyJ"), &json!("[redacted]")));
        assert_eq!(row["header"], "[redacted] ok");
        assert_eq!(row["proxmox"], "[redacted] failed");
        assert_eq!(redact(&mut row), 0, "what was replaced is no secret");
    }
}
