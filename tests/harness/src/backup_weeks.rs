//! Weeks of backups under virtual time.
//!
//! In: nothing; it is one story. Out: what does not hold. The story has a backup each night within its window. As many
//! are kept as the policy keeps, and the proved one is kept whatever the policy says. There are also two snapshots a
//! day, of which the last two stay. An archive is removed by hand, the agent is off for some nights, and a clock leaps.
//! Each morning the state is read from the simulator's files and the agent's database, never from the agent's report.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use agentd::model::view::HostSnapshot;
use agentd::port::clock::Clock;
use agentd::port::store::Store;
use agentd::task::reconcile::{ObserveInterval, Reconcile};
use agentd::task::stop;
use holdfast_protocol::desired::{Desired, DesiredDocument, DesiredGuest, DesiredSchema};
use holdfast_protocol::generation::Generation;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tokio::sync::watch;

use crate::db_reader::{Book, StoredRecords};
use crate::fixtures::{guest, uid};
use crate::ground::Ground;
use crate::points::Conductor;
use crate::virtual_time;
use crate::world::World;
use crate::world_template::Template;

/// How often the agent checks the host. A due backup wakes the agent by itself.
const LOOK_EVERY: Duration = Duration::from_secs(1_200);

/// This many backups are kept, the newest first.
const KEEPS: usize = 3;

/// This many snapshots are kept, the newest first.
const SNAPSHOTS: usize = 2;

/// Plays the story, and returns what does not hold.
#[must_use]
pub fn run() -> Vec<String> {
    let template = Template::of(Ground::GuestRuns);
    virtual_time(|| async {
        let mut nights = Nights { world: template.world(1).patient(), wrong: Vec::new(), proved: None };
        nights.play().await;
        nights.wrong
    })
}

struct Nights {
    world: World,
    wrong: Vec<String>,
    /// The archive that was proved.
    proved: Option<String>,
}

/// The state that a morning finds.
struct Morning {
    /// On record, oldest first, those of the policy alone.
    kept: Vec<StoredRecords>,
    /// Archives of the guest that are there.
    there: BTreeSet<String>,
    /// Names of the snapshots that are there, of all its volumes.
    snapshots: BTreeSet<String>,
}

impl Nights {
    async fn play(&mut self) {
        // Seven nights. The first backup is proved, and then it is one of the old ones.
        for night in 1..=7 {
            self.live(1).await;
            let morning = self.morning();
            self.holds(&format!("night {night}"), &morning);
            if night == 1 {
                self.prove(&morning);
            }
            self.is(morning.kept.len() == KEEPS.min(night + 1) + usize::from(night > KEEPS), || {
                format!("night {night}: {:?}", morning.kept)
            });
        }
        self.someone_takes_one_away().await;
        self.no_one_is_there().await;
        self.the_clock_leaps().await;
    }

    /// A backup that is not listed protects no data: it is reported as missing, it replaces no other, and another one
    /// is taken.
    async fn someone_takes_one_away(&mut self) {
        let before = self.morning();
        let Some(newest) = before.kept.last() else {
            return self.wrong.push("no backup is there".to_owned());
        };
        std::fs::remove_file(self.path(&newest.archive)).unwrap();
        self.live_until(self.now() + SignedDuration::from_hours(2)).await;
        let after = self.morning();
        let gone = after.kept.iter().find(|kept| kept.archive == newest.archive);
        self.is(gone.is_some_and(|kept| kept.missing), || {
            format!("it is not told missing: {:?}", after.kept)
        });
        self.is(after.kept.iter().filter(|kept| !kept.missing).count() == KEEPS + 1, || {
            format!("no other was taken in its place: {:?}", after.kept)
        });
        for night in 8..=9 {
            self.live(1).await;
            let morning = self.morning();
            self.holds(&format!("night {night}"), &morning);
        }
    }

    /// Three nights without an agent give one backup.
    async fn no_one_is_there(&mut self) {
        let before = self.taken();
        tokio::time::sleep(Duration::from_secs(3 * 86_400)).await;
        self.live_until(self.now() + SignedDuration::from_hours(3)).await;
        let morning = self.morning();
        self.holds("after three nights without an agent", &morning);
        let taken = self.taken() - before;
        self.is(taken == 1, || format!("three nights were caught up with {taken} backups"));
    }

    /// The clock leaps a year ahead for a while, and a month back. This begins nothing and removes nothing.
    async fn the_clock_leaps(&mut self) {
        let (before, taken) = (self.morning(), self.taken());
        // Minutes from the beginning, and the clock's offset from then on. It begins right, because a starting agent
        // cannot notice a wrong clock.
        let leaps = [(30, 400 * 86_400), (36, 0), (60, -30 * 86_400), (66, 0)];
        self.live_with(self.now() + SignedDuration::from_hours(3), &leaps).await;
        let after = self.morning();
        self.is(self.taken() == taken, || "a leap of the clock began a backup".to_owned());
        self.is(before.there == after.there && before.snapshots == after.snapshots, || {
            format!("a leap of the clock threw something away: {:?}, then {:?}", before.there, after.there)
        });
        self.live(1).await;
        let morning = self.morning();
        self.holds("the night after the leaps", &morning);
        self.is(self.taken() == taken + 1, || "no backup after the leaps".to_owned());
    }

