//! Status of targets and mounts, read without changes.

use crate::find::Survey;
use crate::mountinfo;
use crate::mountpoint::{self, Occupant, PARENT, Parent};
use crate::policy::Policy;
use crate::reply::{HelperTargetStatus, Refusal, Reply};
use crate::state::Lock;

pub fn read(policy: &Policy, lock: &Lock) -> Result<Reply, Refusal> {
    let parent = Parent::open()?;
    let survey = Survey::take(policy)?;
    let (mut ours, mut targets) = (Vec::new(), Vec::new());
    for target in &policy.targets {
        let record = lock.record(&target.name)?;
        let mounted = match (parent.state(&target.name), record) {
            (Ok(Occupant::Mount(there)), Some(record)) => record.id == there && record.uuid == target.uuid,
            _ => false,
        };
        if mounted {
            ours.push(mountpoint::path(&target.name));
        }
        let (device, refusal) = match survey.find(target) {
            Ok(disk) => (Some(disk.path()), None),
            Err(refusal) => (None, Some(refusal)),
        };
        targets.push(HelperTargetStatus { target: target.name.clone(), mounted, device, refusal });
    }
    let beneath = |point: &str| point.strip_prefix(PARENT).is_some_and(|rest| rest.starts_with('/'));
    let points = mountinfo::own()?.into_iter().map(|entry| entry.point);
    let mut foreign: Vec<String> = points.filter(|point| beneath(point) && !ours.contains(point)).collect();
    foreign.dedup();
    Ok(Reply::Status { targets, foreign })
}
