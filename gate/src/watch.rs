//! The watch over a running build, until there is a verdict.
//!
//! In: the state, and the answers of the agent every two seconds, of a build on trial or of the one that was put back.
//! Out: the verdict, stored before anything is done by it; a restart of the agent after a verdict against a build, and
//! after its offer was withdrawn. It ends when nothing is watched. Killed, it is started again by
//! systemd, and takes a whole health window anew; the deadline goes on.

use std::path::PathBuf;

use agent_slots::health::{Evidence, Verdict, Watch, judge};
use agent_slots::machine::{Event, next};
use agent_slots::start::{Program, choose_settled};
use agent_slots::state::{FailReason, SlotsState};
use agent_slots::withdrawal::TrialWithdrawal;
use holdfast_protocol::json::chain;

use crate::failpoint::{self, Point};
use crate::settings::Settings;
use crate::start::program_path;
use crate::store::{Store, Stored};
use crate::{GateError, agent, clock, slots_folder, unit};

/// Watches until nothing is on trial.
pub fn run(settings: &Settings) -> Result<(), GateError> {
    let (mut watch, mut subject, mut line) = (Watch::default(), None, String::new());
    let (mut should_run, mut restarted) = (PathBuf::new(), false);
    loop {
        let Some(state) = read(settings)? else { return Ok(()) };
        if !state.is_watched() {
            return Ok(());
        }
        // After a way back it is another build that is watched.
        let now_watched = state.trial_build().cloned();
        if subject.as_ref() != Some(&now_watched) {
            (watch, subject) = (Watch::default(), Some(now_watched));
            should_run = program(settings, &state)?;
        }
        let evidence = agent::look(settings, &should_run);
        // A verdict was stored, and this program ended before it could restart the agent: there was no start since.
        let no_start = state.trial.is_none() && state.watched_since().is_none();
        if no_start && !restarted && evidence != Evidence::Stopped {
            restarted = true;
            unit::restart_agent(settings)?;
        }
        let now = clock::moment()?;
        // Before the first start of this boot no time has passed.
        let elapsed = state.watched_since().and_then(|began| now.since(began)).unwrap_or(0);
        // A build that is asked is on trial and runs: it can end its own trial and nothing else.
        let answered = matches!(evidence, Evidence::Answered(_));
        let withdrawal =
            (answered && state.trial.is_some()).then(|| agent::withdrawal(settings, &should_run));
        if let Some(withdrawal) = withdrawal.flatten() {
            restarted = true;
            conclude(settings, &state, Conclusion::Withdrawn(withdrawal), &evidence)?;
            std::thread::sleep(settings.look_every);
            continue;
        }
        let verdict;
        (watch, verdict) = judge(&watch, settings.rules, &evidence, elapsed, now.seconds);
        match verdict {
            Verdict::Wait(what) => {
                if what != line {
                    println!("waiting: {what}");
                    line = what;
                }
                std::thread::sleep(settings.look_every);
            }
            Verdict::Good => conclude(settings, &state, Conclusion::Good, &evidence)?,
            Verdict::Bad(reason) => {
                restarted = true;
                conclude(settings, &state, Conclusion::Bad(reason), &evidence)?;
            }
        }
    }
}

/// Ends the trial by a person's order.
pub fn end(settings: &Settings) -> Result<(), GateError> {
    let store = Store::lock(&settings.paths.slots)?;
    let state = match store.read()? {
        Stored::State(state) => *state,
        Stored::Absent | Stored::Damaged(_) => SlotsState::default(),
    };
    let ended = next(&state, Event::Failed { reason: FailReason::Ended, at: Some(clock::wall()) })?;
    store.write(&ended)?;
    drop(store);
    unit::restart_agent(settings)?;
    println!("the trial is ended; the build before it starts now, and is watched");
    Ok(())
}

fn read(settings: &Settings) -> Result<Option<SlotsState>, GateError> {
    match Store::lock(&settings.paths.slots)?.read()? {
        Stored::State(state) => Ok(Some(*state)),
        Stored::Absent | Stored::Damaged(_) => Ok(None),
    }
}

/// The program that should run now.
fn program(settings: &Settings, state: &SlotsState) -> Result<PathBuf, GateError> {
    if let Some(trial) = &state.trial {
        return Ok(program_path(settings, Program::InSlot(trial.slot)));
    }
    let store = Store::lock(&settings.paths.slots)?;
    let keys = settings.release_keys().ok();
    let (sound, _) = slots_folder::judge(store.folder(), state, keys.as_ref());
    let settled = choose_settled(state, settings.packaged, sound);
    Ok(program_path(settings, settled.unwrap_or(Program::Packaged)))
}

/// What a look came to.
enum Conclusion {
    Good,
    Bad(FailReason),
    /// The build on trial says that its offer was withdrawn.
    Withdrawn(TrialWithdrawal),
}

/// Stores a verdict and acts by it. Where it cannot be stored, it is found again at the next look.
fn conclude(
    settings: &Settings,
    watched: &SlotsState,
    conclusion: Conclusion,
    evidence: &Evidence,
) -> Result<(), GateError> {
    let store = Store::lock(&settings.paths.slots)?;
    let Stored::State(state) = store.read()? else { return Ok(()) };
    // A start may have changed what is watched since it was looked at.
    if state.trial_build() != watched.trial_build() {
        return Ok(());
    }
    let version = state.trial_build().map(|build| build.version.to_string());
    let at = Some(clock::wall());
    let event = match (conclusion, &state.trial) {
        (Conclusion::Good, Some(_)) => Event::Confirmed,
        (Conclusion::Good, None) => Event::BackHealthy,
        (Conclusion::Bad(reason), Some(_)) => Event::Failed { reason, at },
        (Conclusion::Bad(reason), None) => Event::BackFailed(reason),
        (Conclusion::Withdrawn(TrialWithdrawal { manifest, reason }), _) => {
            Event::Withdrawn { manifest, reason, at }
        }
    };
    let taken_back = matches!(event, Event::Failed { .. } | Event::Withdrawn { .. });
    let restart = taken_back && *evidence != Evidence::Stopped;
    let text = match (&event, version) {
        (Event::Confirmed, Some(version)) => {
            format!("version {version} is confirmed: it is the floor from now on")
        }
        (Event::Failed { reason, .. }, Some(version)) => {
            format!("version {version} failed and is taken back: {reason}")
        }
        (Event::Withdrawn { reason, .. }, Some(version)) => {
            format!(
                "the trial of version {version} is ended, since its offer was withdrawn: {}",
                reason.as_str()
            )
        }
        (Event::BackFailed(reason), _) => {
            format!("the build that was put back is not healthy either: {reason}")
        }
        (_, _) => "the build that was put back is healthy".to_owned(),
    };
    let Ok(concluded) = next(&state, event) else { return Ok(()) };
    if let Err(error) = store.write(&concluded) {
        eprintln!("a verdict could not be stored, and is given again: {}", chain(&error));
        std::thread::sleep(settings.look_every);
        return Ok(());
    }
    failpoint::at(settings, Point::VerdictStored);
    drop(store);
    println!("{text}");
    if restart {
        unit::restart_agent(settings)?;
    }
    Ok(())
}
