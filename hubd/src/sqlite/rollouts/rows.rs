//! Rows of rollouts, of their waves and of their hosts.

use std::collections::BTreeMap;
use std::str::FromStr as _;
use std::sync::Arc;

use holdfast_protocol::condition::ConditionSet;
use holdfast_protocol::id::{HostId, HostName, OperatorName};
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::release::rollout::{OnFailure, RolloutState, RolloutSubject, RolloutTimes, WaveHosts};
use holdfast_protocol::release::window::UpdateWindows;
use holdfast_protocol::release::{ReleaseFileKind, VersionNumber};
use holdfast_protocol::report::{AgentSection, GoldenReport};
use jiff::{SignedDuration, Timestamp};
use rusqlite::types::FromSqlError;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::de::DeserializeOwned;

use crate::domain::alerting::own::HeldRollout;
use crate::domain::rollout::guest_agent::{self, DocumentRequest, GuestsReport};
use crate::domain::rollout::image::{self, ImageReport, Presence};
use crate::domain::rollout::plan::Candidate;
use crate::domain::rollout::progress::{Contact, HostReport, Progress, Target, progress, taken_at};
use crate::domain::rollout::times::AllowedTimes;
use crate::domain::rollout::view::open_wave;
use crate::domain::rollout::{Failures, HostFacts, OpenWave, Rollout, Stage, WaveLimits};
use crate::sqlite::alerts::{HostImages, Json, compared_builds};
use crate::sqlite::columns::{Id, Number, Text, Time, digest, text};
use crate::sqlite::writer::Tx;

/// A rollout as it is kept.
pub(super) struct KeptRollout {
    pub number: u32,
    pub version: VersionNumber,
    pub subject: RolloutSubject,
    pub by: OperatorName,
    pub at: Timestamp,
    pub rollout: Rollout,
    pub times: RolloutTimes,
    /// What selects the hosts of each wave, where that is kept.
    pub selects: Vec<Option<WaveHosts>>,
    pub hosts: Vec<HostFacts>,
    /// What speaks against it, whatever its hosts report.
    pub objection: Option<String>,
    /// Starts of agents that are not kept yet.
    taken: Vec<(HostId, Timestamp)>,
    /// Reasons of failures that are not kept yet.
    failed: Vec<(HostId, String)>,
}

impl KeptRollout {
    /// Why it is held.
    pub fn reason(&self) -> Option<&str> {
        match &self.rollout.stage {
            Stage::Held { reason, .. } | Stage::RollingBack { reason, .. } => Some(reason),
            Stage::Planned | Stage::Running(_) | Stage::Paused(_) | Stage::Aborted(_) | Stage::Finished => {
                None
            }
        }
    }
}

pub(super) const fn state_text(state: RolloutState) -> &'static str {
    match state {
        RolloutState::Planned => "planned",
        RolloutState::Running => "running",
        RolloutState::Paused => "paused",
        // What it goes back to is in a column of its own.
        RolloutState::Held | RolloutState::RollingBack => "held",
        RolloutState::Aborted => "aborted",
        RolloutState::Finished => "finished",
    }
}

const COLUMNS: &str =
    "number, version, state, reason, wave, opened_at, settled_at, held_at, operator, at, times,
    fallback, rolls_back, subject";

pub(super) fn version(row: &Row<'_>) -> rusqlite::Result<VersionNumber> {
    text(row, "version", |text| VersionNumber::from_str(&text))
}

pub(super) const fn subject_text(subject: RolloutSubject) -> &'static str {
    match subject {
        RolloutSubject::Agent => "agent",
        RolloutSubject::GuestAgent => "guest_agent",
        RolloutSubject::Golden => "golden",
    }
}

/// The table's check allows no other.
fn subject(row: &Row<'_>) -> rusqlite::Result<RolloutSubject> {
    match row.get::<_, String>("subject")?.as_str() {
        "agent" => Ok(RolloutSubject::Agent),
        "guest_agent" => Ok(RolloutSubject::GuestAgent),
        "golden" => Ok(RolloutSubject::Golden),
        _ => Err(FromSqlError::Other("a rollout of something unknown".into()).into()),
    }
}

