//! Texts that the real `vzdump` composes.
use std::fmt::Write as _;

use serde_json::Value;

use super::options::Options;
use crate::archive::Compression;
use crate::call::plain;
use crate::http::params::Params;
use crate::schema::format::split_list;
use crate::schema::property;
use crate::schema::table::Table;

/// `vzdump 140 --mode stop …`; the real order of options is accidental.
pub(super) fn command_line(table: &Table, params: &Params, vmids: &[u32]) -> String {
    let mut line = "vzdump".to_owned();
    for vmid in vmids.iter().filter(|_| params.contains_key("vmid")) {
        let _ = write!(line, " {vmid}");
    }
    for (name, value) in params.iter().filter(|(name, _)| name.as_str() != "vmid") {
        let values: Vec<String> = match value {
            Value::Array(list) => list.iter().filter_map(plain).collect(),
            other => plain(other).into_iter().map(|text| normal(table, name, text)).collect(),
        };
        for value in values {
            let _ = write!(line, " --{name} {}", quoted(&value));
        }
    }
    line
}

/// Joins a parsed value again: lists with commas, and the value of a default key without that key.
fn normal(table: &Table, name: &str, text: String) -> String {
    match name {
        "mailto" => split_list(&text).collect::<Vec<_>>().join(","),
        "fleecing" => {
            let format = table.format("backup-fleecing");
            let read = format.and_then(|format| Some((format, property::parse(table, format, &text).ok()?)));
            read.map_or(text, |(format, held)| property::print(format, &held))
        }
        _ => text,
    }
}

/// As a shell reads it back.
pub(super) fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_!%+,-./:@^".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// `00:01:05`
pub(super) fn duration(seconds: i64) -> String {
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// `<1 seconds`, `5 seconds`
pub(super) fn delay(seconds: i64) -> String {
    if seconds < 1 { "<1 seconds".to_owned() } else { format!("{seconds} seconds") }
}

/// A size as the log prints it: whole mebibytes, gibibytes with two digits.
pub(super) fn file_size(bytes: u64) -> String {
    if bytes >= 1 << 30 {
        #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
        let gib = bytes as f64 / f64::from(1 << 30);
        format!("{gib:.2}GB")
    } else {
        format!("{}MB", bytes >> 20)
    }
}

/// Bytes as the backup server's client prints them.
pub(super) fn reported_bytes(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            let digits = format!("{value:.3}");
            return format!("{} {unit}", digits.trim_end_matches('0').trim_end_matches('.'));
        }
        value /= 1024.0;
    }
    format!("{value:.3} TiB")
}

/// Bytes as rsync prints them.
pub(super) fn transferred(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let value = bytes as f64;
    match bytes {
        0..1_000 => format!("{bytes}"),
        1_000..1_000_000 => format!("{:.2}K", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2}M", value / 1e6),
        _ => format!("{:.2}G", value / 1e9),
    }
}

/// Fills a template of notes.
pub(super) fn notes(template: &str, vmid: u32, guest: &str, node: &str) -> String {
    let mut text = String::new();
    let mut letters = template.chars();
    while let Some(letter) = letters.next() {
        match (letter, letter == '\\') {
            (_, true) => match letters.next() {
                Some('n') => text.push('\n'),
                Some(other) => text.push(other),
                None => text.push('\\'),
            },
            (plain, false) => text.push(plain),
        }
    }
    text.replace("{{vmid}}", &vmid.to_string())
        .replace("{{guestname}}", guest)
        .replace("{{node}}", node)
        .replace("{{cluster}}", "standalone node")
}

/// What a template of notes may not name.
///
/// # Errors
/// The real sentence, with the place behind the name less the name's length.
pub(super) fn check_notes(template: &str) -> Result<(), String> {
    let mut unknown = Vec::new();
    let (mut at, mut rest) = (0, template);
    while let Some((before, behind)) = rest.split_once("{{") {
        let Some((name, after)) = behind.split_once("}}") else { break };
        at += before.chars().count() + name.chars().count() + 4;
        let is_name = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || "{}".contains(c));
        if is_name && !["cluster", "guestname", "node", "vmid"].contains(&name) {
            unknown.push(format!("variable '{name}' at char {}", at - name.chars().count()));
        }
        rest = after;
    }
    if unknown.is_empty() { Ok(()) } else { Err(format!("found unknown: {}\n", unknown.join(", "))) }
}

