//! Whether an order opens a way.
//!
//! In: the bytes of an order, who may sign and consent, root's settings, what was used, the clocks. Out: the opening, or
//! the first reason against it; then nothing of the order is used up. Signatures are checked over the bytes before they
//! are read. Nothing here comes from the agent but the bytes. Pure.

use std::collections::BTreeSet;

use holdfast_protocol::break_glass::{OpenMinutes, OpenedOrder, PersonKey, WayName};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::CustomerId;
use holdfast_protocol::job::act::{Sha256Text, args};
use holdfast_protocol::job::envelope::SignedJobError;
use holdfast_protocol::job::{Act, SignedJob, UtcSecond, Verb};
use holdfast_trust::consent::{self, ConsentRefused};
use holdfast_trust::key::KeyError;
use holdfast_trust::scope::{Here, NotHere, meant_for, timely};
use holdfast_trust::{Accepted, OperatorKey, Operators, Refused, Roster};
use jiff::{SignedDuration, Timestamp};

use crate::entry;
use crate::moment::{Moment, Term};
use crate::settings::{Settings, Way};
use crate::state::{OpenWay, State, USED_MAX, UsedOrder};

/// More customers than a host has; a status with all its orders stays within its bound.
const CUSTOMERS_MAX: usize = 64;

/// Who may order, and who may consent.
#[derive(Clone, Debug)]
pub struct Trust {
    pub roster: Roster,
    /// None where root laid no consent keys down: then no customer can consent.
    pub consent_keys: Option<Operators>,
}

/// What becomes of an order.
#[derive(Debug)]
pub enum Decision {
    /// The way is opened, and the order is used.
    Open(Box<(OpenWay, UsedOrder)>),
    /// This order opened the way that is open.
    IsOpen,
    Refuse(Refusal),
}

/// Why an order opens nothing.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("break-glass is off on this host: root enables it in /etc/holdfast/break-glass.toml")]
    Off,
    /// Settings, keys or policy of root.
    #[error(
        "nothing was opened, because root's files cannot be used: {0}; see `/usr/lib/holdfast/holdfast-break-glass check`"
    )]
    Files(String),
    /// Not a signed job.
    #[error(transparent)]
    Envelope(#[from] SignedJobError),
    /// Its signatures, bytes, or the policy.
    #[error(transparent)]
    Job(#[from] Refused),
    #[error("{verb} opens no way: only break_glass does", verb = .0.as_str())]
    Verb(Verb),
    /// Not for this host, or not now.
    #[error(transparent)]
    NotHere(#[from] NotHere),
    #[error("the policy lets {seconds} s pass before a way is opened: the order counts from {from:.0}")]
    Early { seconds: u32, from: Timestamp },
    #[error("the order was used before, or another one with its id or nonce: sign a new one")]
    Replayed,
    #[error("{0} ways were opened within a day, which is as often as the policy lets it be")]
    Often(u32),
    #[error("{0} orders are known and none may be forgotten yet: wait for the end of the oldest")]
    Full(usize),
    #[error(
        "way {way} is open until {until:.0}: wait, or root closes it with `/usr/lib/holdfast/holdfast-break-glass close`"
    )]
    Busy { way: WayName, until: Timestamp },
    #[error("the order names {0} customers; at most {CUSTOMERS_MAX} are accepted")]
    Customers(usize),
    #[error(
        "root's settings have no way {0}: `/usr/lib/holdfast/holdfast-break-glass check` on the host lists them"
    )]
    WayUnknown(WayName),
    #[error("way {way} is opened for at most {most} minutes, and the order says {asked}")]
    TooLong { way: WayName, asked: u16, most: u16 },
    #[error("way {0} lets in the key that an order names, and this one names none")]
    KeyMissing(WayName),
    #[error("way {0} has a key of its own, and the order names another: leave it out")]
    KeyGiven(WayName),
    #[error("the key that the order lets in is refused")]
    Key(#[source] KeyError),
    #[error("a consent of the order is refused")]
    Consent(#[from] ConsentRefused),
    #[error(
        "{0} did not consent: sign a new order, let each sign its payload (`holdfast job payload`), then submit it"
    )]
    ConsentMissing(String),
}

