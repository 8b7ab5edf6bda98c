//! I1 and I15: lost data, and foreign guests.

use super::{Evidence, Violations};
use crate::fixtures::FOREIGN;
use crate::scene::{Scene, Volume};

/// I1: no volume, snapshot or backup that was there before is gone, or has lost what was in it, without a licence.
pub(super) fn nothing_of_a_customer_is_gone(evidence: &Evidence<'_>) -> Violations {
    let now: std::collections::BTreeSet<_> = evidence.after.holdings().collect();
    let gone = evidence.before.holdings().filter(|held| !now.contains(held));
    let gone = gone.map(|held| (held, "is gone"));
    let changed = evidence.before.volumes.iter().filter(|(held, before)| {
        evidence.after.volumes.get(*held).is_some_and(|after| after.content != before.content)
    });
    let renamed = |held: &String| {
        let before = evidence.before.volumes.get(held).filter(|_| (evidence.may_rename)(held));
        before.is_some_and(|before| {
            evidence.after.volumes.values().any(|after| after.content == before.content)
        })
    };
    gone.chain(changed.map(|(held, _)| (held, "has other content")))
        .filter(|(held, _)| !renamed(held))
        .filter(|(held, _)| !(evidence.may_take)(held))
        .map(|(held, what)| format!("{held} of {:?} {what}", Scene::owner(held)))
        .collect()
}

/// Whether we may write a guest's protection and the parts of its identity that people read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Labels {
    MayChange,
    Theirs,
}

fn same(before: Option<&String>, after: Option<&String>, labels: Labels) -> bool {
    if labels == Labels::Theirs {
        return before == after;
    }
    let label = |line: &&str| ["#", "tags:", "protection:"].iter().any(|start| line.starts_with(start));
    let rest =
        |text: &String| text.lines().filter(|line| !label(line)).map(str::to_owned).collect::<Vec<_>>();
    before.map(rest) == after.map(rest)
}

/// I15: guests that the agent did not make are the same byte by byte, and do what they did.
pub(super) fn what_is_not_ours_is_untouched(evidence: &Evidence<'_>) -> Violations {
    let (before, after) = (evidence.before, evidence.after);
    let mut found = Violations::new();
    for number in FOREIGN {
        let labels = if evidence.takes_over == Some(number) { Labels::MayChange } else { Labels::Theirs };
        if !same(before.raw.get(&number), after.raw.get(&number), labels) {
            found.push(format!("the configuration of foreign guest {number} was changed"));
        }
        if before.running.contains(&number) != after.running.contains(&number) {
            found.push(format!("foreign guest {number} was started or stopped"));
        }
        let theirs = |scene: &Scene| -> Vec<(String, Volume)> {
            let volumes = scene.volumes.iter().filter(|(name, _)| Scene::owner(name) == Some(number));
            volumes.map(|(name, volume)| (name.clone(), *volume)).collect()
        };
        if theirs(before) != theirs(after) {
            found.push(format!("a volume of foreign guest {number} was changed"));
        }
        if evidence.tasks.iter().any(|(task, _)| task.is_ours() && task.id == number.to_string()) {
            found.push(format!("a task of ours worked on foreign guest {number}"));
        }
    }
    found
}
