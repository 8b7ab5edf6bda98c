//! Plays a script of faults, with kills, and compares what was heard.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use e2e::wait;
use serde_json::Value;

use super::super::stand::{self, Stand};
use super::arrival::{Arrival, Receivers};
use super::fault::{Fault, Line, Moment, last_round, lines};
use super::hands::calm;
use super::settings::{self, HubBackup};
use super::table;

/// The longest wait for the notices of a round: a minute until something is read again, the alarm, a tick, a group's wait.
const ROUND: Duration = Duration::from_secs(150);

/// The agent's minute, in seconds: one list of Proxmox falls into it.
const USAGE_S: &str = "10";

/// The programs of one day, and who hears of their faults.
pub struct Day {
    pub stand: Stand,
    pub receivers: Receivers,
    begun: Instant,
    /// Numbers that choose kills.
    chance: u64,
}

impl Day {
    /// Simulator, hub and an enrolled agent that does not run yet. `number` makes the kills of each day others.
    pub fn begin(number: u64, backup: HubBackup) -> Self {
        let stand = stand::laid();
        let receivers = Receivers::new();
        let folder = stand.stage.folder();
        stand.stage.write_hub_settings(&settings::hub(&receivers, backup, folder)).unwrap();
        let mut stand = stand::enrol(stand);
        calm(&stand);
        let hardware = stand.stage.folder().join("hardware");
        stand.stage.set_for_agent("HOLDFAST_HARDWARE", hardware);
        stand.stage.set_for_agent("HOLDFAST_USAGE_S", USAGE_S);
        let turn: u64 = std::env::var("HOLDFAST_CI_TURN").map_or(1, |text| text.parse().unwrap());
        println!("kills of turn {turn}; again: HOLDFAST_CI_TURN={turn} cargo xtask e2e alert_day");
        let chance = turn.wrapping_mul(8).wrapping_add(2 * number) | 1;
        Self { stand, receivers, begun: Instant::now(), chance }
    }

    /// Where the agent reads its host's disks, sensors and memory.
    pub fn hardware(&self) -> PathBuf {
        self.stand.stage.folder().join("hardware")
    }

    /// A number below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        usize::try_from(self.chance % u64::try_from(bound).unwrap()).unwrap()
    }

    /// All rounds. At the end nothing fires any more, and the whole list is as the script says.
    pub fn plays(mut self, script: &[Fault]) {
        for round in 1..=last_round(script) {
            println!("round {round}, from {} s on", self.begun.elapsed().as_secs());
            for moment in [Moment::End, Moment::Begin] {
                for fault in script.iter().filter(|fault| fault.round(moment) == round) {
                    (fault.act)(&mut self, moment);
                }
            }
            self.kills(script, round);
            self.hears(&lines(script, round));
        }
        self.rests();
        let heard = self.heard();
        table::print(&heard, script);
        table::verdict(&heard, &lines(script, last_round(script)));
    }

    /// Kills one of the programs, both or none: at once, or when the hub has one of the round's alerts.
    fn kills(&mut self, script: &[Fault], round: u8) {
        let which = self.below(4);
        let begins: Vec<&Fault> = script.iter().filter(|fault| fault.round(Moment::Begin) == round).collect();
        // One more than there are: at once.
        let nth = self.below(begins.len() + 1);
        let awaited = begins.get(nth).copied();
        if let Some(fault) = awaited {
            self.awaits(fault);
        }
        let has_agent = self.stand.stage.agent_pid().is_some();
        if which & 1 == 1 {
            self.kill_hub();
        }
        if which & 2 == 2 && has_agent {
            self.stand.stage.kill_agent().unwrap();
            self.stand.stage.start_agent(None).unwrap();
        }
        let killed = match (which, has_agent) {
            (1, _) | (3, false) => "the hub",
            (2, true) => "the agent",
            (3, true) => "the hub and the agent",
            _ => "nothing",
        };
        let when =
            awaited.map_or_else(|| "at once".to_owned(), |fault| format!("as the hub had {}", fault.code));
        println!("killed: {killed}, {when}, at {} s", self.begun.elapsed().as_secs());
    }

    /// Waits until the hub has an alert, which may wait for its grace yet.
    fn awaits(&self, fault: &Fault) {
        let has = |alert: &Value| alert["code"] == fault.code && alert["phase"] != "resolved";
        let came = wait::until(fault.code, ROUND, || {
            Ok(self.alerts(&["alert", "list", "--all"]).iter().any(has).then_some(()))
        });
        self.or_fails(came, &[]);
    }

    fn alerts(&self, words: &[&str]) -> Vec<Value> {
        let list = self.stand.stage.holdfast(words).unwrap();
        list.get("items").unwrap_or(&list).as_array().cloned().unwrap_or_default()
    }

    /// `kill -9`, and a new start. A hub looks at its own rows when it starts, and then each minute.
    pub fn kill_hub(&mut self) {
        self.stand.stage.kill_hub().unwrap();
        self.stand.stage.start_hub_again().unwrap();
    }

    pub fn heard(&self) -> Vec<Arrival> {
        self.receivers.heard(self.begun)
    }

    /// Waits until all these lines came.
    pub fn hears(&self, expected: &[Line]) {
        let came = wait::until("all notices of the round", ROUND, || {
            Ok(table::missing(&self.heard(), expected).is_empty().then_some(()))
        });
        self.or_fails(came, expected);
    }

    /// Waits until the hub has nothing more to say.
    fn rests(&self) {
        let came = wait::until("nothing fires", ROUND, || {
            Ok(self.alerts(&["alert", "list"]).is_empty().then_some(()))
        });
        self.or_fails(came, &[]);
    }

    fn or_fails(&self, came: anyhow::Result<()>, expected: &[Line]) {
        if let Err(error) = came {
            let heard = self.heard();
            table::print(&heard, &[]);
            let alerts = self.alerts(&["alert", "list", "--all"]);
            let open = alerts
                .iter()
                .map(|alert| format!("{} {} {}", alert["code"], alert["subject"], alert["phase"]));
            let open = open.collect::<Vec<_>>().join("\n");
            panic!("{error}; missing: {:#?}\nat the hub:\n{open}", table::missing(&heard, expected));
        }
    }
}
