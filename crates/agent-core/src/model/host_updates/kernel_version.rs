//! Versions of kernels, as the names of their files have them.
//!
//! In: versions such as `6.8.12-4-pve` and `6.12.41+deb13-amd64`. Out: the newest of the flavour that runs, which is the text
//! after the last dash. Numbers are compared as numbers. Deliberately absent: which of them the boot loader starts.

use std::cmp::Ordering;

use holdfast_protocol::report::PackageText;

/// The newest that is installed of the flavour of `running`.
pub(super) fn newest<'a>(running: &str, installed: &'a [PackageText]) -> Option<&'a PackageText> {
    let same = installed.iter().filter(|kernel| flavour(kernel.as_str()) == flavour(running));
    same.max_by(|one, other| compare(one.as_str(), other.as_str()))
}

pub(super) fn is_newer(one: &str, other: &str) -> bool {
    compare(one, other) == Ordering::Greater
}

fn flavour(version: &str) -> Option<&str> {
    version.rsplit_once('-').map(|(_, flavour)| flavour)
}

fn compare(one: &str, other: &str) -> Ordering {
    let (mut left, mut right) = (numbers(one), numbers(other));
    loop {
        match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (left, right) if left == right => {}
            (left, right) => return left.cmp(&right),
        }
    }
}

/// The numbers in a version, each without leading zeros, so that a longer one is larger.
fn numbers(version: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbers = version.split(|letter: char| !letter.is_ascii_digit()).filter(|digits| !digits.is_empty());
    numbers.map(|digits| digits.trim_start_matches('0')).map(|digits| (digits.len(), digits))
}
