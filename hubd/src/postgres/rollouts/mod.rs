//! Rollouts of releases.
//!
//! | module | contents |
//! | --- | --- |
//! | [`guest_agents`] | the guest agent of a release, asked for in documents |
//! | [`images`] | the golden image of a release, on hosts and offered to them |
//! | [`offers`] | who is newly offered a release, and what a host is offered |
//! | [`rows`] | reading a rollout with its hosts, writing its stage |
//! | [`scope`] | rollouts with hosts of a scope |

mod guest_agents;
mod images;
mod offers;
mod rows;
mod scope;

use std::convert::Infallible;

use async_trait::async_trait;
use holdfast_protocol::access::AccessScope;
use holdfast_protocol::id::CorrelationId;
use holdfast_protocol::release::VersionNumber;
use holdfast_protocol::release::rollout::{OnFailure, RolloutRequest, RolloutSubject, RolloutView};
use jiff::Timestamp;

pub(super) use self::images::offered_image;
use self::offers::offer;
pub(super) use self::offers::{offered_versions, withdrawn_by_rollout};
pub(super) use self::rows::held_rollout;
use self::rows::{KeptRollout, all, hosts_to_plan, one, save, subject_text, unfinished};
use super::alerts::json;
use super::columns::Time;
use super::events::emit;
use super::sql::{self, Connection, Error, params};
use super::writer::Tx;
use super::{Failed, Postgres};
use crate::domain::event::{EventKind, NewEvent};
use crate::domain::rollout::action::{Action, ActionError, accepted_by_resuming, act};
use crate::domain::rollout::narrow::narrowed;
use crate::domain::rollout::next::{Decision, apply, next_unless};
use crate::domain::rollout::plan::plan;
use crate::domain::rollout::rate::newly_offered;
use crate::domain::rollout::{Rollout, view};
use crate::store::{
    By, PlanRolloutError, ROLLOUT_DECISIONS_MAX, ROLLOUTS_MAX, Rollouts, StoreError, Term, WriteError, duty,
};

fn shown(kept: &KeptRollout, now: Timestamp) -> RolloutView {
    let stage = &kept.rollout.stage;
    let mut waves = view::waves(&kept.rollout, &kept.hosts, now);
    for (wave, selects) in waves.iter_mut().zip(&kept.selects) {
        wave.selects.clone_from(selects);
    }
    RolloutView {
        number: kept.number,
        version: kept.version,
        subject: kept.subject,
        state: stage.state(),
        reason: kept.reason().map(str::to_owned),
        by: kept.by.clone(),
        at: kept.at,
        times: kept.times.clone(),
        on_failure: kept.rollout.on_failure,
        open: view::open_view(stage),
        next_wave_at: view::next_wave_at(&kept.rollout),
        waves,
    }
}

fn show(connection: &Connection, number: u32, now: Timestamp) -> sql::Result<Option<RolloutView>> {
    Ok(one(connection, number, now)?.map(|kept| shown(&kept, now)))
}

fn event(by: &By, message: String) -> NewEvent {
    let (actor, correlation) = (Some(by.operator.clone()), by.correlation);
    NewEvent { at: by.at, kind: EventKind::RolloutChanged, host: None, actor, correlation, message }
}

fn require_release(tx: &Tx<'_>, version: VersionNumber) -> Result<(), Failed<PlanRolloutError>> {
    let sql = "SELECT 1 FROM releases WHERE version = $1";
    if tx.prepare_cached(sql)?.exists([version.to_string()])? {
        Ok(())
    } else {
        Err(Failed::Refused(PlanRolloutError::NoRelease { version }))
    }
}

/// The release to go back to, where one is asked for.
fn fallback(
    tx: &Tx<'_>,
    request: &RolloutRequest,
) -> Result<Option<VersionNumber>, Failed<PlanRolloutError>> {
    let OnFailure::RollBack(to) = request.on_failure else { return Ok(None) };
    match request.subject {
        RolloutSubject::Agent => {}
        RolloutSubject::GuestAgent => return Err(Failed::Refused(PlanRolloutError::GuestAgentsGoBack)),
        RolloutSubject::Golden => return Err(Failed::Refused(PlanRolloutError::ImagesGoBack)),
    }
    if to <= request.version {
        return Err(Failed::Refused(PlanRolloutError::OlderFallback { version: request.version, to }));
    }
    require_release(tx, to)?;
    Ok(Some(to))
}