/// The release to go back to.
fn fallback(row: &Row<'_>) -> rusqlite::Result<Option<VersionNumber>> {
    if row.get::<_, Option<String>>("fallback")?.is_none() {
        return Ok(None);
    }
    text(row, "fallback", |text| VersionNumber::from_str(&text)).map(Some)
}

/// The table's checks allow no other rows.
pub(super) fn stage(row: &Row<'_>) -> rusqlite::Result<Stage> {
    let (state, wave): (String, Option<u32>) = (row.get("state")?, row.get("wave")?);
    let open = match (wave, row.get::<_, Option<Time>>("opened_at")?) {
        (Some(index), Some(Time(opened_at))) => {
            let index = index as usize;
            let settled_at = row.get::<_, Option<Time>>("settled_at")?.map(|time| time.0);
            Some(OpenWave { index, opened_at, settled_at })
        }
        (Some(_) | None, _) => None,
    };
    let damaged = || rusqlite::Error::from(FromSqlError::Other("a rollout without its wave".into()));
    match state.as_str() {
        "planned" => Ok(Stage::Planned),
        "running" => open.map(Stage::Running).ok_or_else(damaged),
        "paused" => open.map(Stage::Paused).ok_or_else(damaged),
        "held" => {
            let reason = row.get::<_, Option<String>>("reason")?.unwrap_or_default();
            let at = row.get::<_, Option<Time>>("held_at")?.ok_or_else(damaged)?.0;
            let open = open.ok_or_else(damaged)?;
            let rolls_back: bool = row.get("rolls_back")?;
            match fallback(row)?.filter(|_| rolls_back) {
                Some(to) => Ok(Stage::RollingBack { open, reason, at, to }),
                None => Ok(Stage::Held { open, reason, at }),
            }
        }
        "aborted" => Ok(Stage::Aborted(open)),
        "finished" => Ok(Stage::Finished),
        _ => Err(damaged()),
    }
}

pub(super) fn json_or_default<T: DeserializeOwned + Default>(
    row: &Row<'_>,
    column: &str,
) -> rusqlite::Result<T> {
    Ok(row.get::<_, Option<Json<T>>>(column)?.map(|json| json.0).unwrap_or_default())
}

fn read(row: &Row<'_>) -> rusqlite::Result<KeptRollout> {
    let times: RolloutTimes = json_or_default(row, "times")?;
    Ok(KeptRollout {
        number: row.get("number")?,
        version: version(row)?,
        subject: subject(row)?,
        by: row.get::<_, Text<_>>("operator")?.0,
        at: row.get::<_, Time>("at")?.0,
        rollout: Rollout {
            stage: stage(row)?,
            waves: Vec::new(),
            per_hour: times.per_hour,
            on_failure: fallback(row)?.map_or(OnFailure::Hold, OnFailure::RollBack),
        },
        times,
        selects: Vec::new(),
        hosts: Vec::new(),
        objection: None,
        taken: Vec::new(),
        failed: Vec::new(),
    })
}

type KeptWave = (WaveLimits, Option<WaveHosts>);

fn waves(connection: &Connection, number: u32) -> rusqlite::Result<Vec<KeptWave>> {
    let sql =
        "SELECT max_failures, soak_s, timeout_s, selects FROM rollout_waves WHERE rollout = ?1 ORDER BY wave";
    let read = |row: &Row<'_>| {
        let seconds = |index| Ok::<_, rusqlite::Error>(SignedDuration::from_secs(row.get::<_, i64>(index)?));
        let limits = WaveLimits { max_failures: row.get(0)?, soak: seconds(1)?, timeout: seconds(2)? };
        Ok((limits, row.get::<_, Option<Json<WaveHosts>>>(3)?.map(|json| json.0)))
    };
    connection.prepare_cached(sql)?.query_map([number], read)?.collect()
}

fn target(connection: &Connection, version: VersionNumber) -> rusqlite::Result<Target> {
    let sql = "SELECT manifest_sha256 FROM releases WHERE version = ?1";
    let found = connection
        .prepare_cached(sql)?
        .query_row([version.to_string()], |row| digest(row, "manifest_sha256"));
    Ok(Target { version, manifest: found.optional()? })
}

