//! Premises about firewalls that were set up before the recording.
//!
//! In: one recorded read of options, sets or rules. Out: the same in the file, when no recorded call wrote that part before.
use serde_json::Value;

use super::precondition::Premises;
use super::recording::Call;
use crate::call::firewall::{keep, text_of};
use crate::call::plain;
use crate::firewall::{Entry, IpSet, Rule, file};

/// The file that a path is about, and the part behind `/firewall/`.
fn about(call: &Call) -> Option<(String, String)> {
    let (before, part) = call.path.split('?').next()?.split_once("/firewall/")?;
    let guest = before.split("/lxc/").nth(1).map(|vmid| format!("{vmid}.fw"));
    let other = if before.ends_with("/cluster") { "cluster.fw" } else { "host.fw" };
    Some((guest.unwrap_or_else(|| other.to_owned()), part.to_owned()))
}

impl Premises<'_> {
    /// Writes what a recorded read shows.
    pub(super) fn firewall(&mut self, number: usize, call: &Call) {
        let Some((name, part)) = about(call).filter(|_| call.method == "GET" && call.answer.status == 200)
        else {
            return;
        };
        let area = part.split('/').next().unwrap_or_default().to_owned();
        let written = self.calls().any(|(at, earlier, _)| {
            let same = about(earlier).is_some_and(|(other, part)| other == name && part.starts_with(&area));
            at < number && earlier.method != "GET" && earlier.answer.status == 200 && same
        });
        let Some(data) = call.answer.body.as_ref().and_then(|body| body.get("data")).filter(|_| !written)
        else {
            return;
        };
        let mut config = file::parse(&text_of(self.node, &name));
        let before = config.clone();
        let word = |row: &Value, key: &str| row.get(key).and_then(plain);
        let comment = |row: &Value| word(row, "comment").unwrap_or_default();
        let rows = || data.as_array().into_iter().flatten();
        match part.split('/').collect::<Vec<_>>().as_slice() {
            ["options"] => {
                let shown = data.as_object().into_iter().flatten().filter(|(key, _)| *key != "digest");
                config.options =
                    shown.filter_map(|(key, value)| Some((key.clone(), plain(value)?))).collect();
            }
            ["ipset"] => {
                for row in rows() {
                    let Some(set) = word(row, "name") else { continue };
                    config
                        .sets
                        .entry(set)
                        .or_insert_with(|| IpSet { comment: comment(row), ..IpSet::default() });
                }
            }
            ["ipset", set] => {
                let entries = rows().filter_map(|row| {
                    let nomatch = row.get("nomatch").is_some();
                    Some(Entry { cidr: word(row, "cidr")?, nomatch, comment: comment(row) })
                });
                config.sets.entry((*set).to_owned()).or_default().entries = entries.collect();
            }
            ["rules"] => {
                let unkept = |key: &str| matches!(key, "pos" | "digest" | "ipversion");
                let rule = |row: &Value| -> Rule {
                    let fields = row.as_object().into_iter().flatten().filter(|(key, _)| !unkept(key));
                    fields.filter_map(|(key, value)| Some((key.clone(), plain(value)?))).collect()
                };
                config.rules = rows().map(rule).collect();
            }
            _ => return,
        }
        if config != before {
            let done = keep(self.node, &name, &config).is_ok();
            self.taken.push(format!("before line {}: the firewall {name} is as shown ({done})", number + 1));
        }
    }
}
