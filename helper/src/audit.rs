//! One structured line per call, accepted or refused, to the journal (or to syslog's socket where there is none).
//!
//! In: what was heard so far and how it ended. Out: one datagram. Every value in it was made by us or is of a type that
//! holds no line end. A deed is not begun when no journal can be reached.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use crate::door::Caller;
use crate::names::TargetName;
use crate::reply::{Code, Outcome, Refusal};
use crate::request::{Request, Verb};

const JOURNAL: &str = "/run/systemd/journal/socket";
const SYSLOG: &str = "/dev/log";
const NAME: &str = "holdfast-helper";
/// A journal that does not read holds nobody longer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The line, as it grows.
#[derive(Default)]
pub struct Line {
    pub caller: Option<Caller>,
    verb: Option<Verb>,
    target: Option<TargetName>,
    journal: Option<Journal>,
}

enum Journal {
    Native(UnixDatagram),
    Syslog(UnixDatagram),
}

impl Line {
    /// What is asked.
    pub fn heard(&mut self, request: &Request) {
        self.verb = Some(request.verb());
        self.target = request.target().cloned();
    }

    /// Makes sure beforehand that the line will have somewhere to go, where something is to be changed.
    pub fn reach_journal(&mut self, verb: Verb) -> Result<(), Refusal> {
        self.journal = Journal::reach();
        if self.journal.is_none() && verb.changes_something() {
            let says =
                format!("neither {JOURNAL} nor {SYSLOG} can be reached, and nothing is done unwritten");
            return Err(Refusal::new(Code::Env, says));
        }
        Ok(())
    }

    /// Writes the line. Where that fails it goes to standard error, which a service's journal reads too.
    pub fn write(mut self, outcome: &Outcome) {
        let journal = self.journal.take().or_else(Journal::reach);
        let message = self.message(outcome);
        let sent = match &journal {
            Some(Journal::Native(socket)) => socket.send(self.fields(&message, outcome).as_bytes()).is_ok(),
            // Facility `authpriv` (10), severity `notice` (5).
            Some(Journal::Syslog(socket)) => socket.send(format!("<85>{NAME}: {message}").as_bytes()).is_ok(),
            None => false,
        };
        if !sent {
            eprintln!("{NAME}: {message}");
        }
    }

    fn message(&self, outcome: &Outcome) -> String {
        let verb = self.verb.map_or("?", Verb::as_str);
        let target = self.target.as_ref().map_or("-", TargetName::as_str);
        let (code, says) = ending(outcome);
        format!("{verb} {target} for {}: {code} {says}", self.asker()).trim_end().to_owned()
    }

    fn asker(&self) -> String {
        match self.caller {
            Some(Caller::Socket { uid }) => format!("uid {uid} by socket"),
            Some(Caller::Root { login_uid: Some(uid) }) => format!("root, logged in as uid {uid}"),
            Some(Caller::Root { login_uid: None }) => "root".to_owned(),
            None => "an unknown caller".to_owned(),
        }
    }

    fn fields(&self, message: &str, outcome: &Outcome) -> String {
        let priority = if outcome.is_ok() { 5 } else { 4 };
        let mut fields =
            format!("MESSAGE={message}\nPRIORITY={priority}\nSYSLOG_FACILITY=10\nSYSLOG_IDENTIFIER={NAME}\n");
        fields.push_str(&format!("HOLDFAST_CODE={}\nHOLDFAST_CALLER={}\n", ending(outcome).0, self.asker()));
        if let Some(verb) = self.verb {
            fields.push_str(&format!("HOLDFAST_VERB={}\n", verb.as_str()));
        }
        if let Some(target) = &self.target {
            fields.push_str(&format!("HOLDFAST_TARGET={target}\n"));
        }
        fields
    }
}

impl Journal {
    fn reach() -> Option<Self> {
        let connect = |path: &str| {
            let socket = UnixDatagram::unbound().ok()?;
            socket.connect(path).ok()?;
            socket.set_write_timeout(Some(PATIENCE)).ok()?;
            Some(socket)
        };
        connect(JOURNAL).map(Self::Native).or_else(|| connect(SYSLOG).map(Self::Syslog))
    }
}

/// The code, and the sentence on one line.
fn ending(outcome: &Outcome) -> (&'static str, String) {
    match outcome {
        Ok(_) => ("OK", String::new()),
        Err(refusal) => (refusal.code.as_str(), refusal.says.replace(|c: char| c.is_control(), " ")),
    }
}
