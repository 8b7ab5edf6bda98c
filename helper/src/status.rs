//! What is mounted beneath `/mnt/holdfast`, and which wanted devices are there. Nothing is changed by looking.

use crate::find::Survey;
use crate::mountinfo;
use crate::place::{self, PARENT, Parent, Spot};
use crate::policy::Policy;
use crate::reply::{Refusal, Reply, TargetStatus};
use crate::state::Turn;

/// Looks.
pub fn look(policy: &Policy, turn: &Turn) -> Result<Reply, Refusal> {
    let parent = Parent::open()?;
    let survey = Survey::take(policy)?;
    let (mut ours, mut targets) = (Vec::new(), Vec::new());
    for target in &policy.targets {
        let record = turn.record(&target.name)?;
        let mounted = match (parent.spot(&target.name), record) {
            (Ok(Spot::Mount(there)), Some(record)) => record.id == there && record.uuid == target.uuid,
            _ => false,
        };
        if mounted {
            ours.push(place::path(&target.name));
        }
        let (device, refusal) = match survey.find(target) {
            Ok(disk) => (Some(disk.path()), None),
            Err(refusal) => (None, Some(refusal)),
        };
        targets.push(TargetStatus { target: target.name.clone(), mounted, device, refusal });
    }
    let beneath = |point: &str| point.strip_prefix(PARENT).is_some_and(|rest| rest.starts_with('/'));
    let points = mountinfo::own()?.into_iter().map(|entry| entry.point);
    let mut foreign: Vec<String> = points.filter(|point| beneath(point) && !ours.contains(point)).collect();
    foreign.dedup();
    Ok(Reply::Status { targets, foreign })
}
