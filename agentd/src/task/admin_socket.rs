//! The task that serves the admin socket.
//!
//! In: one question. Out: one answer. When a person retries or forgets parked work, a line is also written to the
//! journal. It is written here so that the database keeps its one writer. The kernel reports who the caller is.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use agent_slots::withdrawal::TrialWithdrawal;
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::id::{HostId, OperationId};
use holdfast_protocol::job::SeenHost;
use holdfast_protocol::json::{self, chain};
use holdfast_protocol::operation::StepStatus;
use holdfast_protocol::report::{GuestStatus, Sections};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

mod escrow;
mod fields;
mod health;
mod inherited;
mod restore_tests;

pub use fields::spent_claim;

use super::diagnostics::Reader;
use super::metrics::MetricsSource;
use super::report::TokenAges;
use super::stop::Stop;
use super::token_exchange::TakeTokensCall;
use crate::execute::failpoint::Failpoints;
use crate::model::view::{HeavyView, HostSnapshot, ProgressLines};
use crate::port::admin_socket::{
    AgentStatus, Answer, ObservedTimes, QUESTION_BYTES_MAX, Question, Request, StatusSchema, Waiting,
};
use crate::port::clock::Clock;
use crate::port::helper::Helper;
use crate::port::host_replacement::HandOverFolder;
use crate::port::hub::Contact;
use crate::port::store::parked::{self, AnswerError};
use crate::port::store::start_failures::Forgiven;
use crate::port::store::{Store, StoreError};

/// A caller on the same host sends and reads at once; the disk may take a moment.
const ASKER_MAX: Duration = Duration::from_secs(4);

/// After the socket itself failed.
const PAUSE: Duration = Duration::from_secs(2);

/// A longer reason would not be read to its end.
const REASON_CHARS_MAX: usize = 500;

pub struct StatusTask {
    /// The id of this host.
    pub host: HostId,
    /// As people call us, and what they compare.
    pub own: SeenHost,
    pub hub: String,
    /// The state of the contact with the hub.
    pub contact: watch::Receiver<Contact>,
    /// Where parked work and recovery plans are kept.
    pub store: Store,
    pub helper: Helper,
    /// Where guests call.
    pub local_api: SocketAddr,
    /// What a lost host left, if this one took its place.
    pub handed: HandOverFolder,
    pub sections: watch::Receiver<Arc<Sections>>,
    /// Reads named things of the host.
    pub reader: Reader,
    /// What the page of metrics is made of.
    pub metrics: MetricsSource,
    /// Exchanges the tokens for Proxmox.
    pub take_tokens: TakeTokensCall,
    /// Says how old they are.
    pub token_ages: TokenAges,
    /// What the reconcile loop last saw.
    pub view: watch::Receiver<Arc<HostSnapshot>>,
    /// The latest line of each operation under way.
    pub lines: watch::Receiver<ProgressLines>,
    /// Which operations do heavy work, and which wait for a slot.
    pub heavy: watch::Receiver<HeavyView>,
    /// The withdrawal of the release on trial, as the hub last said it.
    pub withdrawal: watch::Receiver<Option<TrialWithdrawal>>,
    pub clock: Arc<dyn Clock>,
    /// Where tests stop the world.
    pub failpoints: Arc<dyn Failpoints>,
}

