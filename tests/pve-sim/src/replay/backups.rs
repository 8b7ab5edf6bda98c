//! Premises about backups: those that a retention removes, and a protection that is gone.
//!
//! In: one recorded exchange. Out: backups that were made on another day, protections that were lifted by hand.
use serde_json::Value;

use super::names::Names;
use super::premise::Premises;
use super::recording::{Call, Task};
use crate::storage::content::beside;

impl Premises<'_> {
    /// A backup that a retention removes was there, also when this recording did not make it.
    pub(super) fn pruned(&mut self, number: usize, task: Option<&Task>, names: &Names) {
        let named = |line: &String| {
            let rest = line.split("removing backup '").nth(1)?;
            rest.split('\'').next().filter(|volid| volid.contains(":backup/")).map(str::to_owned)
        };
        let removed: Vec<String> =
            task.into_iter().flat_map(|task| task.log.iter().filter_map(named)).collect();
        for volid in removed {
            self.lift(number, &names.ours(&volid));
            if self.is_made_by_backup(&volid, number) || self.node.world().store().exists(&volid) {
                continue;
            }
            let made = {
                let world = self.node.world();
                crate::state::volumes::provide(&world.store(), None, &volid, 0).is_ok()
            };
            self.taken.push(format!("before line {}: archive {volid} made by hand ({made})", number + 1));
        }
    }

    /// A backup that can be deleted was not protected any more.
    pub(super) fn unprotected(&mut self, number: usize, call: &Call, task: Option<&Task>, names: &Names) {
        let deleted = call.method == "DELETE" && call.answer.status == 200;
        let fine = task.is_some_and(|task| task.last.get("exitstatus").and_then(Value::as_str) == Some("OK"));
        let Some(asked) = call.path.split("/content/").nth(1).filter(|_| deleted && fine) else { return };
        let volid = names.ours(&percent_encoding::percent_decode_str(asked).decode_utf8_lossy());
        self.lift(number, &volid);
    }

    fn lift(&mut self, number: usize, volid: &str) {
        let mark = {
            let world = self.node.world();
            let store = world.store();
            store
                .locate(&volid)
                .ok()
                .map(|at| beside(&store.place(&at), "protected"))
                .filter(|mark| mark.exists())
        };
        if let Some(mark) = mark {
            let lifted = std::fs::remove_file(mark).is_ok();
            self.taken
                .push(format!("before line {}: {volid} is not protected any more ({lifted})", number + 1));
        }
    }
}