/// The one image of a release.
pub(super) fn digest_of(
    connection: &Connection,
    version: VersionNumber,
) -> rusqlite::Result<Option<Sha256Text>> {
    let sql = "SELECT sha256 FROM release_files WHERE version = ?1 AND kind = ?2";
    let mut select = connection.prepare_cached(sql)?;
    let values = params![version.to_string(), ReleaseFileKind::Golden.as_str()];
    let found =
        select.query_map(values, |row| digest(row, "sha256"))?.collect::<rusqlite::Result<Vec<_>>>()?;
    let [sha256] = found.as_slice() else { return Ok(None) };
    Ok(Some(sha256.clone()))
}

/// The images that a host reports. A section that this program cannot read is shown as damaged where the host is shown.
pub(super) fn reported_images(row: &Row<'_>) -> rusqlite::Result<Vec<GoldenReport>> {
    let text: Option<String> = row.get("host_text")?;
    let section = text.and_then(|text| serde_json::from_str::<HostImages>(&text).ok());
    Ok(section.unwrap_or_default().goldens)
}

const HOSTS: &str = "SELECT hosts.id AS id, hosts.name AS name, hosts.status AS status, hosts.liveness AS liveness,
        rollout_hosts.wave AS wave, taken_at, accepted, offered_at, failed_why, hosts.held AS held, asked_generation,
        asked_refused, reports.guests AS guests, hosts.update_windows AS update_windows, reports.agent AS agent, reports.conditions AS conditions,
        reports.host_text AS host_text
    FROM rollout_hosts JOIN hosts ON hosts.number = rollout_hosts.host
    LEFT JOIN reports ON reports.host = hosts.number
    WHERE rollout_hosts.rollout = ?1 ORDER BY rollout_hosts.wave, hosts.name, hosts.number";

/// Where the guests of a host are, by its last report.
fn guests_progress(row: &Row<'_>, version: VersionNumber, report: HostReport) -> rusqlite::Result<Progress> {
    let asked = DocumentRequest {
        at: row.get::<_, Option<Time>>("offered_at")?.map(|time| time.0),
        generation: row.get::<_, Option<Number>>("asked_generation")?.map(|number| number.0),
        refused: row.get("asked_refused")?,
    };
    let guests = GuestsReport {
        contact: report.contact,
        held: row.get::<_, Number>("held")?.0,
        guests: json_or_default(row, "guests")?,
        conditions: report.conditions,
    };
    Ok(guest_agent::progress(version, &asked, &guests))
}

fn report(row: &Row<'_>) -> rusqlite::Result<HostReport> {
    let (status, liveness): (String, String) = (row.get("status")?, row.get("liveness")?);
    let contact = match (status.as_str(), liveness.as_str()) {
        ("revoked", _) => Contact::Revoked,
        ("frozen", _) | (_, "offline") => Contact::Silent,
        _ => Contact::Heard,
    };
    let agent = row.get::<_, Option<Json<AgentSection>>>("agent")?.map(|json| json.0);
    let conditions = row.get::<_, Option<Json<ConditionSet>>>("conditions")?;
    Ok(HostReport {
        contact,
        started_at: agent.as_ref().map(|agent| agent.started_at),
        running: agent.as_ref().and_then(|agent| agent.version.parse().ok()),
        builds: agent.and_then(|agent| agent.builds).unwrap_or_default(),
        conditions: conditions.map(|set| set.0.conditions().to_vec()).unwrap_or_default(),
    })
}

/// Allowed times, once for all hosts with the same windows.
struct TimesOfHosts<'a> {
    times: &'a RolloutTimes,
    now: Timestamp,
    known: BTreeMap<String, Arc<AllowedTimes>>,
}

impl TimesOfHosts<'_> {
    fn of(&mut self, windows: &UpdateWindows) -> Arc<AllowedTimes> {
        let (times, now) = (self.times, self.now);
        let known = self.known.entry(windows.to_string());
        Arc::clone(known.or_insert_with(|| Arc::new(AllowedTimes::around(times, windows, now))))
    }
}