impl StatusTask {
    /// Answers until the agent stops.
    pub async fn run(self, listener: UnixListener, mut stop: Stop) {
        loop {
            let accepted = tokio::select! {
                () = stop.requested() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    if tokio::time::timeout(ASKER_MAX, self.serve(stream)).await.is_err() {
                        tracing::debug!("who came to the admin socket did not ask, or did not read");
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "the admin socket failed");
                    self.clock.sleep(PAUSE).await;
                }
            }
        }
    }

    fn now(&self) -> AgentStatus {
        AgentStatus {
            schema: StatusSchema::V1,
            at: self.clock.now(),
            seen_at: self.view.borrow().seen_at,
            times: ObservedTimes::of(&self.view.borrow().times),
            host_id: Some(self.host),
            host_name: self.own.name.clone(),
            fingerprint: self.own.fingerprint.clone(),
            hub: self.hub.clone(),
            contact: self.contact.borrow().clone(),
            sections: self.with_lines(),
            lanes: self.view.borrow().lanes.clone(),
            heavy: self.heavy.borrow().clone(),
            growth: self.view.borrow().growth.clone(),
            tokens: (self.token_ages)(),
        }
    }

    /// The report, with the last line of each step under way: too much for the hub, but right for an operator who
    /// watches.
    fn with_lines(&self) -> Sections {
        let mut sections = Sections::clone(&self.sections.borrow());
        let lines = self.lines.borrow();
        for operation in sections.operations.iter_mut().flatten() {
            let Some(line) = lines.get(&operation.id) else { continue };
            let under_way = |status| matches!(status, StepStatus::Intended | StepStatus::Undoing);
            for step in
                operation.steps.iter_mut().filter(|step| step.name == line.step && under_way(step.status))
            {
                step.note = Some(line.line.clone());
            }
        }
        sections
    }

    async fn serve(&self, mut stream: UnixStream) {
        let answer = match asker(&stream) {
            Ok(by) => self.answer(&mut stream, by).await,
            Err(problem) => Answer::Refused(problem),
        };
        let reported = match serde_json::to_vec(&answer) {
            Ok(bytes) => stream.write_all(&bytes).await,
            Err(error) => return tracing::error!(%error, "an answer cannot be written"),
        };
        if let Err(error) = reported {
            tracing::debug!(%error, "who came to the admin socket went away");
        }
    }

    async fn answer(&self, stream: &mut UnixStream, by: String) -> Answer {
        let mut bytes = Vec::new();
        // Reads a little more than is accepted: a caller that sent too much should get that answer, not a closed
        // socket.
        let bound = 8 * QUESTION_BYTES_MAX as u64;
        if let Err(error) = stream.take(bound).read_to_end(&mut bytes).await {
            return Answer::Refused(ErrorBody::new(
                ErrorCode::Syntax,
                format!("the question broke off: {error}"),
            ));
        }
        match json::parse::<Request>("the question", &bytes, QUESTION_BYTES_MAX) {
            Ok(request) => self.to(request.question, by).await,
            Err(error) => Answer::Refused(ErrorBody::new(error.code(), chain(&error))),
        }
    }

    async fn to(&self, question: Question, by: String) -> Answer {
        match question {
            Question::Status => Answer::Status(Box::new(self.now())),
            Question::Health => Answer::Health(self.health().await),
            Question::TrialWithdrawal => Answer::TrialWithdrawal(self.withdrawal.borrow().clone()),
            Question::Recovery { last } => reported(self.store.recoveries(last).await.map(Answer::Recovery)),
            Question::Escrow(question) => self.about_codes(question, by).await,
            Question::TakeUp { without } => self.take_up(without, by).await,
            Question::Fields { guest } => self.fields(&guest).await,
            Question::RestoreTests { guest } => self.restore_tests(&guest).await,
            Question::Metrics => Answer::Metrics(self.metrics.page()),
            Question::TakeTokens => match (self.take_tokens)().await {
                Ok(tokens) => Answer::TokensInUse(tokens),
                Err(error) => {
                    tracing::error!(error = chain(&error), "the tokens for Proxmox stay as they are");
                    Answer::Refused(ErrorBody::new(ErrorCode::Unavailable, chain(&error)))
                }
            },
            Question::Diagnose { name, guest } => Answer::Diagnosed(self.reader.text(name, guest).await),
            Question::Parked => reported(self.waiting().await.map(Answer::Parked)),
            Question::Forgive { guest } => {
                let done = self.store.forgive_starts(vec![guest], Forgiven::By(by), self.clock.now()).await;
                reported(done.map(|()| Answer::Forgiven))
            }
            Question::Retry { operation, entries } => {
                let answer = self.person(operation, entries, by);
                done(self.store.retry_parked(answer).await)
            }
            Question::Thaw { guest, reason } => {
                if let Some(refused) = no_reason(&reason) {
                    return refused;
                }
                let why = format!("by {by}: {reason}");
                reported(self.store.thaw(guest, why, self.clock.now()).await.map(Answer::Thawed))
            }
            Question::Forget { operation, entries, reason } => {
                if let Some(refused) = no_reason(&reason) {
                    return refused;
                }
                let answer = self.person(operation, entries, by);
                done(self.store.forget_parked(answer, reason).await)
            }
        }
    }

    async fn waiting(&self) -> Result<Waiting, StoreError> {
        let parked = self.store.parked().await?;
        let view = Arc::clone(&self.view.borrow());
        let broken = view.guests.iter().filter(|guest| guest.status == GuestStatus::Broken).cloned();
        Ok(Waiting { parked, broken: broken.collect() })
    }

    fn person(&self, operation: OperationId, entries: u32, by: String) -> parked::Answer {
        parked::Answer { operation, entries, by, at: self.clock.now() }
    }
}

