//! Patterns of `exclude-path`.
//!
//! A pattern that starts with `/` is anchored at the guest's root, any other one may begin at every component. `*` and
//! `?` match slashes too. A directory that is left out takes everything below with it (the walk does not enter it).

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExcludePattern {
    glob: Vec<u8>,
    anchored: bool,
}

/// All patterns of one backup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExcludePatterns {
    patterns: Vec<ExcludePattern>,
}

impl ExcludePattern {
    /// Reads one pattern.
    pub fn new(text: &str) -> Self {
        match text.strip_prefix('/') {
            Some(rest) => Self { glob: rest.as_bytes().to_vec(), anchored: true },
            None => Self { glob: text.as_bytes().to_vec(), anchored: false },
        }
    }

    fn matches(&self, path: &[u8]) -> bool {
        if self.anchored {
            return glob_matches(&self.glob, path);
        }
        let mut rest = path;
        loop {
            if glob_matches(&self.glob, rest) {
                return true;
            }
            let Some(slash) = rest.iter().position(|&byte| byte == b'/') else { return false };
            rest = rest.get(slash + 1..).unwrap_or_default();
        }
    }
}

impl ExcludePatterns {
    /// The patterns of `stdexcludes`: temporary files and the records of running programs.
    pub fn standard() -> Self {
        Self { patterns: ["/tmp/?*", "/var/tmp/?*", "/var/run/?*.pid"].map(ExcludePattern::new).to_vec() }
    }

    /// Adds one pattern.
    pub fn add(&mut self, pattern: ExcludePattern) {
        self.patterns.push(pattern);
    }

    /// Whether a path, relative to the guest's root, is left out.
    pub fn excludes(&self, path: &Path) -> bool {
        self.patterns.iter().any(|pattern| pattern.matches(path.as_os_str().as_bytes()))
    }
}

/// Matches a whole text. On a mismatch only the last `*` is tried again, so the time is bounded by the product of the
/// lengths, whatever the pattern.
fn glob_matches(glob: &[u8], text: &[u8]) -> bool {
    let (mut at, mut position) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while let Some(&byte) = text.get(position) {
        if glob.get(at) == Some(&b'*') {
            retry = Some((at + 1, position));
            at += 1;
            continue;
        }
        if let Some(next) = match_one(glob, at, byte) {
            at = next;
            position += 1;
            continue;
        }
        let Some((after_star, from)) = retry else { return false };
        retry = Some((after_star, from + 1));
        at = after_star;
        position = from + 1;
    }
    glob.get(at..).unwrap_or_default().iter().all(|&byte| byte == b'*')
}

/// Matches one byte against the element at `at`; the position after that element, if it fits.
fn match_one(glob: &[u8], at: usize, byte: u8) -> Option<usize> {
    match *glob.get(at)? {
        b'?' => Some(at + 1),
        b'[' => match_class(glob, at, byte),
        b'\\' => (glob.get(at + 1) == Some(&byte)).then_some(at + 2),
        literal => (literal == byte).then_some(at + 1),
    }
}

fn match_class(glob: &[u8], at: usize, byte: u8) -> Option<usize> {
    let body_start = at + 1;
    let negated = matches!(glob.get(body_start), Some(b'!' | b'^'));
    let first = if negated { body_start + 1 } else { body_start };
    // A `]` in the first position is a member, not the end.
    let length = glob.get(first + 1..)?.iter().position(|&end| end == b']')? + 1;
    let members = glob.get(first..first + length)?;
    let mut found = false;
    let mut rest = members;
    while let Some((&low, tail)) = rest.split_first() {
        match tail {
            [b'-', high, after @ ..] => {
                found |= (low..=*high).contains(&byte);
                rest = after;
            }
            _ => {
                found |= low == byte;
                rest = tail;
            }
        }
    }
    (found != negated).then_some(first + length + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_tar_matches_them() {
        let table = [
            ("/tmp/?*", "tmp/x", true),
            ("/tmp/?*", "tmp/x/y", true),
            ("/tmp/?*", "tmp", false),
            ("/tmp/?*", "srv/tmp/x", false),
            ("/var/run/?*.pid", "var/run/a.pid", true),
            ("/var/run/?*.pid", "var/run/.pid", false),
            ("*.log", "var/log/a.log", true),
            ("*.log", "var/log/a.log.1", false),
            ("cache", "home/u/cache", true),
            ("cache", "home/u/cached", false),
            ("/a*b*c", "axxbxxbc", true),
            ("/a*b*c", "axxbxxbd", false),
            ("/[a-c]x", "bx", true),
            ("/[!a-c]x", "bx", false),
            ("/[]]x", "]x", true),
            ("/\\*x", "*x", true),
            ("/\\*x", "ax", false),
            ("/[a", "[a", false),
        ];
        for (pattern, path, expected) in table {
            let matched = ExcludePattern::new(pattern).matches(path.as_bytes());
            assert_eq!(matched, expected, "{pattern} against {path}");
        }
    }
}
