//! Text of backup policies: who is under each, and what it promises.

use holdfast_protocol::protection::Protection;
use holdfast_protocol::resource::PartContent;
use holdfast_protocol::resource::view::PartView;
use jiff::Timestamp;

use super::preview::states;
use super::table::clean;
use crate::screen::Style;

pub fn policies(policies: &[PartView], now: Timestamp, style: Style) -> String {
    let mut text = states(policies, now, style);
    for policy in policies {
        let used: Vec<String> = policy.used_by.iter().map(|user| user.of.clone()).collect();
        let used = if used.is_empty() { "no guest is under it".to_owned() } else { used.join(", ") };
        text.push_str(&format!("\n{}\n", clean(&format!("Policy {}: {used}", policy.name))));
        let Some(PartContent::Policy(content)) = policy.desired.as_ref().map(|desired| &desired.value) else {
            continue;
        };
        let promise = Protection { tiers: content.tiers.clone(), volumes: Vec::new() };
        text.extend(promise.lines().iter().map(|line| format!("  {}\n", clean(line))));
    }
    text
}
