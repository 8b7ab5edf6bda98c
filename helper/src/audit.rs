//! Audit line per call, accepted or refused, to the journal.
//!
//! In: what was received so far and how it ended. Out: one datagram. Every value in it was made by us or has a type
//! that holds no line end. Nothing is changed when the journal cannot be reached.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use crate::caller::Caller;
use crate::reply::{Outcome, Refusal, refusal};
use crate::request::{Request, Verb};

const JOURNAL: &str = "/run/systemd/journal/socket";
const NAME: &str = "holdfast-helper";
/// A journal that does not read delays a call no longer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The line, as it grows.
#[derive(Default)]
pub struct AuditLine {
    pub caller: Option<Caller>,
    request: Option<(Verb, String)>,
    journal: Option<UnixDatagram>,
}

impl AuditLine {
    /// Records the request.
    pub fn set_request(&mut self, request: &Request) {
        self.request =
            Some((request.verb(), request.target().map_or("-".to_owned(), |target| target.to_string())));
    }

    /// Makes sure beforehand that the line will have somewhere to go, where something is to be changed.
    pub fn reach_journal(&mut self, verb: Verb) -> Result<(), Refusal> {
        self.journal = reach();
        if self.journal.is_none() && verb.changes_something() {
            return Err(refusal!(Env, "{JOURNAL} cannot be reached: nothing was changed"));
        }
        Ok(())
    }

    /// Writes the line. Where that fails it is written to standard error, which a service's journal reads too.
    pub fn write(mut self, outcome: &Outcome) {
        let fields = self.fields(outcome);
        let journal = self.journal.take().or_else(reach);
        if journal.is_none_or(|journal| journal.send(fields.as_bytes()).is_err()) {
            eprintln!("{NAME}: {}", fields.trim_end().replace('\n', " "));
        }
    }

    fn fields(&self, outcome: &Outcome) -> String {
        let (code, message, priority) = match outcome {
            Ok(_) => ("OK", String::new(), 5),
            Err(refusal) => (refusal.code.as_str(), refusal.message.replace(char::is_control, " "), 4),
        };
        let caller = match self.caller {
            Some(Caller::Socket(uid)) => format!("uid {uid} by socket"),
            Some(Caller::Root(Some(uid))) => format!("root, logged in as uid {uid}"),
            Some(Caller::Root(None)) => "root".to_owned(),
            None => "an unknown caller".to_owned(),
        };
        let (verb, target) = self.request.as_ref().map_or(("?", "-"), |(verb, name)| (verb.as_str(), name));
        format!(
            "MESSAGE={verb} {target} for {caller}: {code} {message}\nPRIORITY={priority}\nSYSLOG_FACILITY=10\n\
             SYSLOG_IDENTIFIER={NAME}\nHOLDFAST_CODE={code}\nHOLDFAST_CALLER={caller}\nHOLDFAST_VERB={verb}\n\
             HOLDFAST_TARGET={target}\n"
        )
    }
}

fn reach() -> Option<UnixDatagram> {
    let socket = UnixDatagram::unbound().ok()?;
    socket.connect(JOURNAL).ok()?;
    socket.set_write_timeout(Some(TIMEOUT)).ok()?;
    Some(socket)
}
