//! Expected data at the end of a schedule.
//!
//! In: the world before and after each change by hand, and the guests that the agent reports as made. Out: lists for
//! the judge.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use agentd::model::records::Place;
use agentd::port::store::Store;

use crate::fixtures::{FOREIGN, uid};
use crate::scene::{Scene, Volume};
use crate::world::World;

/// A guest that is not ours, from a moment on.
#[derive(Clone, Debug)]
pub struct Stranger {
    pub since: Duration,
    pub config: String,
    /// Its volumes with their bytes.
    pub volumes: BTreeMap<String, Volume>,
}

/// The expected data.
#[derive(Clone, Debug, Default)]
pub struct Witness {
    /// Volumes and archives of customers, and of people.
    pub kept: BTreeSet<String>,
    /// Guests that are not ours.
    pub strangers: BTreeMap<u32, Stranger>,
    /// Numbers at which a person or a broken worker left something.
    pub disturbed: BTreeSet<u32>,
    /// Numbers at which a person removed protection.
    pub unprotected: BTreeSet<u32>,
}

impl Witness {
    /// At the beginning.
    #[must_use]
    pub fn of(scene: &Scene) -> Self {
        let mut witness = Self { kept: scene.holdings().cloned().collect(), ..Self::default() };
        for number in FOREIGN {
            witness.estrange(number, scene, Duration::ZERO);
        }
        witness
    }

    fn estrange(&mut self, vmid: u32, scene: &Scene, since: Duration) {
        let Some(config) = scene.raw.get(&vmid) else { return };
        let volumes = scene.volumes.iter().filter(|(name, _)| Scene::owner(name) == Some(vmid));
        let volumes: BTreeMap<_, _> = volumes.map(|(name, hash)| (name.clone(), *hash)).collect();
        self.kept.extend(volumes.keys().cloned());
        self.strangers.insert(vmid, Stranger { since, config: config.clone(), volumes });
    }

    /// A guest that the agent reports as made belongs to a customer from then on.
    pub async fn note_made(&mut self, world: &World, store: &Store) {
        for n in 1..=3 {
            let Ok(Some(record)) = store.guest(uid(n)).await else { continue };
            if let Place::Made { volumes, vmid, .. } = record.place
                && !self.strangers.contains_key(&vmid.number())
            {
                let names = volumes.iter().map(|volume| on_disk(volume.as_str()));
                // The agent need not keep what a person has removed.
                self.kept.extend(names.filter(|name| is_there(world, name)));
            }
        }
    }

    /// A person changed a guest.
    pub fn hand(&mut self, world: &World, vmid: u32, before: &Scene, estranges: Estranges) {
        let after = world.scene();
        let (was, is): (BTreeSet<_>, BTreeSet<_>) =
            (before.holdings().cloned().collect(), after.holdings().cloned().collect());
        for gone in was.difference(&is) {
            self.kept.remove(gone);
        }
        self.kept.extend(is.difference(&was).cloned());
        self.disturbed.insert(vmid);
        self.strangers.remove(&vmid);
        if estranges == Estranges::Yes {
            self.estrange(vmid, &after, world.timeline.passed());
        }
    }
}

/// Whether a guest stops being ours by a change by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estranges {
    Yes,
    /// It does not.
    No,
}

fn is_there(world: &World, volume: &str) -> bool {
    let (storage, name) = volume.split_once(':').unwrap_or_default();
    world.state().join("root/mnt").join(storage).join("images").join(name).exists()
}

/// `tank:300/vm-300-disk-0.raw` is the folder `tank:300/vm-300-disk-0`.
fn on_disk(volume: &str) -> String {
    volume.trim_end_matches(".raw").to_owned()
}