/// Who the caller is, as the kernel reports it. The socket's mode demands the same; this check holds when the mode is
/// loosened.
fn asker(stream: &UnixStream) -> Result<String, ErrorBody> {
    let own = rustix::process::geteuid().as_raw();
    match stream.peer_cred().map(|who| who.uid()) {
        Ok(uid) if uid == 0 || uid == own => Ok(format!("uid {uid} at the box")),
        Ok(uid) => {
            let text = format!("user {uid} may not ask: only root and the agent's own user may");
            Err(ErrorBody::new(ErrorCode::Forbidden, text))
        }
        Err(error) => {
            Err(ErrorBody::new(ErrorCode::Forbidden, format!("the kernel does not say who asks: {error}")))
        }
    }
}

/// The refusal of a reason that is none.
fn no_reason(reason: &str) -> Option<Answer> {
    let length = reason.chars().count();
    if !reason.trim().is_empty() && length <= REASON_CHARS_MAX {
        return None;
    }
    let rule = format!("a reason has 1 to {REASON_CHARS_MAX} characters, this one has {length}");
    Some(Answer::Refused(ErrorBody::new(ErrorCode::Range, rule)))
}

fn reported(answer: Result<Answer, StoreError>) -> Answer {
    answer.unwrap_or_else(|error| Answer::Refused(ErrorBody::new(ErrorCode::Unavailable, chain(&error))))
}