/// The command that an error message names.
pub(super) struct TarCommand<'a> {
    pub options: &'a Options,
    pub unprivileged: bool,
    /// The folder that `pct.conf` comes from.
    pub temporary: &'a str,
    /// The folder that the files come from.
    pub source: &'a str,
    /// The path that is packed from it: `./` for a mount, `.` for a copy.
    pub root: &'a str,
    /// Mount points in addition to the root file system, as `./inc`.
    pub others: &'a [String],
    pub unfinished: &'a str,
}

impl TarCommand<'_> {
    /// The whole command, as the real message prints it.
    pub(super) fn text(&self) -> String {
        let mapped =
            if self.unprivileged { "lxc-usernsexec -m u:0:100000:65536 -m g:0:100000:65536 -- " } else { "" };
        let mut excluded: Vec<String> = ["./tmp/?*", "./var/tmp/?*", "./var/run/?*.pid"]
            .iter()
            .map(|pattern| format!("'--exclude={pattern}'"))
            .collect();
        for pattern in &self.options.exclude_words {
            match pattern.strip_prefix('/') {
                Some(rest) => excluded.push(quoted(&format!("--exclude=./{rest}"))),
                None => excluded
                    .push(format!("--no-anchored {} --anchored", quoted(&format!("--exclude={pattern}")))),
            }
        }
        let others: String = self.others.iter().map(|other| format!(" {}", quoted(other))).collect();
        format!(
            "set -o pipefail && {mapped}tar cpf - --totals --one-file-system -p --sparse --numeric-owner --acls --xattrs '--xattrs-include=user.*' '--xattrs-include=security.capability' '--warning=no-file-ignored' '--warning=no-xattr-write' --one-file-system '--warning=no-file-ignored' '--directory={}' ./etc/vzdump/pct.conf ./etc/vzdump/pct.fw '--directory={}' --no-anchored '--exclude=lost+found' --anchored {} {}{others}{}{} >{}",
            self.temporary,
            self.source,
            excluded.join(" "),
            self.root,
            self.throttle(),
            compressor(self.options.compression),
            self.unfinished,
        )
    }
}

impl TarCommand<'_> {
    /// What keeps the stream slow.
    fn throttle(&self) -> String {
        match self.options.bwlimit_kib_s {
            0 => String::new(),
            limit => format!(" | cstream -t {}", limit.saturating_mul(1024)),
        }
    }
}

const fn compressor(compression: Compression) -> &'static str {
    match compression {
        Compression::Plain => "",
        Compression::Gzip => " | gzip --rsyncable",
        Compression::Zstd => " | zstd '--threads=1'",
        Compression::Lzo => " | lzop",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_as_recorded() {
        for (word, shown) in [
            ("backup2", "backup2"),
            ("x@y.invalid", "x@y.invalid"),
            ("keep-last=2", "'keep-last=2'"),
            ("/var/log/*", "'/var/log/*'"),
            ("{{guestname}} on", "'{{guestname}} on'"),
            ("", "''"),
            ("a'b", "'a'\\''b'"),
        ] {
            assert_eq!(quoted(word), shown);
        }
    }

    #[test]
    fn figures_are_reported_as_recorded() {
        assert_eq!(
            (file_size(1_104_315), file_size(2_129_920), file_size(148_000_000)),
            ("1MB".into(), "2MB".into(), "141MB".into())
        );
        assert_eq!(
            (transferred(2_030_000), transferred(148_830_000), transferred(0)),
            ("2.03M".into(), "148.83M".into(), "0".into())
        );
        assert_eq!((duration(1), duration(3725)), ("00:00:01".into(), "01:02:05".into()));
        assert_eq!((delay(0), delay(22)), ("<1 seconds".into(), "22 seconds".into()));
    }

    #[test]
    fn notes_are_filled_as_recorded() {
        let filled = notes("{{guestname}} on {{node}} {{vmid}} {{cluster}}", 141, "ct141", "pve1");
        assert_eq!(filled, "ct141 on pve1 141 standalone node");
        assert_eq!(notes("a\\nb\\\\n", 1, "", ""), "a\nb\\n");
        assert_eq!(check_notes("{{guestname}} {{vmid}}"), Ok(()));
        assert_eq!(check_notes("{{nosuch}}"), Err("found unknown: variable 'nosuch' at char 4\n".to_owned()));
    }
}
