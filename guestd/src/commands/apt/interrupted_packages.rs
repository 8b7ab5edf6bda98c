//! Packages that dpkg left half installed or unconfigured.

use std::path::Path;
use std::time::Duration;

use holdfast_protocol::json::chain;

use crate::paths::Paths;
use crate::program::{Call, run_well};

/// A list of some thousand packages.
const LIMIT: Duration = Duration::from_secs(60);

/// How many packages are named at most.
const NAMED_MAX: usize = 5;

/// The names of the interrupted packages, as text. None when there are none, or when they are unknown: then they are
/// not a reason for any action.
pub async fn done(paths: &Paths) -> Option<String> {
    let books = format!("--admindir={}", paths.inside(Path::new("/var/lib/dpkg")).display());
    let call = Call::new(
        ["dpkg-query", &books, "--show", "--showformat=${db:Status-Status} ${binary:Package}\\n"],
        LIMIT,
    );
    match run_well(&call).await {
        Ok(said) => found(&said.out),
        Err(error) => {
            note_line!("guestd: the state of packages is not known: {}", chain(&error));
            None
        }
    }
}

fn found(list: &str) -> Option<String> {
    let whole = ["installed", "config-files", "not-installed"];
    let lines = list.lines().filter_map(|line| line.split_once(' '));
    let half: Vec<_> = lines.filter(|(state, _)| !whole.contains(state)).collect();
    let named: Vec<_> =
        half.iter().take(NAMED_MAX).map(|(state, package)| format!("{package} ({state})")).collect();
    let more = half.len().saturating_sub(NAMED_MAX);
    match (named.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(named.join(", ")),
        (false, more) => Some(format!("{} and {more} more", named.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_neither_installed_nor_removed_are_interrupted() {
        let well = "installed apt\nconfig-files old\nnot-installed libx:amd64\n";
        assert_eq!(found(well), None);
        assert_eq!(found(""), None);
        let half = format!("{well}half-configured web\nunpacked libweb:amd64\n");
        assert_eq!(found(&half).unwrap(), "web (half-configured), libweb:amd64 (unpacked)");
        let many = "unpacked a\n".repeat(7);
        assert!(found(&many).unwrap().ends_with("a (unpacked) and 2 more"));
    }
}