fn done(outcome: Result<crate::operation::progress::OperationState, AnswerError>) -> Answer {
    match outcome {
        Ok(progress) => Answer::Done(Box::new(progress.view())),
        Err(error) => Answer::Refused(ErrorBody::new(error.code(), chain(&error))),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use agent_slots::health::PartState;
    use holdfast_protocol::job::act::Sha256Text;
    use holdfast_protocol::release::stored::WithdrawalReason;

    use super::*;
    use crate::port::admin_socket::{self, StatusError};
    use crate::port::clock::RealClock;
    use crate::task::stop;
    use crate::task::usage::UsageQueue;
    use holdfast_protocol::work_order::DiagnosticName;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_running_agent_reports_and_a_dead_one_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().to_owned();
        assert!(matches!(admin_socket::ask(&state), Err(StatusError::NotRunning { .. })));
        drop(admin_socket::open(&state).unwrap());
        assert!(
            matches!(admin_socket::ask(&state), Err(StatusError::NotRunning { .. })),
            "a dead agent's socket"
        );

        let listener = admin_socket::open(&state).unwrap();
        let contact = Contact {
            reached_at: None,
            problem: None,
            certificate_ends_at: "2026-12-01T00:00:00Z".parse().unwrap(),
        };
        let (_contact, contact) = watch::channel(contact);
        let (_sections, sections) = watch::channel(Arc::new(Sections::default()));
        let (_view, view) = watch::channel(Arc::new(HostSnapshot::default()));
        let heavy = watch::channel(HeavyView::default()).1;
        let clock: Arc<dyn Clock> = Arc::new(RealClock::start());
        let metrics = MetricsSource {
            sections: sections.clone(),
            usage: UsageQueue::default(),
            contact: contact.clone(),
            heavy: heavy.clone(),
            clock: Arc::clone(&clock),
        };
        let task = StatusTask {
            host: "018f3c1e-6b1f-7c1d-9d0a-2f6d1c0b7a55".parse().unwrap(),
            own: SeenHost {
                name: "box7".parse().unwrap(),
                fingerprint: "4f2a-9c01-77de-b3a8-0c11".parse().unwrap(),
            },
            hub: "https://hub".to_owned(),
            contact,
            store: Store::open(&state, RealClock::start().now()).unwrap(),
            helper: Helper::shipped(),
            local_api: ([127, 0, 0, 1], 1).into(),
            handed: HandOverFolder::of(&state),
            reader: Reader {
                sections: sections.clone(),
                tasks: Arc::new(|| Box::pin(async { Err("no Proxmox".to_owned()) })),
                clock: Arc::clone(&clock),
            },
            sections,
            take_tokens: Arc::new(|| Box::pin(async { Ok(BTreeMap::new()) })),
            token_ages: Arc::new(Vec::new),
            view,
            lines: watch::channel(ProgressLines::new()).1,
            metrics,
            heavy,
            withdrawal: watch::channel(Some(withdrawal())).1,
            clock,
            failpoints: Arc::new(crate::execute::failpoint::Nowhere),
        };
        let (stopper, stop) = stop::pair();
        let ask = async {
            let reported = tokio::task::spawn_blocking(move || story(&state)).await.unwrap();
            stopper.stop();
            reported
        };
        let (reported, ()) = tokio::join!(ask, task.run(listener, stop));
        assert_eq!((reported.host_name.as_str(), reported.seen_at), ("box7", None));
        assert_eq!(reported.fingerprint.as_str(), "4f2a-9c01-77de-b3a8-0c11");
    }

    fn withdrawal() -> TrialWithdrawal {
        TrialWithdrawal { manifest: Sha256Text::of(b"m"), reason: WithdrawalReason::Held }
    }

    /// Every question, and every refusal, and then the agent's status.
    fn story(state: &std::path::Path) -> AgentStatus {
        let put = |question| admin_socket::put(state, question);
        assert_eq!(put(Question::Parked).unwrap(), Answer::Parked(Waiting::default()));
        assert_eq!(put(Question::Recovery { last: 9 }).unwrap(), Answer::Recovery(Vec::new()));
        let Ok(Answer::Health(health)) = put(Question::Health) else { panic!("no health") };
        assert_eq!(
            (&health.records, &health.plan, &health.hub),
            (&PartState::Works, &PartState::NotYet, &PartState::NotYet)
        );
        assert!(matches!(health.local_api, PartState::Failed(_)), "nothing listens there");
        assert_eq!(put(Question::TrialWithdrawal).unwrap(), Answer::TrialWithdrawal(Some(withdrawal())));
        let operation = OperationId::new(uuid::Uuid::nil());
        let code = |question| match put(question) {
            Err(StatusError::Refused(problem)) => problem.code,
            other => panic!("{other:?}"),
        };
        assert_eq!(code(Question::Retry { operation, entries: 1 }), ErrorCode::NotFound);
        let diagnose = Question::Diagnose { name: DiagnosticName::Locks, guest: None };
        let Ok(Answer::Diagnosed(text)) = put(diagnose) else { panic!("no text") };
        assert_eq!(admin_socket::take_tokens(state).unwrap(), BTreeMap::new());
        assert!(text.starts_with("locks at ") && text.contains("not known: no Proxmox"), "{text}");
        assert_eq!(code(Question::RestoreTests { guest: "web-1".to_owned() }), ErrorCode::NotFound);
        let forget = |reason: &str| Question::Forget { operation, entries: 1, reason: reason.to_owned() };
        assert_eq!(code(forget("cleared by hand")), ErrorCode::NotFound);
        assert_eq!(code(forget(" ")), ErrorCode::Range);
        assert_eq!(code(forget(&"x".repeat(9_000))), ErrorCode::Size);
        assert_eq!(raw(state, b"{}"), ErrorCode::Missing);
        assert_eq!(raw(state, b""), ErrorCode::Syntax);
        let destroy = br#"{"schema":"holdfast.admin/v1","question":{"destroy":{"vmid":300}}}"#;
        assert_eq!(raw(state, destroy), ErrorCode::Version, "there is no such word");
        admin_socket::ask(state).unwrap()
    }

    fn raw(state: &std::path::Path, words: &[u8]) -> ErrorCode {
        use std::io::{Read as _, Write as _};
        let mut stream = std::os::unix::net::UnixStream::connect(state.join("agent.sock")).unwrap();
        stream.write_all(words).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        match serde_json::from_str(&text).unwrap() {
            Answer::Refused(problem) => problem.code,
            other => panic!("{other:?}"),
        }
    }
}
