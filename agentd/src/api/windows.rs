//! Quiesce windows over the API.
//!
//! A window is requested like other work, and is the operation of the same id. What its controller says about it is
//! recorded before it is answered, and wakes the operation; this module has no effect on the host. A controller that
//! starts its programs again is accepted even when nothing can be written.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use holdfast_protocol::id::OperationId;
use holdfast_protocol::local::window::{
    CANARIES_MAX, DownStack, Quiesced, Released, STACKS_MAX, WindowRequest, WindowView,
};
use holdfast_protocol::local::work::Accepted;
use holdfast_protocol::protection::Tier;

use super::auth::GuestScope;
use super::envelope::{Data, InWork};
use super::error::ApiError;
use super::wait::Wait;
use super::work::{Call, fresh_id, own, write_down};
use super::{Local, body};
use crate::model::request::Ask;
use crate::operation::window::{Refused, WindowEvent};
use crate::port::store::request::Cancelled;
use crate::port::store::window::{Moment, SayError, WindowLook};

/// A reason of a stack, in the text of the program that should have started it.
const WHY_CHARS_MAX: usize = 512;

/// Requests a window. A second request gets the first one.
pub(super) async fn ask(
    State(local): State<Arc<Local>>,
    scope: GuestScope,
    call: Call,
    body: Body,
) -> Result<InWork<Accepted>, ApiError> {
    let bytes = body::bytes("the window", body).await?;
    let goal: WindowRequest =
        if bytes.is_empty() { WindowRequest::default() } else { body::parse("the window", &bytes)? };
    own(&scope, goal.guest)?;
    if goal.tier == Some(Tier::Snapshot) {
        return Err(ApiError::Part {
            what: "tier",
            rule: "local or off_site: a snapshot is asked for as a snapshot, and holds for a moment only",
        });
    }
    let ask = Ask::QuiescedBackup { tier: goal.tier, bound: local.settings.quiesce_bound };
    write_down(&local, &scope, (fresh_id(), ask), (&call, &bytes)).await
}

/// Its progress, at once or when that changes. The passing of its bound is a change.
pub(super) async fn look(
    State(local): State<Arc<Local>>,
    scope: GuestScope,
    Path(id): Path<String>,
    wait: Wait,
) -> Result<Data<WindowView>, ApiError> {
    let id = window_id(&id)?;
    wait.for_change(&local, || view(&local, &scope, id)).await
}

/// Records that all programs are stopped.
pub(super) async fn quiesced(
    State(local): State<Arc<Local>>,
    scope: GuestScope,
    Path(id): Path<String>,
    body: Body,
) -> Result<Data<WindowView>, ApiError> {
    let said: Quiesced = body::read("what stands still", body).await?;
    own(&scope, said.guest)?;
    let twice =
        said.stacks.iter().enumerate().any(|(nth, one)| said.stacks.iter().take(nth).any(|two| two == one));
    if said.stacks.len() > STACKS_MAX || twice {
        return Err(ApiError::Part { what: "stacks", rule: "at most 32, each once" });
    }
    if said.canaries.len() > CANARIES_MAX {
        return Err(ApiError::Part { what: "canaries", rule: "at most 17" });
    }
    say(&local, &scope, window_id(&id)?, WindowEvent::Quiesced(said.into())).await
}

/// Everything runs again, or what would not.
pub(super) async fn released(
    State(local): State<Arc<Local>>,
    scope: GuestScope,
    Path(id): Path<String>,
    body: Body,
) -> Result<Data<WindowView>, ApiError> {
    let said: Released = body::read("what runs again", body).await?;
    own(&scope, said.guest)?;
    if said.down.len() > STACKS_MAX {
        return Err(ApiError::Part { what: "down", rule: "at most 32 stacks" });
    }
    let plain = |one: &DownStack| {
        (1..=WHY_CHARS_MAX).contains(&one.why.chars().count()) && !one.why.chars().any(char::is_control)
    };
    if !said.down.iter().all(plain) {
        return Err(ApiError::Part { what: "why", rule: "1 to 512 characters of one line" });
    }
    say(&local, &scope, window_id(&id)?, WindowEvent::Released(said.into())).await
}

/// Given up before its backup began.
pub(super) async fn give_up(
    State(local): State<Arc<Local>>,
    scope: GuestScope,
    Path(id): Path<String>,
) -> Result<Data<WindowView>, ApiError> {
    let id = window_id(&id)?;
    if own_window(&local, &scope, id).await?.waits() {
        match local.store.cancel_request(scope.uid(), id, None, local.clock.now()).await? {
            Cancelled::Ended(_) => return view(&local, &scope, id).await.map(Data),
            // It began between the two reads.
            Cancelled::TooLate(_) | Cancelled::Over => {}
            Cancelled::NotYours => return Err(ApiError::NotYours),
            Cancelled::Unknown => return Err(ApiError::NotFound(WINDOW)),
        }
    }
    say(&local, &scope, id, WindowEvent::Cancelled).await
}

const WINDOW: &str = "quiesce window";

fn window_id(text: &str) -> Result<OperationId, ApiError> {
    text.parse().map_err(|_| ApiError::NotFound(WINDOW))
}

/// One of the guest's own windows, or the request for one.
async fn own_window(local: &Local, scope: &GuestScope, id: OperationId) -> Result<WindowLook, ApiError> {
    let look = local.store.look_at_window(id).await?.ok_or(ApiError::NotFound(WINDOW))?;
    if look.guest() != scope.uid() {
        return Err(ApiError::NotYours);
    }
    if look.is_window() { Ok(look) } else { Err(ApiError::NotFound(WINDOW)) }
}

async fn view(local: &Local, scope: &GuestScope, id: OperationId) -> Result<WindowView, ApiError> {
    Ok(own_window(local, scope, id).await?.view(&local.clock.boot_moment()))
}

async fn say(
    local: &Local,
    scope: &GuestScope,
    id: OperationId,
    said: WindowEvent,
) -> Result<Data<WindowView>, ApiError> {
    let look = own_window(local, scope, id).await?;
    let moment = Moment { boot: local.clock.boot_moment(), at: local.clock.now() };
    match local.store.say_of_window(id, said, moment).await {
        Ok(_) => view(local, scope, id).await.map(Data),
        Err(SayError::Unknown) if look.view(&local.clock.boot_moment()).phase.is_over() => {
            Err(ApiError::Window(Refused::Over))
        }
        Err(SayError::Unknown) => Err(ApiError::NotGranted),
        Err(SayError::Refused(why)) => Err(ApiError::Window(why)),
        Err(SayError::Store(error)) => Err(error.into()),
    }
}
