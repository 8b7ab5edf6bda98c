//! Rules about single files: length, docs and words.

use super::{Breach, Source};

/// Longer files say why in a line that starts with [`LONG_BECAUSE`].
const LINES_MAX: usize = 600;
const LONG_BECAUSE: &str = "//! Long because ";

/// Marks of unfinished work, and paths of one machine. Spelt in two halves, so that this file does not break its rule.
const BANNED: &[(&str, &str)] = &[
    ("todo", "!("),
    ("unimplemented", "!("),
    ("#[allow", "("),
    ("/ro", "ot/."),
    ("/wo", "rk/main"),
    ("/tmp/", "hf"),
    ("bash_", "jobs"),
];

/// Where each HTTP client is made: none may go through a proxy that the environment names. Spelt in two halves, too.
const CLIENT: &[(&str, &str)] = &[("Client::buil", "der()"), ("ClientBuil", "der::new()")];
const CLIENT_UNBUILT: &[(&str, &str)] = &[("reqwest::Client::n", "ew()"), ("reqwest::g", "et(")];

/// Checks all files.
pub fn check(sources: &[Source]) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for source in sources {
        if source.path.ends_with(".rs") {
            breaches.extend(rust(source));
            breaches.extend(clients(source));
        }
        if !source.path.ends_with(".lock") {
            breaches.extend(words(source));
        }
        if source.path.ends_with(".snap.new") {
            breaches.push(Breach::new(
                &source.path,
                "a snapshot that nobody looked at: take it over or remove it",
            ));
        }
    }
    breaches
}

/// What is sent to a hub, an agent, Proxmox or a receiver of webhooks must not be read, counted or held back by a
/// proxy.
fn clients(source: &Source) -> Vec<Breach> {
    let says = "an HTTP client that takes its proxy from the environment: `.no_proxy()` belongs to each";
    let mut breaches = Vec::new();
    for (first, second) in CLIENT {
        let parts: Vec<&str> = source.text.split(&format!("{first}{second}")).skip(1).collect();
        for part in parts {
            // The builder's own expression ends where it is built.
            let own = part.split(".build()").next().unwrap_or_default();
            if !own.contains(".no_proxy()") {
                breaches.push(Breach::new(&source.path, says));
            }
        }
    }
    let unbuilt = CLIENT_UNBUILT.iter().filter(|(a, b)| source.text.contains(&format!("{a}{b}")));
    breaches.extend(unbuilt.map(|_| Breach::new(&source.path, says)));
    breaches
}

fn rust(source: &Source) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let lines = source.text.lines().count();
    if lines > LINES_MAX && !source.text.lines().any(|line| line.starts_with(LONG_BECAUSE)) {
        let says = format!("{lines} lines: split it by idea, or say why with `{LONG_BECAUSE}…`");
        breaches.push(Breach::new(&source.path, says));
    }
    if !source.text.starts_with("//!") {
        breaches.push(Breach::new(
            &source.path,
            "starts without `//!`: say what it is for, what comes in, what goes out",
        ));
    }
    let name = source.path.rsplit('/').next().unwrap_or_default();
    let crate_root = source.path.ends_with("src/lib.rs") || source.path.ends_with("src/main.rs");
    if crate_root && !source.text.contains("#![forbid(unsafe_code)]") {
        breaches.push(Breach::new(&source.path, "a crate root without `#![forbid(unsafe_code)]`"));
    }
    if matches!(name, "utils.rs" | "util.rs" | "common.rs" | "helpers.rs" | "misc.rs") {
        breaches.push(Breach::new(&source.path, "a grab-bag: name the file after its one idea"));
    }
    breaches
}

fn words(source: &Source) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (number, line) in source.text.lines().enumerate() {
        for (left, right) in BANNED {
            if line.contains(&format!("{left}{right}")) {
                let place = format!("{}:{}", source.path, number + 1);
                breaches.push(Breach::new(place, format!("`{left}{right}` must not be here")));
            }
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaches(path: &str, text: &str) -> usize {
        check(&[Source { path: path.to_owned(), text: text.to_owned() }]).len()
    }

    #[test]
    fn each_rule_refuses_something() {
        assert_eq!(breaches("a/src/x.rs", "//! Fine.\nfn f() {}\n"), 0);
        assert_eq!(breaches("a/src/x.rs", "fn f() {}\n"), 1, "no module docs");
        assert_eq!(breaches("a/src/lib.rs", "//! Docs.\n"), 1, "no forbid");
        assert_eq!(breaches("a/src/utils.rs", "//! Docs.\n"), 1, "grab-bag");
        let long = format!("//! Docs.\n{}", "x\n".repeat(LINES_MAX));
        assert_eq!(breaches("a/src/x.rs", &long), 1, "too long");
        assert_eq!(
            breaches("a/src/x.rs", &format!("{LONG_BECAUSE}it is one table.\n{long}")),
            0,
            "a stated reason"
        );
        assert_eq!(breaches("a/src/snapshots/x.snap.new", "text\n"), 1, "nobody looked at it");
        assert_eq!(breaches("notes.md", &format!("see {}{}", "/wo", "rk/main")), 1, "a machine's path");
        assert_eq!(breaches("a/src/x.rs", &format!("//! Docs.\n{}{})", "todo", "!(")), 1, "unfinished");
        let (start, end) = (format!("//! Docs.\nlet a = Client::buil{}", "der()"), ".build();\n");
        assert_eq!(breaches("a/src/x.rs", &format!("{start}.no_proxy(){end}")), 0);
        assert_eq!(breaches("a/src/x.rs", &format!("{start}{end}")), 1, "by way of a proxy");
        let two = format!("{start}{end}{start}.no_proxy(){end}");
        assert_eq!(breaches("a/src/x.rs", &two), 1, "the second says nothing for the first");
        let unbuilt = format!("//! Docs.\nlet a = reqwest::Client::n{};\n", "ew()");
        assert_eq!(breaches("a/src/x.rs", &unbuilt), 1, "as it comes");
    }
}
