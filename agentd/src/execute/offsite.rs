//! One query to a backup server with unsealed credentials.
//!
//! In: a warrant, and the question. Out: the answer, or a code and a sentence. The credentials are opened here, live as
//! long as the call, and are wiped with it. Deliberately absent: deciding, trying again.

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::id::Vmid;
use holdfast_protocol::json::chain;
use holdfast_seal::{Creds, HostKey, SealContext};

use crate::gate::offsite::ServerWarrant;
use crate::model::offsite::{ServerListing, VerifyTask};
use crate::port::pbs::{BackupServer, Dial, PbsError};

/// A server that refuses a token takes three seconds, and one that lists thousands some more.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// What is needed to query backup servers.
#[derive(Clone)]
pub struct Asker {
    /// Opens what is sealed.
    pub key: Arc<HostKey>,
    /// How servers are reached.
    pub dial: Arc<dyn Dial>,
}

/// The question to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// What is stored there, and the state of this verification.
    Look(Option<VerifyTask>),
    /// To verify one guest's backups that the server did not verify within so many days.
    Verify(Vmid, u32),
}

/// What it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The backups that are stored there.
    Looked(ServerListing),
    /// It has begun.
    Verifies(VerifyTask),
    /// No, or nothing: a stable code and a sentence.
    Silent(ErrorCode, String),
}

pub async fn ask(asker: Asker, warrant: ServerWarrant, question: Question) -> Answer {
    match tokio::time::timeout(WAIT_MAX, attempt(&asker, &warrant, question)).await {
        Ok(answer) => answer,
        Err(_) => {
            let text = format!("the backup server did not answer within {} s", WAIT_MAX.as_secs());
            Answer::Silent(ErrorCode::Unavailable, text)
        }
    }
}

async fn attempt(asker: &Asker, warrant: &ServerWarrant, question: Question) -> Answer {
    let approval = warrant.approval();
    let meant = SealContext { target: &approval.name, backend: &approval.backend };
    let creds = match Creds::open(warrant.creds(), &asker.key, meant) {
        Ok(creds) => creds,
        Err(error) => return Answer::Silent(error.code(), chain(&error)),
    };
    let asked = async {
        let server = BackupServer::new(asker.dial.as_ref(), &approval.backend, &creds)?;
        Ok::<_, PbsError>(match question {
            Question::Look(running) => Answer::Looked(server.look(running.as_ref()).await?),
            Question::Verify(guest, days) => Answer::Verifies(server.verify(guest, days).await?),
        })
    };
    asked.await.unwrap_or_else(|error| Answer::Silent(error.code(), chain(&error)))
}