impl Refusal {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Off => ErrorCode::BreakGlassOff,
            Self::Files(_) => ErrorCode::Unavailable,
            Self::Envelope(error) => error.code(),
            Self::Job(error) => error.code(),
            Self::Verb(_) => ErrorCode::Unsupported,
            Self::NotHere(error) => error.code(),
            Self::Early { .. } => ErrorCode::JobNotYet,
            Self::Replayed => ErrorCode::JobReplayed,
            Self::Often(_) | Self::Full(_) => ErrorCode::Quota,
            Self::Busy { .. } => ErrorCode::Busy,
            Self::WayUnknown(_) => ErrorCode::NotFound,
            Self::Customers(_)
            | Self::TooLong { .. }
            | Self::KeyMissing(_)
            | Self::KeyGiven(_)
            | Self::Key(_) => ErrorCode::Range,
            Self::Consent(error) => error.code(),
            Self::ConsentMissing(_) => ErrorCode::ConsentMissing,
        }
    }
}

/// Judges the bytes of an order.
#[must_use]
pub fn decide(bytes: &[u8], trust: &Trust, settings: &Settings, state: &State, now: &Moment) -> Decision {
    match judge(bytes, trust, settings, (state, now)) {
        Ok(decision) => decision,
        Err(refusal) => Decision::Refuse(refusal),
    }
}

fn judge(
    bytes: &[u8],
    trust: &Trust,
    settings: &Settings,
    (state, now): (&State, &Moment),
) -> Result<Decision, Refusal> {
    if !settings.enabled {
        return Err(Refusal::Off);
    }
    let signed = SignedJob::parse(bytes)?;
    let at = now.at_least(state.latest);
    let job = trust.roster.accept(&signed, at)?;
    let payload = job.payload();
    let Act::BreakGlass(args) = &payload.act else { return Err(Refusal::Verb(payload.act.verb())) };
    meant_here(&job, settings, state, now)?;
    let order = Sha256Text::from_digest(job.digest());
    let is_open = state.open.as_ref().is_some_and(|open| open.order.order == order);
    // One whose time is over is not opened again before the guard closes it.
    if is_open && state.left_s(now).is_some_and(|left| left > 0) {
        return Ok(Decision::IsOpen);
    }
    if state.is_used(payload.job_id, &payload.nonce, &order) {
        return Err(Refusal::Replayed);
    }
    within_limits(&job, state, now)?;
    if args.customers.len() > CUSTOMERS_MAX {
        return Err(Refusal::Customers(args.customers.len()));
    }
    let (key, minutes) = enter(args, settings)?;
    let consents = consents(&signed, args, trust, settings, at)?;
    let opened_at = UtcSecond::new(at).map_err(|why| Refusal::Files(why.to_owned()))?;
    let closes_at = at.checked_add(SignedDuration::from_secs(minutes.seconds())).ok();
    let closes_at = closes_at.and_then(|end| UtcSecond::new(end).ok());
    let closes_at = closes_at.ok_or_else(|| Refusal::Files("the clock is out of range".to_owned()))?;
    let used = UsedOrder {
        job: payload.job_id,
        nonce: payload.nonce.clone(),
        order: order.clone(),
        opened_at,
        expires_at: payload.expires_at,
    };
    let way = settings.ways.get(&args.way).ok_or_else(|| Refusal::WayUnknown(args.way.clone()))?;
    let open = OpenWay {
        line: entry::line(&key, way.from(), closes_at),
        run: match way {
            Way::AuthorizedKeys { .. } => None,
            Way::ForcedCommand { run, .. } => Some(run.clone()),
        },
        term: Term::begin(now, closes_at, minutes.seconds()),
        order: OpenedOrder {
            order,
            job: payload.job_id,
            way: args.way.clone(),
            customers: args.customers.clone(),
            consents,
            signers: job.signers().clone(),
            reason: payload.reason.clone(),
            opened_at,
            closes_at,
            sessions: 0,
            closed: None,
        },
    };
    Ok(Decision::Open(Box::new((open, used))))
}

