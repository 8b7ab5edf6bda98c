//! The take-up of a lost host's guests, for the admin socket.
//!
//! In: the guests that shall not come back. Out: how many come back. First the records are written, then the mark that
//! lets documents in; after an interruption, it is simply done again. A later repeat excludes a guest that was to come
//! back.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::Desired;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::OperationId;
use holdfast_protocol::json::chain;
use uuid::Uuid;

use super::StatusTask;
use crate::plan::inherited::{NotTaken, taking};
use crate::port::admin_socket::Answer;
use crate::port::host_replacement::HandOverError;
use crate::port::store::StoreError;
use crate::port::store::inherited::TakenUp;

#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("this box took nobody's place: there is nothing to take up")]
    Nothing,
    #[error(transparent)]
    Folder(#[from] HandOverError),
    #[error("the document that was handed over cannot be read")]
    Document(#[source] holdfast_protocol::desired::DesiredError),
    #[error(transparent)]
    Not(#[from] NotTaken),
    #[error(
        "VMID {0}, which {1} had on the lost box, is another guest's of ours here: name it with --without"
    )]
    Anothers(holdfast_protocol::id::Vmid, String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Refused {
    const fn code(&self) -> ErrorCode {
        match self {
            Self::Nothing => ErrorCode::NotFound,
            Self::Folder(_) | Self::Document(_) | Self::Store(_) => ErrorCode::Unavailable,
            Self::Not(_) => ErrorCode::Missing,
            Self::Anothers(..) => ErrorCode::VmidForeign,
        }
    }
}

impl StatusTask {
    pub(super) async fn take_up(&self, without: Vec<String>, by: String) -> Answer {
        match self.taken_up(&without, by).await {
            Ok(guests) => Answer::TakenUp { guests },
            Err(refused) => Answer::Refused(ErrorBody::new(refused.code(), chain(&refused))),
        }
    }

    async fn taken_up(&self, without: &[String], by: String) -> Result<usize, Refused> {
        let handover = self.handed.read()?.ok_or(Refused::Nothing)?;
        let document = handover.desired.as_deref().map(|text| Desired::parse(text.as_bytes())).transpose();
        let document = document.map_err(Refused::Document)?;
        let taking = taking(handover.sections.guests.as_deref(), document.as_ref(), without)?;
        let guests = taking.guests.len();
        let new = OperationId::new(Uuid::now_v7());
        if let TakenUp::Anothers { vmid, name } =
            self.store.take_up(taking, new, by, self.clock.now()).await?
        {
            return Err(Refused::Anothers(vmid, name));
        }
        self.handed.take_up()?;
        Ok(guests)
    }
}
