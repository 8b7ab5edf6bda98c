//! The next step of a token's renewal, decided from the present state.
//!
//! Input: which of the two names the credential file has, which of them exist in Proxmox, and whether the token is due.
//! Output: one step. Pure. Each step leaves a state that leads on, so a run that was cut off is taken up by the next one.
//!
//! ```text
//! in Proxmox           in the file   next step
//! lasting              lasting       rest; when due, make the stand-in and use it
//! lasting, stand-in    stand-in      remove the lasting one
//! stand-in             stand-in      make the lasting one anew and use it
//! lasting, stand-in    lasting       remove the stand-in
//! ```
//! Deliberately absent: who proves a token, and when one may be removed (`perform`).

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// The name that the settings have.
    Lasting,
    /// The one that stands in while the lasting one is made anew.
    StandIn,
}

/// Whether a token exists in Proxmox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    There,
    Absent,
}

/// Whether a renewal is to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    Due,
    NotYet,
}

/// The present state of one role's token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Situation {
    /// The token in the credential file.
    pub in_use: Name,
    pub lasting: Presence,
    pub stand_in: Presence,
    pub turn: Turn,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing: the lasting token is in use, alone, and young enough.
    Rest,
    /// Make this one next to the one in use, and put it into use.
    Make(Name),
    /// Remove this one, which is not in use any more, or never was.
    Remove(Name),
}

/// The credential file names a token that Proxmox does not have: no renewal mends that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown;

/// The next step.
pub const fn next(now: Situation) -> Result<Step, Unknown> {
    match (now.in_use, now.lasting, now.stand_in) {
        (Name::Lasting, Presence::Absent, _) | (Name::StandIn, _, Presence::Absent) => Err(Unknown),
        // A stand-in that is not in use did its duty, or its secret was lost before it was written down.
        (Name::Lasting, Presence::There, Presence::There) => Ok(Step::Remove(Name::StandIn)),
        (Name::Lasting, Presence::There, Presence::Absent) => Ok(match now.turn {
            Turn::Due => Step::Make(Name::StandIn),
            Turn::NotYet => Step::Rest,
        }),
        // The old one, or a new one whose secret was lost before it was written down.
        (Name::StandIn, Presence::There, Presence::There) => Ok(Step::Remove(Name::Lasting)),
        (Name::StandIn, Presence::Absent, Presence::There) => Ok(Step::Make(Name::Lasting)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Presence; 2] = [Presence::There, Presence::Absent];

    fn at(in_use: Name, lasting: Presence, stand_in: Presence, turn: Turn) -> Situation {
        Situation { in_use, lasting, stand_in, turn }
    }

    /// What a whole step leaves, and what it leaves when its process dies before the file is written.
    fn after(now: Situation, step: Step) -> Vec<Situation> {
        let there = |name, presence| match name {
            Name::Lasting => Situation { lasting: presence, ..now },
            Name::StandIn => Situation { stand_in: presence, ..now },
        };
        match step {
            Step::Rest => Vec::new(),
            Step::Remove(name) => vec![there(name, Presence::Absent)],
            Step::Make(name) => {
                let turn = if name == Name::Lasting { Turn::NotYet } else { now.turn };
                vec![
                    Situation { in_use: name, turn, ..there(name, Presence::There) },
                    there(name, Presence::There),
                ]
            }
        }
    }

    #[test]
    fn each_state_that_has_the_token_in_use_leads_to_rest_whatever_is_cut_off_once() {
        for in_use in [Name::Lasting, Name::StandIn] {
            for (lasting, stand_in) in BOTH.into_iter().flat_map(|one| BOTH.map(|other| (one, other))) {
                for turn in [Turn::Due, Turn::NotYet] {
                    walk(at(in_use, lasting, stand_in, turn), 1);
                }
            }
        }
    }

    /// Follows all ways on; `cuts` of them may be cut off.
    fn walk(now: Situation, cuts: usize) {
        let used = if now.in_use == Name::Lasting { now.lasting } else { now.stand_in };
        let Ok(step) = next(now) else { return assert_eq!(used, Presence::Absent) };
        assert_eq!(used, Presence::There, "what is in use exists");
        let removed = if step == Step::Remove(now.in_use) { Presence::Absent } else { Presence::There };
        assert_eq!(removed, Presence::There, "what is in use is never removed: {now:?}");
        let ways = after(now, step);
        for (number, then) in ways.into_iter().enumerate() {
            if number <= cuts {
                walk(then, cuts - number);
            }
        }
    }

    #[test]
    fn a_young_token_alone_is_left_alone() {
        assert_eq!(next(at(Name::Lasting, Presence::There, Presence::Absent, Turn::NotYet)), Ok(Step::Rest));
        assert_eq!(next(at(Name::Lasting, Presence::Absent, Presence::Absent, Turn::Due)), Err(Unknown));
    }
}
