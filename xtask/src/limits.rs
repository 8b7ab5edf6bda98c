//! The page of all limits (`docs/limits.md`), read from the sources.
//!
//! In: constants of the programs whose names end like a limit's, with the first sentence of their documentation. Out: one
//! table per program, or whether the page on disk is another. Deliberately absent: limits of tests.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use regex::Regex;

pub const PAGE: &str = "docs/limits.md";

/// What is read, by program.
const PROGRAMS: [(&str, &[&str]); 8] = [
    (
        "Agent",
        &[
            "crates/agent-core/src",
            "crates/agent-store/src",
            "crates/pve-client/src",
            "crates/agent-ports/src",
            "crates/agent-admin/src",
            "agentd/src",
        ],
    ),
    ("Hub", &["hubd/src"]),
    ("Guest agent", &["guestd/src"]),
    ("Break-glass", &["break-glass/src"]),
    ("Gate of the agent", &["gate/src", "crates/agent-slots/src"]),
    ("Helper and image builder", &["helper/src", "golden/src"]),
    (
        "Documents, signatures and files",
        &["protocol/src", "trust/src", "seal/src", "recovery/src", "crates/net/src"],
    ),
    ("Deliveries of messages", &["crates/notify/src"]),
];

/// Ends of names, and the unit that each means.
const ENDS: [(&str, &str); 18] = [
    ("BYTES_MAX", "bytes"),
    ("BYTES", "bytes"),
    ("CHARS_MAX", "characters"),
    ("MIB", "MiB"),
    ("PERCENT", "per cent"),
    ("MAX_PERCENT", "per cent"),
    ("MAX_S", "seconds"),
    ("MIN_S", "seconds"),
    ("_MS", "milliseconds"),
    ("_S", "seconds"),
    ("_H", "hours"),
    ("DAYS", "days"),
    ("PER_MINUTE", "a minute"),
    ("PER_DAY", "a day"),
    ("PER_GUEST", "per guest"),
    ("AT_ONCE", "at once"),
    ("_MAX", ""),
    ("_MIN", ""),
];

#[derive(Debug, PartialEq, Eq)]
struct Limit {
    name: String,
    value: String,
    unit: &'static str,
    meaning: String,
}

/// The page as it should be.
///
/// # Errors
/// When a source cannot be read.
pub fn page(root: &Path) -> Result<String> {
    let mut page = "# Limits\n\nEvery bound of the programs, written by `cargo xtask schemas` from the sources. Values are as the \
                    code has them.\n"
        .to_owned();
    for (program, folders) in PROGRAMS {
        let mut all = Vec::new();
        for folder in folders {
            for path in sources(&root.join(folder))? {
                let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
                let file = path.strip_prefix(root).unwrap_or(&path).display().to_string();
                all.extend(limits(&text).into_iter().map(|limit| (limit, file.clone())));
            }
        }
        all.sort_by(|(one, one_file), (other, other_file)| {
            (&one.name, one_file).cmp(&(&other.name, other_file))
        });
        write!(
            page,
            "\n## {program}\n\n| limit | value | unit | meaning | in |\n| --- | --- | --- | --- | --- |\n"
        )?;
        for (Limit { name, value, unit, meaning }, file) in all {
            writeln!(page, "| `{name}` | `{value}` | {unit} | {meaning} | `{file}` |")?;
        }
    }
    Ok(page)
}

/// Rust files of a folder that are no tests, in order.
fn sources(folder: &Path) -> Result<Vec<std::path::PathBuf>> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("tests") {
            continue;
        }
        if path.is_dir() {
            found.extend(sources(&path)?);
        } else if name.ends_with(".rs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The limits of one file, as far as its tests.
fn limits(text: &str) -> Vec<Limit> {
    let shape = r"^(?:pub(?:\([a-z: ]+\))? )?const ([A-Z0-9_]+): [A-Za-z0-9:]+ = ([^;]+);";
    #[expect(clippy::expect_used, reason = "the expression is a constant, and a test uses it")]
    let shape = Regex::new(shape).expect("a regular expression");
    let (mut docs, mut found) = (String::new(), Vec::new());
    for line in text.lines().take_while(|line| *line != "#[cfg(test)]") {
        if let Some(doc) = line.strip_prefix("///") {
            docs.push_str(doc);
            continue;
        }
        if let Some(parts) = shape.captures(line) {
            let (name, value) = (parts[1].to_owned(), parts[2].to_owned());
            let unit = ENDS.iter().find(|(end, _)| name.ends_with(end));
            if let Some((_, unit)) = unit {
                found.push(Limit { name, value, unit, meaning: first_sentence(&docs) });
            }
        }
        docs.clear();
    }
    found
}

/// Up to its full stop; a bar would end the table's cell.
fn first_sentence(docs: &str) -> String {
    let docs = docs.trim();
    let end = docs.find(". ").map_or(docs.len(), |end| end + 1);
    docs[..end].trim_end_matches(['.', ':']).replace('|', "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_that_end_like_limits_are_read_with_their_first_sentence() {
        let text = "/// Jobs that may wait for one host. Each is small.\npub const QUEUED_MAX: u32 = 64;\n\n\
                    /// Not a limit.\nconst NAME: &str = \"x\";\nconst BODY_BYTES_MAX: usize = 8 * 1024;\n\
                    #[cfg(test)]\nconst TESTS_MAX: u8 = 1;\n";
        let limit = |name: &str, value: &str, unit, meaning: &str| Limit {
            name: name.to_owned(),
            value: value.to_owned(),
            unit,
            meaning: meaning.to_owned(),
        };
        let wanted = [
            limit("QUEUED_MAX", "64", "", "Jobs that may wait for one host"),
            limit("BODY_BYTES_MAX", "8 * 1024", "bytes", ""),
        ];
        assert_eq!(limits(text), wanted);
    }
}