fn add(tx: &Tx<'_>, by: &By, request: &RolloutRequest) -> Result<u32, Failed<PlanRolloutError>> {
    let version = request.version;
    let refused = |error: PlanRolloutError| Failed::Refused(error);
    require_release(tx, version)?;
    let fallback = fallback(tx, request)?.map(|to| to.to_string());
    if let Some(number) = unfinished(tx)? {
        return Err(refused(PlanRolloutError::Unfinished { number }));
    }
    let waves = plan(&request.waves, &hosts_to_plan(tx)?).map_err(|error| refused(error.into()))?;
    let sql = "INSERT INTO rollouts (version, state, operator, at, times, fallback, subject)
               VALUES ($1, 'planned', $2, $3, $4, $5, $6)";
    let times = json(&request.times)?;
    tx.prepare_cached(sql)?.execute(params![
        version.to_string(),
        by.operator.as_str(),
        Time(by.at),
        times,
        fallback,
        subject_text(request.subject)
    ])?;
    let number: u32 = tx.query_row("SELECT max(number) FROM rollouts", [], |row| row.get(0))?;
    let wave_sql = "INSERT INTO rollout_waves (rollout, wave, max_failures, soak_s, timeout_s, selects)
                    VALUES ($1, $2, $3, $4, $5, $6)";
    let host_sql = "INSERT INTO rollout_hosts (rollout, wave, host) SELECT $1::bigint, $2::bigint, number FROM hosts WHERE id = $3";
    for ((index, wave), asked) in (0_u32..).zip(&waves).zip(&request.waves) {
        let (soak, timeout) = (wave.limits.soak.as_secs(), wave.limits.timeout.as_secs());
        tx.prepare_cached(wave_sql)?.execute(params![
            number,
            index,
            wave.limits.max_failures,
            soak,
            timeout,
            json(&asked.hosts)?
        ])?;
        for host in &wave.hosts {
            tx.prepare_cached(host_sql)?.execute(params![number, index, super::columns::Id(host.uuid())])?;
        }
    }
    let sql = "DELETE FROM rollouts WHERE number <= $1";
    tx.prepare_cached(sql)?.execute([i64::from(number) - i64::from(ROLLOUTS_MAX)])?;
    emit(tx, &event(by, format!("rollout {number} of release {version} was planned")))?;
    Ok(number)
}

fn carry_out(tx: &Tx<'_>, by: &By, kept: &KeptRollout, action: Action) -> Result<(), Failed<ActionError>> {
    let stage = act(&kept.rollout.stage, action, by.at).map_err(Failed::Refused)?;
    let accepted = match action {
        Action::Resume => accepted_by_resuming(&kept.rollout, &kept.hosts),
        Action::Start | Action::Pause | Action::TakeBack | Action::Abort => Vec::new(),
    };
    for host in &accepted {
        let sql = "UPDATE rollout_hosts SET accepted = 1
                   WHERE rollout = $1 AND host = (SELECT number FROM hosts WHERE id = $2)";
        tx.prepare_cached(sql)?.execute(params![kept.number, super::columns::Id(host.uuid())])?;
    }
    save(tx, kept.number, &stage)?;
    let takes_back = i64::from(action == Action::TakeBack);
    let sql = "UPDATE rollouts SET takes_back = $2 WHERE number = $1";
    tx.prepare_cached(sql)?.execute(params![kept.number, takes_back])?;
    let after = Rollout { stage: stage.clone(), ..kept.rollout.clone() };
    offer(tx, kept, &newly_offered(&after, &kept.hosts, by.at), (by.at, by.correlation))?;
    let without = match accepted.len() {
        0 => String::new(),
        count => format!("; {count} hosts that failed are accepted"),
    };
    let trials = if action == Action::TakeBack { ", and trials of it are taken back" } else { "" };
    let says = format!(
        "rollout {} of release {} is {}{without}{trials}",
        kept.number,
        kept.version,
        rows::state_text(stage.state())
    );
    emit(tx, &event(by, says))?;
    Ok(())
}