/// This host, in this life, now; and not before the policy's delay.
fn meant_here(job: &Accepted, settings: &Settings, state: &State, now: &Moment) -> Result<(), Refusal> {
    let (host, epoch) = (settings.host.id, settings.host.epoch);
    let here = Here { host, epoch, now: now.wall, latest: state.latest.at() };
    timely(job.payload(), &here)?;
    meant_for(job.payload(), &settings.own())?;
    let seconds = job.rule().delay_s;
    let delay = SignedDuration::from_secs(i64::from(seconds));
    let from = job.payload().not_before.at().checked_add(delay).unwrap_or(Timestamp::MAX);
    if now.wall < from { Err(Refusal::Early { seconds, from }) } else { Ok(()) }
}

/// As many in a day as the policy lets, and one at a time.
fn within_limits(job: &Accepted, state: &State, now: &Moment) -> Result<(), Refusal> {
    let per_day = job.rule().per_day;
    if state.opened_today(now) >= usize::try_from(per_day).unwrap_or(usize::MAX) {
        return Err(Refusal::Often(per_day));
    }
    if state.used.len() >= USED_MAX {
        return Err(Refusal::Full(USED_MAX));
    }
    match &state.open {
        Some(open) => Err(Refusal::Busy { way: open.order.way.clone(), until: open.order.closes_at.at() }),
        None => Ok(()),
    }
}

/// Who may come in, and for how long.
fn enter(args: &args::BreakGlass, settings: &Settings) -> Result<(PersonKey, OpenMinutes), Refusal> {
    let name = || args.way.clone();
    let way = settings.ways.get(&args.way).ok_or_else(|| Refusal::WayUnknown(name()))?;
    let most = way.minutes_max().unwrap_or(settings.minutes_max).min(settings.minutes_max);
    if args.minutes > most {
        let (asked, most) = (args.minutes.minutes(), most.minutes());
        return Err(Refusal::TooLong { way: name(), asked, most });
    }
    let key = match (way, &args.key) {
        (Way::AuthorizedKeys { .. }, Some(key)) => key.clone(),
        (Way::AuthorizedKeys { .. }, None) => return Err(Refusal::KeyMissing(name())),
        (Way::ForcedCommand { key, .. }, None) => key.clone(),
        (Way::ForcedCommand { .. }, Some(_)) => return Err(Refusal::KeyGiven(name())),
    };
    OperatorKey::from_openssh(key.as_str()).map_err(Refusal::Key)?;
    Ok((key, args.minutes))
}

/// The customers that consented: all that must.
fn consents(
    signed: &SignedJob,
    args: &args::BreakGlass,
    trust: &Trust,
    settings: &Settings,
    at: Timestamp,
) -> Result<BTreeSet<CustomerId>, Refusal> {
    let given = match (&trust.consent_keys, signed.consents.is_empty()) {
        (_, true) => BTreeSet::new(),
        (Some(keys), false) => consent::given(signed, keys, at)?,
        (None, false) => return Err(Refusal::Files("no consent keys were laid down".to_owned())),
    };
    let asked = settings.asked(&args.customers);
    let missing: Vec<&str> = asked.difference(&given).map(CustomerId::as_str).collect();
    if missing.is_empty() { Ok(given) } else { Err(Refusal::ConsentMissing(missing.join(", "))) }
}

#[cfg(test)]
#[path = "../../tests/support/ssh_signer.rs"]
mod ssh_signer;

#[cfg(test)]
mod tests;
