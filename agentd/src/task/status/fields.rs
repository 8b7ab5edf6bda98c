//! The fields of one guest, for who asks at the box, as the last look and the records have them.

use std::sync::Arc;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::Problem;
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::report::GuestReport;

use super::StatusTask;
use crate::model::view::View;
use crate::port::status_door::{Answer, FieldsView};

impl StatusTask {
    pub(super) fn fields(&self, called: &str) -> Answer {
        let view = Arc::clone(&self.view.borrow());
        let (uid, guest) = match called_so(&view, called) {
            Ok(found) => found,
            Err(problem) => return Answer::Refused(problem),
        };
        let known = view.fields.get(&uid);
        Answer::Fields(Box::new(FieldsView {
            uid,
            name: guest.name.clone(),
            at: self.clock.now(),
            read_at: known.and_then(|known| known.read_at),
            fields: known.map(|known| known.fields.clone()).unwrap_or_default(),
        }))
    }
}

/// The one guest of ours that is called so.
pub(super) fn called_so<'a>(view: &'a View, called: &str) -> Result<(GuestUid, &'a GuestReport), Problem> {
    let is = |uid: GuestUid, guest: &GuestReport| {
        guest.name == called
            || uid.to_string() == called
            || guest.vmid.is_some_and(|vmid| vmid.to_string() == called)
    };
    let ours = view.guests.iter().filter_map(|guest| Some((guest.uid?, guest)));
    let found: Vec<_> = ours.filter(|(uid, guest)| is(*uid, guest)).collect();
    let problem = match found.as_slice() {
        [found] => return Ok(*found),
        [] => "no guest of ours is called so: `agentd status` shows them",
        _ => {
            "more than one guest is called so: name it by its uid, as `agentd status --output json` shows it"
        }
    };
    Err(Problem::new(ErrorCode::NotFound, format!("{called:?}: {problem}")))
}
