//! The form of a firewall file.
//!
//! ```text
//! [OPTIONS]                     key: value
//! [ALIASES]                     name address # comment
//! [IPSET name] # comment        !address # comment
//! [RULES]                       |IN DROP -p udp -dport 53 # comment     (| = off)
//! ```
//! In: text. Out: [`Config`], and the text again.
use std::fmt::Write as _;

use super::config::{Alias, Config, Entry, Rule};

/// Fields of a rule that are written after a switch, in the order in which they are written.
const SWITCHES: &[(&str, &str)] = &[
    ("iface", "-i"),
    ("source", "-source"),
    ("dest", "-dest"),
    ("proto", "-p"),
    ("dport", "-dport"),
    ("sport", "-sport"),
    ("icmp-type", "-icmp-type"),
    ("log", "-log"),
];

/// Writes a file.
#[must_use]
pub fn print(config: &Config) -> String {
    let mut out = String::new();
    let remark = |comment: &str| if comment.is_empty() { String::new() } else { format!(" # {comment}") };
    if !config.options.is_empty() {
        out.push_str("[OPTIONS]\n\n");
        for (key, value) in &config.options {
            let _ = writeln!(out, "{key}: {value}");
        }
        out.push('\n');
    }
    if !config.aliases.is_empty() {
        out.push_str("[ALIASES]\n\n");
        for (name, alias) in &config.aliases {
            let _ = writeln!(out, "{name} {}{}", alias.cidr, remark(&alias.comment));
        }
        out.push('\n');
    }
    for (name, set) in &config.sets {
        let _ = writeln!(out, "[IPSET {name}]{}\n", remark(&set.comment));
        for entry in &set.entries {
            let not = if entry.nomatch { "!" } else { "" };
            let _ = writeln!(out, "{not}{}{}", entry.cidr, remark(&entry.comment));
        }
        out.push('\n');
    }
    if !config.rules.is_empty() {
        out.push_str("[RULES]\n\n");
        for rule in &config.rules {
            let _ = writeln!(out, "{}", rule_line(rule));
        }
        out.push('\n');
    }
    out
}

fn rule_line(rule: &Rule) -> String {
    let field = |name: &str| rule.get(name).map_or("", String::as_str);
    let off = if field("enable") == "1" { "" } else { "|" };
    let action = match rule.get("macro") {
        Some(name) => format!("{name}({})", field("action")),
        None => field("action").to_owned(),
    };
    let mut line = format!("{off}{} {action}", field("type").to_uppercase());
    for (name, switch) in SWITCHES {
        if let Some(value) = rule.get(*name) {
            let _ = write!(line, " {switch} {value}");
        }
    }
    if let Some(comment) = rule.get("comment") {
        let _ = write!(line, " # {comment}");
    }
    line
}

/// Reads a file; lines that are not understood are left out.
#[must_use]
pub fn parse(text: &str) -> Config {
    let mut config = Config::default();
    let mut section = String::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (body, comment) = line.split_once('#').unwrap_or((line, ""));
        let (body, comment) = (body.trim(), comment.trim().to_owned());
        if let Some(name) = body.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name.to_owned();
            if let Some(set) = name.strip_prefix("IPSET ") {
                config.sets.entry(set.to_owned()).or_default().comment = comment;
            }
            continue;
        }
        match section.as_str() {
            "OPTIONS" => {
                if let Some((key, value)) = body.split_once(':') {
                    config.options.insert(key.trim().to_owned(), value.trim().to_owned());
                }
            }
            "ALIASES" => {
                if let Some((name, cidr)) = body.split_once(' ') {
                    config.aliases.insert(name.to_owned(), Alias { cidr: cidr.trim().to_owned(), comment });
                }
            }
            "RULES" => config.rules.extend(rule_of(body, comment)),
            other => {
                if let Some(set) = other.strip_prefix("IPSET ").and_then(|name| config.sets.get_mut(name)) {
                    let (nomatch, cidr) = body.strip_prefix('!').map_or((false, body), |rest| (true, rest));
                    set.entries.push(Entry { cidr: cidr.to_owned(), nomatch, comment });
                }
            }
        }
    }
    config
}

fn rule_of(body: &str, comment: String) -> Option<Rule> {
    let (enabled, body) = body.strip_prefix('|').map_or((true, body), |rest| (false, rest));
    let mut words = body.split_whitespace();
    let (kind, action) = (words.next()?, words.next()?);
    let mut rule = Rule::from([
        ("type".to_owned(), kind.to_lowercase()),
        ("enable".to_owned(), u8::from(enabled).to_string()),
    ]);
    match action.split_once('(') {
        Some((name, action)) => {
            rule.insert("macro".to_owned(), name.to_owned());
            rule.insert("action".to_owned(), action.trim_end_matches(')').to_owned());
        }
        None => drop(rule.insert("action".to_owned(), action.to_owned())),
    }
    while let (Some(switch), Some(value)) = (words.next(), words.next()) {
        let (name, _) = SWITCHES.iter().find(|(_, held)| *held == switch)?;
        rule.insert((*name).to_owned(), value.to_owned());
    }
    if !comment.is_empty() {
        rule.insert("comment".to_owned(), comment);
    }
    Some(rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_goes_there_and_back() {
        let text = "[OPTIONS]\n\nenable: 1\nipfilter: 1\n\n[ALIASES]\n\nweb1 10.10.10.201\n\n[IPSET ipfilter-net0] # address of net0\n\n10.10.10.0/24\n!10.10.10.128/25\n10.10.10.202 # second\n\n[RULES]\n\n|IN DROP -p udp -dport 53\nIN ACCEPT -i net0 -source 10.10.10.0/24 -p tcp -dport 22 # ssh\n\n";
        let config = parse(text);
        assert_eq!(print(&config), text);
        assert_eq!(config.rules[0].get("enable").map(String::as_str), Some("0"));
        assert!(config.sets["ipfilter-net0"].entries[1].nomatch);
    }
}
