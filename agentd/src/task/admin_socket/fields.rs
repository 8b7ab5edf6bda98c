//! The fields of one guest, for the admin socket.

use std::sync::Arc;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::GuestUid;
use holdfast_protocol::report::GuestReport;
use jiff::Timestamp;

use super::{StatusTask, reported};
use crate::model::records::Place;
use crate::model::view::HostSnapshot;
use crate::operation::Operation;
use crate::port::admin_socket::{Answer, FieldsView};
use crate::port::store::{Store, StoreError};

/// For a running container Proxmox only notes what will be removed at its next stop, and shows it as gone.
const SPENT_CLAIM: &str = "The claim by which it got its token still stands in its configuration, and in backups of it, until its \
     next start. It is used and opens nothing.";

impl StatusTask {
    pub(super) async fn fields(&self, called: &str) -> Answer {
        let view = Arc::clone(&self.view.borrow());
        let (uid, guest) = match called_so(&view, called) {
            Ok(found) => found,
            Err(problem) => return Answer::Refused(problem),
        };
        let known = view.fields.get(&uid);
        let claim = match spent_claim(&self.store, uid, known.and_then(|known| known.began_at)).await {
            Ok(claim) => claim,
            Err(error) => return reported(Err(error)),
        };
        Answer::Fields(Box::new(FieldsView {
            uid,
            name: guest.name.clone(),
            at: self.clock.now(),
            read_at: known.and_then(|known| known.read_at),
            fields: known.map(|known| known.fields.clone()).unwrap_or_default(),
            notes: claim.into_iter().chain(known.and_then(|known| known.filter.clone())).collect(),
        }))
    }
}

/// What is left of the claim by which a guest got its token, if it was not started since.
///
/// # Errors
/// [`StoreError`].
pub async fn spent_claim(
    store: &Store,
    uid: GuestUid,
    began_at: Option<Timestamp>,
) -> Result<Option<String>, StoreError> {
    let (Some(record), Some(began_at)) = (store.guest(uid).await?, began_at) else { return Ok(None) };
    let Place::Made { by, .. } = record.place else { return Ok(None) };
    let Some(made) = store.operation(by).await? else { return Ok(None) };
    let with_claim = matches!(&made.operation, Operation::Provision(made) if made.starts_with_a_claim());
    let stays = with_claim && made.view().ended_at.is_some_and(|ended| began_at < ended);
    Ok(stays.then(|| SPENT_CLAIM.to_owned()))
}

/// The one guest of ours that is called so.
pub(super) fn called_so<'a>(
    view: &'a HostSnapshot,
    called: &str,
) -> Result<(GuestUid, &'a GuestReport), ErrorBody> {
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
    Err(ErrorBody::new(ErrorCode::NotFound, format!("{called:?}: {problem}")))
}
