//! Validated names of targets, file systems, partitions and drives.
//!
//! Each is made in one place from text and keeps exactly what it was made from; nothing is corrected, so two spellings
//! never name one thing.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::reply::{Refusal, refusal};

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident: $fits:ident, $code:ident, $message:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(String);

        impl TryFrom<String> for $name {
            type Error = Refusal;

            fn try_from(text: String) -> Result<Self, Refusal> {
                if $fits(&text) { Ok(Self(text)) } else { Err(refusal!($code, $message)) }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::ops::Deref for $name {
            type Target = String;

            fn deref(&self) -> &String {
                &self.0
            }
        }
    )*};
}

names! {
    /// The name of a target, which is also the name of its folder beneath `/mnt/holdfast`: one component.
    TargetName: is_component, Path,
        "a target's name has 1 to 32 of a-z, 0-9 and inner dashes: it is a folder's name, never a path";
    /// The UUID inside a file system: 36 characters, lower case, not nil.
    FsUuid: is_set_uuid, Range,
        "a file system's UUID is written as `lsblk -o UUID` does for ext4, xfs or btrfs: 36 characters, lower case";
    /// The UUID of a partition: of GPT (36 characters) or of MBR (`1234abcd-01`).
    PartUuid: is_part_uuid, Range, "a partition's UUID is written as `lsblk -o PARTUUID` does";
    /// What a drive says its serial number is.
    Serial: is_serial, Range, "a serial number has 4 to 128 printable characters, without blanks around them";
}

impl FsUuid {
    /// From the sixteen bytes of a superblock.
    pub fn from_bytes(bytes: [u8; 16]) -> Option<Self> {
        Self::try_from(dashed(bytes)).ok()
    }
}

impl PartUuid {
    /// From an entry of a GPT, whose first three fields are little-endian.
    pub fn from_gpt(bytes: [u8; 16]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = bytes;
        Self(dashed([d, c, b, a, f, e, h, g, i, j, k, l, m, n, o, p]))
    }

    /// From an MBR's disk identifier and the number of the partition.
    pub fn from_mbr(disk: u32, number: u32) -> Self {
        Self(format!("{disk:08x}-{number:02x}"))
    }
}

fn is_component(text: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    (1..=32).contains(&text.len()) && text.bytes().all(inner) && text.trim_matches('-') == text
}

fn is_set_uuid(text: &str) -> bool {
    is_hex_with_dashes(text, 36, &[8, 13, 18, 23]) && text.bytes().any(|c| c != b'0' && c != b'-')
}

fn is_part_uuid(text: &str) -> bool {
    is_hex_with_dashes(text, 36, &[8, 13, 18, 23]) || is_hex_with_dashes(text, 11, &[8])
}

fn is_serial(text: &str) -> bool {
    let printable = text.bytes().all(|c| c.is_ascii_graphic() || c == b' ');
    (4..=128).contains(&text.len()) && printable && text.trim() == text
}

fn is_hex_with_dashes(text: &str, length: usize, dashes: &[usize]) -> bool {
    let hex = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
    let fits = |(at, c)| if dashes.contains(&at) { c == b'-' } else { hex(c) };
    text.len() == length && text.bytes().enumerate().all(fits)
}

fn dashed(bytes: [u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        let dash = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
        text.push_str(&format!("{dash}{byte:02x}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<T>(outcome: Result<T, Refusal>) -> &'static str {
        outcome.err().map_or("taken", |refusal| refusal.code.as_str())
    }

    #[test]
    fn target_names_are_one_path_component() {
        for good in ["usb1", "a", "0", "bulk-data-2", &"a".repeat(32)] {
            assert_eq!(code(TargetName::try_from(good.to_owned())), "taken", "{good}");
        }
        let long = "a".repeat(33);
        let huge = "a".repeat(4097);
        for bad in [
            "",
            ".",
            "..",
            "/",
            "//",
            "a/",
            "/a",
            "a/..",
            "../a",
            "a//b",
            "a/.",
            "-rf",
            "--",
            "a-",
            " ",
            "a b",
            "a\tb",
            "a\n",
            "a\0",
            "\\040",
            "a\\040b",
            "A",
            "ä",
            "\u{202e}a",
            "/proc/self/cwd/..",
            "/dev/fd/3",
            "a,b",
            "a=b",
            "$(a)",
            &long,
            &huge,
        ] {
            assert_eq!(code(TargetName::try_from(bad.to_owned())), "E_PATH", "{bad:?}");
        }
    }

    #[test]
    fn uuids_have_one_spelling() {
        let good = "0b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a6b";
        assert_eq!(code(FsUuid::try_from(good.to_owned())), "taken");
        for bad in [
            &good.to_uppercase(),
            "0B5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a6b",
            &format!("{{{good}}}"),
            &good[..35],
            &format!("{good}0"),
            "00000000-0000-0000-0000-000000000000",
            "../x",
            "-",
            &format!("{good}\n"),
            &format!("{}\0", &good[..35]),
            "1234-ABCD",
            &format!("UUID={good}"),
            "0b5f1f3c09d0e04a6b08f5101c2d3e4f5a6b",
            "",
        ] {
            assert_eq!(code(FsUuid::try_from((*bad).to_owned())), "E_RANGE", "{bad:?}");
        }
    }

    #[test]
    fn partition_uuids_and_serials() {
        for good in ["0b5f1f3c-9d0e-4a6b-8f51-1c2d3e4f5a6b", "1234abcd-01"] {
            assert_eq!(code(PartUuid::try_from(good.to_owned())), "taken", "{good}");
        }
        for bad in ["1234abcd-1", "1234ABCD-01", "1234abcd_01", ""] {
            assert_eq!(code(PartUuid::try_from(bad.to_owned())), "E_RANGE", "{bad}");
        }
        for bad in ["", "abc", " abcd", "abcd\n", &"a".repeat(129)] {
            assert_eq!(code(Serial::try_from(bad.to_owned())), "E_RANGE", "{bad:?}");
        }
        let mixed = std::array::from_fn(|at| u8::try_from(at).unwrap());
        assert_eq!(PartUuid::from_gpt(mixed).0, "03020100-0504-0706-0809-0a0b0c0d0e0f");
        assert_eq!(PartUuid::from_mbr(0xabc, 3).0, "00000abc-03");
    }
}
