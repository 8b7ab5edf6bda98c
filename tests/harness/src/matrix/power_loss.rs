//! The power-loss case of the crash matrix.
//!
//! In: the change of a file before which the power is lost in each life, and the fate of unsynced data. Out: the story
//! continues with what is found. Everything that the agent took for written must be found; everything it did must be
//! recorded there.

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::id::OperationId;

use super::case::{Entry, OPERATION, Play, PowerLoss};
use crate::db_reader::Book;
use crate::invariant::Violation;
use crate::points::Kill;
use crate::power::server::Served;
use crate::story::Does;
use crate::world::folder;
use power_disk::fate::Fate;

/// This many events may be on the disk although their writes were not confirmed: one of each task that was writing.
const ON_THE_WAY: u32 = 2;

impl Play<'_> {
    /// Lives until the power is lost, and continues with what is found, until it is lost again. A story that ends
    /// before that just ends. Returns the disks, which are dropped when nothing has files open on them any more.
    pub(super) async fn lose_power(&mut self, losses: &[PowerLoss]) -> Vec<Arc<Served>> {
        let effects = self.world.log.effects().len();
        let (mut disks, mut entry) = (Vec::new(), Entry::Anew);
        for loss in losses {
            let disk = self.world.lay_on_disk(loss.at);
            disks.push(Arc::clone(&disk));
            let conductor = self.conductor(Kill::WithDisk(Arc::clone(&disk)), None);
            let end = tokio::select! {
                biased;
                end = self.begin(&conductor, entry) => Some(end),
                () = cut(&disk) => None,
            };
            self.written += conductor.written();
            self.changes.push(disk.power().changes);
            self.note(&conductor);
            if let Some(end) = end.filter(|_| !disk.is_cut()) {
                self.end(end);
                self.world.power_is_back(Fate::Kept);
                return disks;
            }
            self.world.power_is_back(loss.fate);
            entry = self.found(&disk, loss.fate, effects).await;
        }
        let conductor = self.conductor(Kill::Never, None);
        let end = self.begin(&conductor, entry).await;
        self.note(&conductor);
        self.end(end);
        disks
    }

    /// Checks what was found, and returns how the next life begins. It checks a copy, because the next life does the
    /// recovery.
    async fn found(&mut self, disk: &Served, fate: Fate, effects: usize) -> Entry {
        let copy = folder();
        disk.found(fate, copy.path());
        // A file that was being made is completed, as the next start would do.
        if let Some(refusal) = self.world.store_in(copy.path()).await.refusal() {
            self.wrong
                .push(Violation { name: "I7", what: format!("what is found takes nothing: {refusal:?}") });
        }
        let book = Book::of(copy.path());
        let found: u32 = book.events.values().sum();
        if !(self.written..=self.written + ON_THE_WAY).contains(&found) {
            let what = format!("{} events were told as written, {found} are found", self.written);
            self.wrong.push(Violation { name: "I7", what });
        }
        self.written = found;
        let id = OperationId::new(uuid::Uuid::from_u128(u128::from(OPERATION))).to_string();
        match self.story.does {
            Does::Goals(_) => Entry::TakingUp,
            Does::Operation(_) if book.open.contains(&id) || book.outcomes.contains_key(&id) => {
                Entry::TakingUp
            }
            Does::Operation(_) => {
                if self.world.log.effects().len() > effects {
                    let what = "something was done, and its operation is not found".to_owned();
                    self.wrong.push(Violation { name: "I1", what });
                }
                Entry::Anew
            }
        }
    }
}

/// Returns once the power is gone. Virtual time passes only when the agent waits.
async fn cut(disk: &Served) {
    while !disk.is_cut() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
