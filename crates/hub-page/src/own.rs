//! The first page of a customer: guests, proofs, objections.

use holdfast_protocol::alert::IncidentView;
use holdfast_protocol::objection::GuestJobView;
use holdfast_protocol::operator::GuestOnHost;

use crate::RenderError;
use crate::customers::guest_table;
use crate::frame::Frame;
use crate::jobs::open_job;
use crate::sheet::{Item, Part, Sheet};
use crate::table::{Cell, Table};
use crate::words;

/// What the page is made of: all of it within the customer's scope.
pub struct Own<'a> {
    pub guests: &'a [GuestOnHost],
    /// Whether there are more guests than these.
    pub has_more: bool,
    pub incidents: &'a [IncidentView],
    pub jobs: &'a [GuestJobView],
}

/// # Errors
/// [`RenderError`].
pub fn render(frame: &Frame, own: &Own<'_>) -> Result<String, RenderError> {
    let mut sheet = Sheet::new("Your guests");
    let open: Vec<&GuestJobView> = own.jobs.iter().filter(|job| !job.state.is_end()).collect();
    if !open.is_empty() {
        let mut part = Part::new("jobs", "Ordered for your guests");
        part.items = open.into_iter().map(|job| open_job(frame, job, name_of(own, job))).collect();
        sheet.parts.push(part);
    }
    if !own.incidents.is_empty() {
        let mut part = Part::new("alerts", "What is wrong");
        part.items = own.incidents.iter().map(|one| alert(frame, one)).collect();
        sheet.parts.push(part);
    }
    let mut part =
        Part::of_table("guests", "Guests", guest_table(frame, own.guests), "No guest of yours is reported.");
    if own.has_more {
        part = part.with_note("More of them are on the page of guests.");
    }
    sheet.parts.push(part);
    let proofs = own.guests.iter().filter_map(|one| proof(frame, one));
    let table = Table::new("Proofs", ["Guest", "Restore test", "Certificate", "Audit"], proofs);
    let part = Part::of_table("proofs", "Proofs", table, "No backup was proved by a restore yet.");
    sheet.parts.push(part.with_note("A certificate is signed by the host and by the hub. Check it anywhere: holdfast certificate verify FILE."));
    if own.guests.iter().any(is_off_site) {
        sheet.parts.push(recovery_code());
    }
    sheet.render(frame)
}

/// The name of a job's guest, where it is on the page.
fn name_of<'a>(own: &Own<'a>, job: &GuestJobView) -> Option<&'a str> {
    let guest = own.guests.iter().find(|one| one.guest.uid == Some(job.guest));
    guest.map(|one| one.guest.name.as_str())
}

fn alert(frame: &Frame, one: &IncidentView) -> Item {
    let about = one.guest.as_ref().map_or_else(|| one.subject.clone(), ToString::to_string);
    let mut item = Item::new(words::severity(one.severity), vec![Cell::text(about)]);
    item.lines.push(format!("{} ({})", one.message.as_str(), frame.when(one.since).age));
    item
}

fn proof(frame: &Frame, one: &GuestOnHost) -> Option<[Cell; 4]> {
    let uid = one.guest.uid?;
    let tested = one.guest.protection.iter().flat_map(|report| &report.tested);
    let last = tested.max_by_key(|tier| tier.last.at).map(|tier| &tier.last);
    let page = format!("/hosts/{}/guests/{uid}", one.host);
    let verdict = match last {
        Some(last) => Cell::when(frame.when(last.at)).with_small(Some(last.verdict.as_str().to_owned())),
        None => Cell::text("none known"),
    };
    Some([
        Cell::link(page.clone(), &one.guest.name),
        verdict,
        Cell::link(format!("{page}/restore-certificate"), "certificate"),
        Cell::link(format!("{page}/audit"), "audit"),
    ])
}

/// Whether backups of it leave the host, encrypted.
fn is_off_site(one: &GuestOnHost) -> bool {
    let in_force = one.guest.protection.as_ref().and_then(|report| report.in_force.as_ref());
    in_force.is_some_and(|promise| promise.tiers.off_site.is_some())
}

fn recovery_code() -> Part {
    let mut part = Part::new("recovery", "Your recovery code");
    part.note = Some(
        "Your off-site backups are encrypted. Once the host is gone, they open with the recovery code on your sheet, and \
         with nothing else: this page does not have the code, and neither has your provider. Keep the sheet where a fire \
         does not reach both it and the host. Twice a year, read it and ask your provider for a drill."
            .to_owned(),
    );
    part
}