fn complete(connection: &Connection, mut kept: KeptRollout, now: Timestamp) -> rusqlite::Result<KeptRollout> {
    (kept.rollout.waves, kept.selects) = waves(connection, kept.number)?.into_iter().unzip();
    let back = match kept.rollout.on_failure {
        OnFailure::Hold => None,
        OnFailure::RollBack(to) => Some(target(connection, to)?),
    };
    let target = target(connection, kept.version)?;
    let image = match kept.subject {
        RolloutSubject::Golden => digest_of(connection, kept.version)?,
        RolloutSubject::Agent | RolloutSubject::GuestAgent => None,
    };
    kept.objection = match &image {
        Some(sha256) => image::objection(sha256, &compared_builds(connection)?),
        None => None,
    };
    let mut allowed = TimesOfHosts { times: &kept.times, now, known: BTreeMap::new() };
    let mut select = connection.prepare_cached(HOSTS)?;
    let mut rows = select.query([kept.number])?;
    while let Some(row) = rows.next()? {
        let (host, report) = (HostId::new(row.get::<_, Id>("id")?.0), report(row)?);
        let progress_now = match kept.subject {
            RolloutSubject::GuestAgent => guests_progress(row, kept.version, report.clone())?,
            RolloutSubject::Golden => {
                let taken = row.get::<_, Option<Time>>("taken_at")?.map(|time| time.0);
                let here = ImageReport {
                    contact: report.contact,
                    images: reported_images(row)?,
                    conditions: &report.conditions,
                };
                let has_it = image.as_ref().is_some_and(|sha256| here.has(sha256));
                if taken.is_none() && has_it {
                    kept.taken.push((host, now));
                }
                let offered_at = row.get::<_, Option<Time>>("offered_at")?.map(|time| time.0);
                image::progress(
                    if has_it || taken.is_some() { Presence::Here } else { Presence::Missing },
                    offered_at,
                    &here,
                )
            }
            RolloutSubject::Agent => {
                let before = row.get::<_, Option<Time>>("taken_at")?.map(|time| time.0);
                let taken = taken_at(&target, &report, before);
                if let (None, Some(at)) = (before, taken) {
                    kept.taken.push((host, at));
                }
                progress(&target, &report, taken)
            }
        };
        let failed_before: Option<String> = row.get("failed_why")?;
        if let Progress::Failed(why) = &progress_now
            && failed_before.as_ref() != Some(why)
        {
            kept.failed.push((host, why.clone()));
        }
        kept.hosts.push(HostFacts {
            host,
            name: row.get::<_, Text<HostName>>("name")?.0,
            wave: row.get::<_, u32>("wave")? as usize,
            progress: progress_now,
            failed_before,
            back: back.as_ref().map(|back| progress(back, &report, None)),
            failures: if row.get("accepted")? { Failures::Accepted } else { Failures::Count },
            offered_at: row.get::<_, Option<Time>>("offered_at")?.map(|time| time.0),
            allowed: allowed.of(&json_or_default(row, "update_windows")?),
        });
    }
    Ok(kept)
}

pub(super) fn one(
    connection: &Connection,
    number: u32,
    now: Timestamp,
) -> rusqlite::Result<Option<KeptRollout>> {
    let sql = format!("SELECT {COLUMNS} FROM rollouts WHERE number = ?1");
    let found = connection.prepare_cached(&sql)?.query_row([number], read).optional()?;
    found.map(|kept| complete(connection, kept, now)).transpose()
}

pub(super) fn all(connection: &Connection, now: Timestamp) -> rusqlite::Result<Vec<KeptRollout>> {
    let sql = format!("SELECT {COLUMNS} FROM rollouts ORDER BY number DESC");
    let mut select = connection.prepare_cached(&sql)?;
    let found = select.query_map([], read)?;
    found.map(|kept| complete(connection, kept?, now)).collect()
}

