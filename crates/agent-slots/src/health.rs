//! The health of an agent, and the verdict on a build.
//!
//! In: what the agent reports of its parts at its admin socket, what systemd says of its unit, and clocks. Out: wait,
//! good, or failed with a reason. A silent hub alone is no verdict: it only makes the window longer.

use serde::{Deserialize, Serialize};

use crate::state::FailReason;

/// The longest text of a part; a longer one is cut.
pub const DETAIL_CHARS_MAX: usize = 300;

/// The state of one part of the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartState {
    /// It was seen to work, in this process, a short time ago.
    Works,
    /// It had no occasion yet.
    NotYet,
    /// It failed at its last occasion.
    Failed(String),
}

/// What an agent reports of itself. Everything but the hub is local.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentHealth {
    /// The version of the program that answers.
    pub version: String,
    /// Its journal was replayed, and its records can be read and written.
    pub records: PartState,
    /// Proxmox answered an observation.
    pub proxmox: PartState,
    /// A plan was made of an observation.
    pub plan: PartState,
    /// The helper answered.
    pub helper: PartState,
    /// The local API accepts connections.
    pub local_api: PartState,
    /// The hub answered a check-in.
    pub hub: PartState,
}

impl AgentHealth {
    /// The local parts, by name.
    #[must_use]
    pub fn local(&self) -> [(&'static str, &PartState); 5] {
        [
            ("records", &self.records),
            ("proxmox", &self.proxmox),
            ("plan", &self.plan),
            ("helper", &self.helper),
            ("local_api", &self.local_api),
        ]
    }

    /// The first local part that does not work, as text.
    #[must_use]
    pub fn ailment(&self) -> Option<String> {
        self.local().into_iter().find_map(|(part, state)| match state {
            PartState::Works => None,
            PartState::NotYet => Some(format!("{part}: not used yet")),
            PartState::Failed(why) => Some(format!("{part}: {why}")),
        })
    }
}

/// What the gate sees of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The right program runs and answered.
    Answered(AgentHealth),
    /// It does not answer, and why.
    Silent(String),
    /// Another program runs than the one that is watched.
    OtherProgram(String),
    /// A person stopped the unit.
    Stopped,
}

/// The times of a trial, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    window_s: u64,
    hub_wait_s: u64,
    deadline_s: u64,
}

impl Default for Rules {
    fn default() -> Self {
        Self { window_s: 120, hub_wait_s: 900, deadline_s: 1_800 }
    }
}

/// Why times make no trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RulesError {
    #[error("the health window has {0} seconds; 5 to 86400 are accepted")]
    Window(u64),
    #[error("the wait for a silent hub ({hub_wait_s} s) is shorter than the health window ({window_s} s)")]
    HubWait { hub_wait_s: u64, window_s: u64 },
    #[error(
        "the deadline ({deadline_s} s) is not above the wait for a silent hub ({hub_wait_s} s): no trial could pass \
         without the hub"
    )]
    Deadline { deadline_s: u64, hub_wait_s: u64 },
}

impl Rules {
    /// Takes the health window, the window without the hub, and the deadline.
    ///
    /// # Errors
    /// [`RulesError`].
    pub const fn new(window_s: u64, hub_wait_s: u64, deadline_s: u64) -> Result<Self, RulesError> {
        if window_s < 5 || window_s > 86_400 {
            return Err(RulesError::Window(window_s));
        }
        if hub_wait_s < window_s {
            return Err(RulesError::HubWait { hub_wait_s, window_s });
        }
        if deadline_s <= hub_wait_s || deadline_s > 7 * 86_400 {
            return Err(RulesError::Deadline { deadline_s, hub_wait_s });
        }
        Ok(Self { window_s, hub_wait_s, deadline_s })
    }
}

/// What a watch remembers between two looks. A new watch begins without it: it then takes a whole window again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// Since when all local parts work, in seconds of the boot.
    healthy_since: Option<u64>,
    /// What was wrong last.
    ailment: Option<String>,
}

/// The judgement of one look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Too early to say; what it waits for.
    Wait(String),
    /// It was healthy for the whole window.
    Good,
    /// It will not do.
    Bad(FailReason),
}

/// Judges one look, `elapsed_s` after the first start of this boot, at `now_s` seconds of the boot.
#[must_use]
pub fn judge(
    watch: &Watch,
    rules: Rules,
    evidence: &Evidence,
    elapsed_s: u64,
    now_s: u64,
) -> (Watch, Verdict) {
    let (ailment, hub) = match evidence {
        Evidence::Answered(health) => (health.ailment(), Some(&health.hub)),
        Evidence::Silent(why) => (Some(format!("the agent does not answer: {why}")), None),
        Evidence::OtherProgram(which) => (Some(format!("another program runs as the agent: {which}")), None),
        Evidence::Stopped => (Some("the agent is stopped".to_owned()), None),
    };
    let Some(ailment) = ailment else {
        let since = watch.healthy_since.unwrap_or(now_s).min(now_s);
        let (needed, what) = match hub {
            Some(PartState::Works) => (rules.window_s, "healthy"),
            Some(PartState::NotYet | PartState::Failed(_)) | None => {
                (rules.hub_wait_s, "healthy without the hub")
            }
        };
        let lasted = now_s.saturating_sub(since);
        let watch = Watch { healthy_since: Some(since), ailment: watch.ailment.clone() };
        if lasted >= needed {
            return (watch, Verdict::Good);
        }
        if elapsed_s >= rules.deadline_s {
            let before = watch.ailment.clone().unwrap_or_else(|| "it became healthy too late".to_owned());
            return (watch, bad(&before));
        }
        let wait = format!("{what} for {lasted} of {needed} seconds");
        return (watch, Verdict::Wait(wait));
    };
    let verdict = if elapsed_s >= rules.deadline_s { bad(&ailment) } else { Verdict::Wait(ailment.clone()) };
    (Watch { healthy_since: None, ailment: Some(ailment) }, verdict)
}

