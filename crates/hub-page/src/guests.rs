//! The list of guests of all hosts.

use askama::Template;
use holdfast_protocol::operator::{GuestOnHost, HostState};

use crate::RenderError;
use crate::frame::{Frame, When};
use crate::words::{self, Word};

/// What the page is made of.
pub struct Guests<'a> {
    /// One page of the list, by host.
    pub guests: &'a [GuestOnHost],
    /// The filter as it was typed.
    pub filter: &'a str,
    /// Why the filter was not understood; then `guests` is empty.
    pub problem: Option<&'a str>,
    /// The cursor of the next page.
    pub next: Option<&'a str>,
}

pub(crate) struct Row {
    pub name: String,
    pub link: Option<String>,
    pub host: String,
    pub vmid: String,
    pub status: Word,
    pub run: Word,
    pub protection: Word,
    pub controller: Word,
    pub customer: String,
    pub backup: Option<When>,
    pub proof: Option<When>,
    pub note: String,
    /// The age of all of it, where the host is not heard of now.
    pub as_of: Option<When>,
}

#[derive(Template)]
#[template(path = "guests.html")]
struct GuestsPage<'a> {
    frame: &'a Frame,
    rows: Vec<Row>,
    filter: &'a str,
    problem: Option<&'a str>,
    next: Option<&'a str>,
}

/// # Errors
/// [`RenderError`].
pub fn render(frame: &Frame, guests: &Guests<'_>) -> Result<String, RenderError> {
    let rows = guests.guests.iter().map(|one| row(frame, one)).collect();
    GuestsPage { frame, rows, filter: guests.filter, problem: guests.problem, next: guests.next }.render()
}

pub(crate) fn row(frame: &Frame, one: &GuestOnHost) -> Row {
    let guest = &one.guest;
    let protection = guest.protection.as_ref();
    let newest = protection.and_then(|report| report.newest.iter().map(|backup| backup.taken_at).max());
    let proof = protection.and_then(|report| report.tested.iter().map(|tier| tier.last.at).max());
    let is_heard = matches!(one.host_state, HostState::Online | HostState::Degraded);
    Row {
        name: guest.name.clone(),
        // The page of a guest is of who may see its host.
        link: guest.uid.filter(|_| frame.has_hosts()).map(|uid| format!("/hosts/{}/guests/{uid}", one.host)),
        host: one.host.to_string(),
        vmid: guest.vmid.map_or_else(|| "—".to_owned(), |vmid| vmid.to_string()),
        status: words::guest_status(guest),
        run: words::run(guest),
        protection: words::protection(guest),
        controller: words::controller(guest.controller.as_ref()),
        customer: guest.customer.as_ref().map_or_else(|| "—".to_owned(), ToString::to_string),
        backup: newest.map(|at| frame.when(at)),
        proof: proof.map(|at| frame.when(at)),
        note: guest.conditions.iter().map(|one| one.message.as_str()).collect::<Vec<_>>().join("; "),
        as_of: one.seen_at.filter(|_| !is_heard).map(|at| frame.when(at)),
    }
}
