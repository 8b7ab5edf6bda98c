//! A fault of the script, and the notices that it is worth.

use super::player::Day;

/// Hears of everything.
pub const OPS: &str = "ops";
/// Hears of what is critical on a host.
pub const SECURITY: &str = "security";
/// Hears of the guests of one customer.
pub const ACME: &str = "acme";
/// Hears of the hub itself.
pub const PAGER: &str = "pager";

/// All receivers.
pub const RECEIVERS: [&str; 4] = [OPS, SECURITY, ACME, PAGER];

/// Of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    Begin,
    End,
}

/// Of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Firing,
    Over,
}

impl Phase {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Firing => "firing",
            Self::Over => "over",
        }
    }
}

/// Receivers of the first notice of a fault, and of the last.
pub type Hears = [&'static [&'static str]; 2];

/// One row of a script.
pub struct Fault {
    pub code: &'static str,
    /// About what, as a notice names it.
    pub of: &'static str,
    /// Who hears that it begins, and that it is over.
    pub to: Hears,
    /// The rounds in which it begins and ends, counted from 1.
    pub rounds: [u8; 2],
    /// What happens.
    pub why: &'static str,
    /// Does it, and ends it.
    pub act: fn(&mut Day, Moment),
}

/// What one receiver is sent of one fault.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    pub to: String,
    pub code: String,
    pub of: String,
    pub phase: Phase,
}

impl Fault {
    /// The round of a moment.
    pub const fn round(&self, moment: Moment) -> u8 {
        let [begins, ends] = self.rounds;
        match moment {
            Moment::Begin => begins,
            Moment::End => ends,
        }
    }

    /// Who hears of a moment.
    pub const fn receivers(&self, moment: Moment) -> &'static [&'static str] {
        let [begins, ends] = self.to;
        match moment {
            Moment::Begin => begins,
            Moment::End => ends,
        }
    }

    /// What is sent of it until the end of this round.
    pub fn lines(&self, round: u8) -> Vec<Line> {
        let moments = [(Moment::Begin, Phase::Firing), (Moment::End, Phase::Over)];
        let past = moments.into_iter().filter(|(moment, _)| self.round(*moment) <= round);
        let line = |phase| {
            move |to: &&str| Line {
                to: (*to).to_owned(),
                code: self.code.to_owned(),
                of: self.of.to_owned(),
                phase,
            }
        };
        past.flat_map(|(moment, phase)| self.receivers(moment).iter().map(line(phase))).collect()
    }
}

/// The last round of a script.
pub fn last_round(script: &[Fault]) -> u8 {
    script.iter().map(|fault| fault.round(Moment::End)).max().unwrap_or(0)
}

/// What is sent of a script until the end of a round, sorted.
pub fn lines(script: &[Fault], round: u8) -> Vec<Line> {
    let mut lines: Vec<Line> = script.iter().flat_map(|fault| fault.lines(round)).collect();
    lines.sort();
    lines
}
