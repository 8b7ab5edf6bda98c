//! Fuzzed ids, names, pins, addresses and times.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use holdfast_protocol::filter::{FILTER_BYTES_MAX, GuestFilter, HostFilter};
use holdfast_protocol::generation::ContentHash;
use holdfast_protocol::id::*;
use holdfast_protocol::job::act::{ArchiveText, Sha256Text};
use holdfast_protocol::job::{Nonce, Reason, UtcSecond};
use holdfast_protocol::net::Ipv4Cidr;
use holdfast_protocol::pin::Pin;

/// One input.
///
/// # Panics
/// When a rule does not hold.
pub fn target(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    one::<BridgeName>(text, 15);
    one::<CustomerId>(text, 63);
    one::<GoldenVersion>(text, 16);
    one::<GuestName>(text, 63);
    one::<GuestUid>(text, 36);
    one::<HostId>(text, 36);
    one::<HostName>(text, 63);
    one::<IdempotencyKey>(text, 128);
    one::<JobId>(text, 36);
    one::<MountPath>(text, 255);
    one::<NodeName>(text, 63);
    one::<OperatorName>(text, 63);
    one::<PoolName>(text, 63);
    one::<SnapshotName>(text, 40);
    one::<StorageName>(text, 63);
    one::<Vmid>(text, 9);
    one::<VolumeName>(text, 32);
    one::<Ipv4Cidr>(text, 18);
    one::<Pin>(text, 76);
    one::<ContentHash>(text, 64);
    written_again::<GuestFilter>(text);
    written_again::<HostFilter>(text);
    if let Ok(at) = UtcSecond::try_from(text.to_owned()) {
        assert_eq!(at.to_string(), text);
        assert_eq!(UtcSecond::new(at.at()), Ok(at));
    }
    if let Ok(nonce) = Nonce::try_from(text.to_owned()) {
        assert!(nonce.as_str() == text && (32..=128).contains(&text.len()) && text.len() % 2 == 0);
        assert!(
            text.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase())
                && text.trim_matches('0') != ""
        );
    }
    if let Ok(reason) = Reason::try_from(text.to_owned()) {
        assert!(reason.as_str() == text && text.lines().count() == 1 && text.trim() == text);
    }
    if let Ok(sha) = Sha256Text::try_from(text.to_owned()) {
        assert!(sha.as_str() == text && text.len() == 64);
    }
    if let Ok(archive) = ArchiveText::try_from(text.to_owned()) {
        assert!(
            archive.as_str() == text
                && text.contains(":backup/")
                && !text.contains("..")
                && !text.contains(' ')
        );
    }
}

/// An accepted text is written the same, is short, and cannot be taken for anything else in its place.
fn one<T: FromStr + Display + PartialEq + Debug>(text: &str, max: usize)
where
    T::Err: Display,
{
    match text.parse::<T>() {
        Ok(value) => {
            assert_eq!(value.to_string(), text, "a second spelling of {value:?}");
            assert!(text.len() <= max, "{value:?} is long");
            assert!(!text.contains([',', '=', '\n', ' ', '\0', '\'', '"', '\\', '$', ';']), "{value:?}");
            assert!(text.split('/').all(|part| part != ".."), "{value:?}");
        }
        Err(error) => assert!(error.to_string().len() < 2_000),
    }
}

/// A filter has more than one way to be written; what is read of its own text is the same filter.
fn written_again<T: FromStr + Display + Debug + PartialEq>(text: &str)
where
    T::Err: Debug,
{
    let Ok(read) = text.parse::<T>() else { return };
    assert!(text.len() <= FILTER_BYTES_MAX);
    assert_eq!(read.to_string().parse::<T>().unwrap(), read, "{text:?}");
}
