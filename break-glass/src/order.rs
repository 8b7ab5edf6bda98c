//! One order: read, judged, carried out.
//!
//! In: the files. Out: an open way, or a refusal that the agent can read. Nothing is opened before the order is written
//! down as used and the log has its line; the mark for the guard is there before the line that lets a person in.

use holdfast_protocol::break_glass::RefusedOrder;
use holdfast_protocol::job::act::Sha256Text;
use holdfast_protocol::job::{SignedJob, UtcSecond};
use holdfast_protocol::json::chain;

use crate::decide::{Decision, Refusal, decide};
use crate::files::{Files, FilesError};
use crate::log::{Action, LogError};
use crate::moment::Moment;
use crate::session;
use crate::state::{Event, OpenWay, State, UsedOrder};

/// What became of an order.
#[derive(Debug)]
pub enum OrderOutcome {
    /// There is none.
    NoOrder,
    Opened(Box<OpenWay>),
    /// It was opened before, and still is.
    IsOpen,
    Refused(Box<Refusal>),
}

/// Takes the order that is there.
///
/// # Errors
/// [`FilesError`]; nothing was opened, or what was written down ends by itself.
pub fn take(files: &Files) -> Result<OrderOutcome, FilesError> {
    let _lock = files.lock()?;
    let Some(bytes) = files.order()? else { return Ok(OrderOutcome::NoOrder) };
    let now = files.now()?;
    let state = files.state(&now)?;
    match judge(files, &bytes, &state, &now) {
        Decision::Open(opened) => open(files, *opened, state, &now),
        Decision::IsOpen => {
            if let Some(open) = &state.open {
                carry_out(files, open, &state)?;
            }
            Ok(OrderOutcome::IsOpen)
        }
        Decision::Refuse(refusal) => refuse(files, &bytes, refusal, state, &now),
    }
}

fn judge(files: &Files, bytes: &[u8], state: &State, now: &Moment) -> Decision {
    let unusable = |error: FilesError| Decision::Refuse(Refusal::Files(chain(&error)));
    let settings = match files.settings() {
        Ok(Some(settings)) if settings.enabled => settings,
        Ok(_) => return Decision::Refuse(Refusal::Off),
        Err(error) => return unusable(error),
    };
    match files.trust(&settings) {
        Ok(trust) => decide(bytes, &trust, &settings, state, now),
        Err(error) => unusable(error),
    }
}

fn open(
    files: &Files,
    (open, used): (OpenWay, UsedOrder),
    state: State,
    now: &Moment,
) -> Result<OrderOutcome, FilesError> {
    files.append(now.wall, (Action::Opened, Some(used.job)), &words(&open))?;
    let state = state.next(Event::Opened(Box::new((open.clone(), used))), now);
    files.keep_state(&state)?;
    carry_out(files, &open, &state)?;
    session::forget_old_recordings(files, now)?;
    Ok(OrderOutcome::Opened(Box::new(open)))
}

/// Also again, for an order that was written down before a crash.
fn carry_out(files: &Files, open: &OpenWay, state: &State) -> Result<(), FilesError> {
    files.put_mark()?;
    files.put_line(&open.line)?;
    files.keep_status(state)
}

fn refuse(
    files: &Files,
    bytes: &[u8],
    refusal: Refusal,
    state: State,
    now: &Moment,
) -> Result<OrderOutcome, FilesError> {
    let payload = SignedJob::parse(bytes).map(|signed| signed.payload);
    let order = Sha256Text::of(payload.as_deref().unwrap_or(bytes));
    let at = UtcSecond::new(now.wall).map_err(FilesError::Clock)?;
    let (code, message) = (refusal.code(), clipped(&chain(&refusal)));
    let detail = format!("order {}: {}: {message}", order.as_str(), code.as_str());
    let is_known = state.refused.iter().any(|one| one.order == order && one.code == code);
    if !is_known {
        match files.append(now.wall, (Action::Refused, None), &detail) {
            // Refusals may not fill the log; the status has the last ones.
            Ok(()) | Err(FilesError::Log(LogError::Full)) => {}
            Err(error) => return Err(error),
        }
    }
    let state = state.next(Event::Refused(RefusedOrder { order, at, code, message }), now);
    files.keep_state(&state)?;
    files.keep_status(&state)?;
    Ok(OrderOutcome::Refused(Box::new(refusal)))
}

/// A status with all its refusals stays within its bound.
fn clipped(message: &str) -> String {
    message.chars().take(500).collect()
}

fn words(open: &OpenWay) -> String {
    let order = &open.order;
    let list = |names: Vec<&str>| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    format!(
        "way {} until {}, order {}, signed by {}, customers {}, consents {}, line {:?}: {}",
        order.way,
        order.closes_at,
        order.order.as_str(),
        list(order.signers.iter().map(|name| name.as_str()).collect()),
        list(order.customers.iter().map(|name| name.as_str()).collect()),
        list(order.consents.iter().map(|name| name.as_str()).collect()),
        open.line.trim_end(),
        order.reason.as_str()
    )
}