/// Repeats the question until nothing changes.
fn evaluate(tx: &Tx<'_>, number: u32, now: Timestamp, correlation: CorrelationId) -> sql::Result<()> {
    let Some(mut kept) = one(tx, number, now)? else { return Ok(()) };
    rows::keep_reports(tx, &kept)?;
    let before = kept.rollout.stage.clone();
    for _ in 0..ROLLOUT_DECISIONS_MAX {
        let decision = next_unless(kept.objection.as_deref(), &kept.rollout, &kept.hosts, now);
        let (version, wave) =
            (kept.version, view::open_view(&kept.rollout.stage).map_or(0, |open| open.number));
        let says = match &decision {
            Decision::Stay => break,
            Decision::Settle | Decision::Unsettle => None,
            Decision::Advance => {
                let open = wave.saturating_add(1);
                Some((
                    EventKind::RolloutChanged,
                    format!("rollout {number} of release {version} opened wave {open}"),
                ))
            }
            Decision::Hold(reason) => Some((
                EventKind::RolloutHeld,
                format!("rollout {number} of release {version} is held: {reason}"),
            )),
            Decision::RollBack { reason, to } => Some((
                EventKind::RolloutHeld,
                format!("rollout {number} of release {version} is held, and hosts go back to {to}: {reason}"),
            )),
            Decision::Finish => Some((
                EventKind::RolloutChanged,
                format!("rollout {number} of release {version} is finished"),
            )),
        };
        if let Some((kind, message)) = says {
            emit(tx, &NewEvent { at: now, kind, host: None, actor: None, correlation, message })?;
        }
        kept.rollout.stage = apply(kept.rollout.stage, decision, now);
    }
    if kept.rollout.stage != before {
        save(tx, number, &kept.rollout.stage)?;
    }
    // In the transaction in which a wave is opened, so that no host is offered the release twice.
    offer(tx, &kept, &newly_offered(&kept.rollout, &kept.hosts, now), (now, correlation))
}

#[async_trait]
impl Rollouts for Postgres {
    async fn plan_rollout(
        &self,
        by: By,
        request: RolloutRequest,
    ) -> Result<RolloutView, WriteError<PlanRolloutError>> {
        self.mutate("plan a rollout", by, move |tx, by| {
            let number = add(tx, by, &request)?;
            Ok(show(tx, number, by.at)?.ok_or(Error::NoRow)?)
        })
        .await
    }

    async fn rollouts_within(
        &self,
        scope: AccessScope,
        now: Timestamp,
    ) -> Result<Vec<RolloutView>, StoreError> {
        self.read("list rollouts", move |connection| {
            if scope.is_everything() {
                return Ok(all(connection, now)?.iter().map(|kept| shown(kept, now)).collect());
            }
            let mut views = Vec::new();
            for (number, inside) in scope::rollouts(connection, &scope, None)? {
                views.extend(show(connection, number, now)?.and_then(|view| narrowed(view, &inside)));
            }
            Ok(views)
        })
        .await
    }

    async fn rollout_within(
        &self,
        scope: AccessScope,
        number: u32,
        now: Timestamp,
    ) -> Result<Option<RolloutView>, StoreError> {
        self.read("read a rollout", move |connection| {
            if scope.is_everything() {
                return show(connection, number, now);
            }
            let Some((_, inside)) = scope::rollouts(connection, &scope, Some(number))?.pop() else {
                return Ok(None);
            };
            Ok(show(connection, number, now)?.and_then(|view| narrowed(view, &inside)))
        })
        .await
    }

    async fn act_on_rollout(
        &self,
        by: By,
        number: u32,
        action: Action,
    ) -> Result<Option<RolloutView>, WriteError<ActionError>> {
        self.mutate("change a rollout", by, move |tx, by| {
            let Some(kept) = one(tx, number, by.at)? else { return Ok(None) };
            carry_out(tx, by, &kept, action)?;
            Ok(show(tx, number, by.at)?)
        })
        .await
    }

    async fn evaluate_rollouts(
        &self,
        term: &Term<duty::Rollouts>,
        now: Timestamp,
        correlation: CorrelationId,
    ) -> Result<(), StoreError> {
        // Mostly there is none, and then nothing is written.
        let watched = self.read("look for a rollout", rows::watched).await?;
        let Some((number, _)) = watched else { return Ok(()) };
        let done = self.write_fenced(term.fence(), "evaluate a rollout", move |tx| {
            Ok::<_, Failed<Infallible>>(evaluate(tx, number, now, correlation)?)
        });
        done.await.map_err(StoreError::from)
    }
}