fn bad(detail: &str) -> Verdict {
    Verdict::Bad(FailReason::NotHealthy { detail: detail.chars().take(DETAIL_CHARS_MAX).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn health(hub: PartState) -> AgentHealth {
        let works = || PartState::Works;
        AgentHealth {
            version: "2026.12.1".to_owned(),
            records: works(),
            proxmox: works(),
            plan: works(),
            helper: works(),
            local_api: works(),
            hub,
        }
    }

    fn well() -> Evidence {
        Evidence::Answered(health(PartState::Works))
    }

    fn without_hub() -> Evidence {
        Evidence::Answered(health(PartState::Failed("connection refused".to_owned())))
    }

    fn ill() -> Evidence {
        let mut health = health(PartState::Works);
        health.proxmox = PartState::Failed("401".to_owned());
        Evidence::Answered(health)
    }

    /// Looks at these seconds; the last verdict.
    fn run(looks: &[(u64, Evidence)]) -> Verdict {
        let rules = Rules::new(10, 30, 100).unwrap();
        let mut watch = Watch::default();
        let mut last = Verdict::Good;
        for (at, evidence) in looks {
            // The boot was long before the first start.
            (watch, last) = judge(&watch, rules, evidence, *at, 5_000 + at);
        }
        last
    }

    fn waits(verdict: &Verdict) -> bool {
        matches!(verdict, Verdict::Wait(_))
    }

    #[test]
    fn a_window_of_health_is_good_and_a_break_begins_it_anew() {
        assert!(waits(&run(&[(1, well())])));
        assert!(waits(&run(&[(1, well()), (10, well())])));
        assert_eq!(run(&[(1, well()), (11, well())]), Verdict::Good);
        assert!(waits(&run(&[(1, well()), (8, ill()), (11, well())])));
        assert!(waits(&run(&[(1, well()), (8, Evidence::Silent("restarts".to_owned())), (17, well())])));
        assert_eq!(run(&[(1, well()), (8, ill()), (12, well()), (22, well())]), Verdict::Good);
    }

    #[test]
    fn a_silent_hub_is_waited_for_and_is_no_verdict() {
        assert!(waits(&run(&[(1, without_hub()), (11, without_hub())])));
        assert_eq!(run(&[(1, without_hub()), (11, without_hub()), (12, well())]), Verdict::Good);
        assert_eq!(run(&[(1, without_hub()), (31, without_hub())]), Verdict::Good);
    }

    #[test]
    fn what_is_not_healthy_at_the_deadline_failed() {
        let failed = |looks: &[(u64, Evidence)]| match run(looks) {
            Verdict::Bad(FailReason::NotHealthy { detail }) => detail,
            other => panic!("{other:?}"),
        };
        assert_eq!(failed(&[(99, ill()), (100, ill())]), "proxmox: 401");
        assert_eq!(failed(&[(100, Evidence::Stopped)]), "the agent is stopped");
        // Healthy a moment before the deadline, ill before that.
        assert_eq!(failed(&[(90, ill()), (95, well()), (100, well())]), "proxmox: 401");
        assert!(waits(&run(&[(99, ill())])));
        assert_eq!(run(&[(89, well()), (100, well())]), Verdict::Good);
    }

    #[test]
    fn every_local_part_counts() {
        let of = |change: &dyn Fn(&mut AgentHealth)| {
            let mut health = health(PartState::Works);
            change(&mut health);
            health.ailment()
        };
        assert_eq!(of(&|_| {}), None);
        assert_eq!(of(&|health| health.hub = PartState::NotYet), None);
        assert_eq!(of(&|health| health.records = PartState::NotYet).unwrap(), "records: not used yet");
        assert_eq!(of(&|health| health.plan = PartState::NotYet).unwrap(), "plan: not used yet");
        assert_eq!(of(&|health| health.helper = PartState::Failed("x".to_owned())).unwrap(), "helper: x");
        assert!(of(&|health| health.local_api = PartState::NotYet).is_some());
    }

    #[test]
    fn times_that_make_no_trial_are_refused() {
        assert!(matches!(Rules::new(4, 30, 100), Err(RulesError::Window(4))));
        assert!(matches!(Rules::new(10, 9, 100), Err(RulesError::HubWait { .. })));
        assert!(matches!(Rules::new(10, 30, 30), Err(RulesError::Deadline { .. })));
        let default = Rules::default();
        assert_eq!(Rules::new(default.window_s, default.hub_wait_s, default.deadline_s), Ok(default));
    }
}
