//! Configuration lines inside an archive.
//!
//! What comes in: the text. What goes out: keys with values, each with the number of its line, and the description; or
//! the first line that is not written so. Two readers of one text must not see two things: Proxmox skips what it cannot
//! read, ends a section only at a whole `[name]`, and takes the last of two lines. So nothing is skipped here, no
//! section is taken (a backup holds none), and no key occurs twice. Deliberately absent: what a line means, and the
//! values of the environment, which may hold an old bootstrap token and which every restore replaces.

use percent_encoding::percent_decode_str;

use super::ArchiveRefused;

/// Longer than any guest's configuration.
pub const BYTES_MAX: usize = 64 * 1024;

/// One line of a refusal is repeated up to here.
const SHOWN_CHARS_MAX: usize = 120;

const ENVIRONMENT: &str = "lxc.environment.runtime: ";

/// One `key: value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Counted from 1.
    pub number: usize,
    pub key: String,
    /// What of it.
    pub value: String,
}

impl Line {
    pub(in crate::gate) fn refuse(&self, why: &'static str) -> ArchiveRefused {
        refuse(self.number, &format!("{}: {}", self.key, self.value), why)
    }
}

/// A whole configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    lines: Vec<Line>,
    description: String,
}

impl Lines {
    /// Reads the text that `extractconfig` gives.
    ///
    /// # Errors
    /// [`ArchiveRefused`], at the first line that Proxmox does not write so.
    pub fn read(text: &str) -> Result<Self, ArchiveRefused> {
        if text.len() > BYTES_MAX {
            return Err(ArchiveRefused::Size(text.len()));
        }
        let mut read = Self::default();
        for (number, line) in (1..).zip(text.split('\n')) {
            read.line(number, line).map_err(|why| refuse(number, line, why))?;
        }
        Ok(read)
    }

    fn line(&mut self, number: usize, line: &str) -> Result<(), &'static str> {
        if line.is_empty() {
            return Ok(());
        }
        if !line.bytes().all(|b| matches!(b, 0x20..=0x7e)) {
            return Err("it holds a character that Proxmox never writes there");
        }
        if let Some(comment) = line.strip_prefix('#') {
            self.description.push_str(&percent_decode_str(comment).decode_utf8_lossy());
            self.description.push('\n');
            return Ok(());
        }
        if line.trim_start().starts_with('[') {
            return Err("a backup holds one guest at rest, without snapshots and waiting changes");
        }
        if line.strip_prefix(ENVIRONMENT).is_some_and(is_variable) {
            return Ok(());
        }
        if line.trim_start().to_ascii_lowercase().starts_with("lxc.") {
            return Err("raw lxc lines can undo every other rule");
        }
        let (key, value) = line
            .split_once(": ")
            .filter(|(key, value)| is_key(key) && !value.is_empty() && value.trim() == *value)
            .ok_or("it is not written as Proxmox writes it, `key: value`")?;
        if self.get(key).is_some() {
            return Err("its key stands on an earlier line already");
        }
        self.lines.push(Line { number, key: key.to_owned(), value: value.to_owned() });
        Ok(())
    }

    /// The line of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.key == key)
    }

    /// Every line with a key, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter()
    }

    /// The guest's description.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }
}

fn refuse(number: usize, line: &str, why: &'static str) -> ArchiveRefused {
    ArchiveRefused::Line { number, line: line.chars().take(SHOWN_CHARS_MAX).collect(), why }
}

/// `^[a-z][a-z_]*[0-9]*$`
fn is_key(key: &str) -> bool {
    let stem = key.trim_end_matches(|c: char| c.is_ascii_digit());
    stem.starts_with(|c: char| c.is_ascii_lowercase())
        && stem.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
}

/// `NAME=value`
fn is_variable(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}