    /// What holds each morning once there are as many as are kept.
    fn holds(&mut self, when: &str, morning: &Morning) {
        let Morning { kept, there, snapshots } = morning;
        // Of tonight and of yesterday afternoon, or, where no agent ran, the last ones.
        let last = self.now().strftime("scheduled-%Y%m%dT030000Z").to_string();
        self.is(snapshots.contains(&last) && snapshots.len() == SNAPSHOTS, || {
            format!("{when}: the snapshots are {snapshots:?}")
        });
        for kept in kept.iter().filter(|kept| !kept.missing) {
            self.is(there.contains(&kept.archive), || {
                format!("{when}: {} is on record and not there", kept.archive)
            });
        }
        let newest = kept.last().and_then(|newest| newest.archive.rsplit("vzdump-lxc-300-").next());
        let day = self.now().strftime("%Y_%m_%d").to_string();
        let tonight = newest.is_some_and(|newest| newest.starts_with(&day));
        self.is(tonight, || format!("{when}: no backup of {day}, the newest is {newest:?}"));
        let proved = self.proved.clone();
        self.is(proved.as_ref().is_none_or(|proved| there.contains(proved)), || {
            format!("{when}: the proved backup {proved:?} is gone")
        });
        // In addition to the first one, from the making of the guest, and the proved one, which no retention removes.
        let counted =
            kept.iter().filter(|kept| !kept.missing && Some(&kept.archive) != proved.as_ref()).count();
        self.is(counted <= KEEPS, || format!("{when}: {counted} are kept"));
        let ever = self.taken();
        self.is(counted >= KEEPS.min(ever.saturating_sub(2)), || {
            format!("{when}: only {counted} of {ever} are left")
        });
    }

    fn is(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.wrong.push(otherwise());
        }
    }

    fn now(&self) -> Timestamp {
        self.world.timeline.now()
    }

    fn path(&self, archive: &str) -> std::path::PathBuf {
        let name = archive.rsplit('/').next().unwrap_or_default();
        self.world.state().join("root/mnt/backup2/dump").join(name)
    }

    fn morning(&self) -> Morning {
        let kept: Vec<StoredRecords> = Book::of(&self.world.agent_folder()).backups;
        let archives = self.world.scene().archives;
        let named = |name: &str| name.replacen("backup2:", "backup2:backup/", 1);
        let there =
            archives.keys().filter(|name| name.contains("vzdump-lxc-300-")).map(|name| named(name)).collect();
        let scene = self.world.scene();
        let snapshot = |name: &String| Some(name.split_once("tank:300/")?.1.split_once('@')?.1.to_owned());
        Morning { kept, there, snapshots: scene.volumes.keys().filter_map(snapshot).collect() }
    }

    /// How many backups were ever taken by the policy.
    fn taken(&self) -> usize {
        let book = Book::of(&self.world.agent_folder());
        book.audit.iter().filter(|line| line.detail.starts_with("backup: the local backup of ")).count()
    }

    fn prove(&mut self, morning: &Morning) {
        let Some(kept) = morning.kept.last() else { return };
        crate::db_reader::prove(&self.world.agent_folder(), kept, self.now().as_microsecond());
        self.proved = Some(kept.archive.clone());
    }

    /// Lives to the morning of the day after this many days.
    async fn live(&self, days: i64) {
        let now = self.now().as_second();
        let morning = (now - now.rem_euclid(86_400)) + days * 86_400 + 5 * 3_600;
        self.live_until(Timestamp::from_second(morning).unwrap()).await;
    }

    async fn live_until(&self, until: Timestamp) {
        self.live_with(until, &[]).await;
    }

    async fn live_with(&self, until: Timestamp, leaps: &[(u64, i64)]) {
        let ports = self.world.agent(&Conductor::undisturbed()).await;
        goal(&ports.store, Clock::now(&self.world.box_clock)).await;
        let (view, _seen) = watch::channel(Arc::new(HostSnapshot::default()));
        let (_stopper, stop) = stop::pair();
        let reconcile = Reconcile {
            eye: self.world.eye(&ports),
            policy: self.world.kit.policy(),
            node: "pve1".parse().unwrap(),
            interval: ObserveInterval::Every(LOOK_EVERY),
            view,
            stop,
            ports,
        };
        let time = async {
            let mut passed = 0;
            for (minute, ahead_s) in leaps {
                tokio::time::sleep(Duration::from_secs(60 * (minute - passed))).await;
                self.world.box_clock.set_ahead_s(*ahead_s);
                passed = *minute;
            }
            let left = until.duration_since(self.now());
            tokio::time::sleep(Duration::try_from(left).unwrap_or_default()).await;
        };
        tokio::select! {
            biased;
            () = time => {}
            () = reconcile.run() => panic!("the loop ended by itself"),
        }
        self.world.settle().await;
    }
}

async fn goal(store: &Store, now: Timestamp) {
    let schedule = json!({ "at": ["02:30"], "zone": "UTC", "jitter_min": 20, "window_min": 90 });
    let local = json!({
        "target": "backup2", "schedule": schedule, "retention": { "keep": { "last": KEEPS } }, "consistency": "crash"
    });
    let twice = json!({ "at": ["03:00", "15:00"], "zone": "UTC", "jitter_min": 20, "window_min": 90 });
    let snapshot = json!({ "schedule": twice, "retention": { "keep": { "last": SNAPSHOTS } } });
    let tiers = json!({ "snapshot": snapshot, "local": local });
    let policies = serde_json::from_value(json!([{ "name": "nightly", "tiers": tiers }])).unwrap();
    let document = DesiredDocument {
        schema: DesiredSchema::V1,
        generation: Generation::new(1),
        poll_interval_s: 3_600.try_into().unwrap(),
        observe_interval_s: None,
        levels: None,
        overcommit: None,
        customer_limits: Vec::new(),
        alarm_after_s: None,
        policies,
        storage: Vec::new(),
        guests: vec![DesiredGuest { policy: Some("nightly".parse().unwrap()), ..guest(1) }],
    };
    assert_eq!(document.guests[0].uid, uid(1));
    store.offer_desired(Desired::check(document).unwrap(), now).await.unwrap();
}