/// The rollout that is not over.
pub(super) fn unfinished(connection: &Connection) -> rusqlite::Result<Option<u32>> {
    let sql =
        "SELECT number FROM rollouts WHERE state NOT IN ('aborted', 'finished') ORDER BY number LIMIT 1";
    connection.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()
}

/// The rollout that reports are read for: of one that is held, failures are kept too.
pub(super) fn watched(connection: &Connection) -> rusqlite::Result<Option<(u32, RolloutSubject)>> {
    let sql =
        "SELECT number, subject FROM rollouts WHERE state IN ('running', 'held') ORDER BY number LIMIT 1";
    let read = |row: &Row<'_>| Ok((row.get("number")?, subject(row)?));
    connection.prepare_cached(sql)?.query_row([], read).optional()
}

/// Hosts that may be in a wave, in the order of names.
pub(super) fn hosts_to_plan(connection: &Connection) -> rusqlite::Result<Vec<Candidate>> {
    let sql = "SELECT name, id, labels FROM hosts WHERE status = 'active' ORDER BY name, number";
    let read = |row: &Row<'_>| {
        let host = HostId::new(row.get::<_, Id>("id")?.0);
        let name = row.get::<_, Text<HostName>>("name")?.0;
        Ok(Candidate { host, name, labels: json_or_default(row, "labels")? })
    };
    connection.prepare_cached(sql)?.query_map([], read)?.collect()
}

pub(super) fn save(tx: &Tx<'_>, number: u32, stage: &Stage) -> rusqlite::Result<()> {
    let open = open_wave(stage);
    let (reason, held_at) = match stage {
        Stage::Held { reason, at, open: _ } | Stage::RollingBack { reason, at, open: _, to: _ } => {
            (Some(reason), Some(Time(*at)))
        }
        Stage::Planned | Stage::Running(_) | Stage::Paused(_) | Stage::Aborted(_) | Stage::Finished => {
            (None, None)
        }
    };
    let sql = "UPDATE rollouts SET state = ?2, reason = ?3, wave = ?4, opened_at = ?5, settled_at = ?6,
                   held_at = ?7, rolls_back = ?8 WHERE number = ?1";
    tx.prepare_cached(sql)?.execute(params![
        number,
        state_text(stage.state()),
        reason,
        open.map(|open| u32::try_from(open.index).unwrap_or(u32::MAX)),
        open.map(|open| Time(open.opened_at)),
        open.and_then(|open| open.settled_at).map(Time),
        held_at,
        stage.state() == RolloutState::RollingBack
    ])?;
    Ok(())
}

/// Keeps when agents started that the release brought, since when hosts have an image, and why hosts failed. A later report says neither any more.
pub(super) fn keep_reports(tx: &Tx<'_>, kept: &KeptRollout) -> rusqlite::Result<()> {
    for (host, why) in &kept.failed {
        let sql = "UPDATE rollout_hosts SET failed_why = ?3
                   WHERE rollout = ?1 AND host = (SELECT number FROM hosts WHERE id = ?2)";
        tx.prepare_cached(sql)?.execute(params![kept.number, Id(host.uuid()), why])?;
    }
    for (host, at) in &kept.taken {
        let sql = "UPDATE rollout_hosts SET taken_at = ?3
                   WHERE rollout = ?1 AND host = (SELECT number FROM hosts WHERE id = ?2)";
        tx.prepare_cached(sql)?.execute(params![kept.number, Id(host.uuid()), Time(*at)])?;
    }
    Ok(())
}

/// The rollout that the hub stopped. At most one is not over.
pub(in crate::sqlite) fn held_rollout(connection: &Connection) -> rusqlite::Result<Option<HeldRollout>> {
    let sql =
        "SELECT number, version, reason, held_at FROM rollouts WHERE state = 'held' ORDER BY number LIMIT 1";
    let read = |row: &Row<'_>| {
        Ok(HeldRollout {
            number: row.get("number")?,
            version: version(row)?,
            since: row.get::<_, Time>("held_at")?.0,
            reason: row.get::<_, Option<String>>("reason")?.unwrap_or_default(),
        })
    };
    connection.prepare_cached(sql)?.query_row([], read).optional()
}
