//! Answers at the status door, one asker after the other.

use std::sync::Arc;
use std::time::Duration;

use holdfast_protocol::id::HostName;
use holdfast_protocol::operation::StepStatus;
use holdfast_protocol::report::Sections;
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

use super::stop::Stop;
use crate::model::view::{ProgressLines, View};
use crate::port::clock::Clock;
use crate::port::hub::Contact;
use crate::port::status_door::{AgentStatus, StatusSchema};

/// An asker on the same box reads at once.
const WRITE_MAX: Duration = Duration::from_secs(2);

/// The loop.
pub struct StatusTask {
    /// Who we are.
    pub host_name: HostName,
    /// Our hub.
    pub hub: String,
    /// How we stand with it.
    pub contact: watch::Receiver<Contact>,
    /// The report.
    pub sections: watch::Receiver<Arc<Sections>>,
    /// What the reconcile loop last saw.
    pub view: watch::Receiver<Arc<View>>,
    /// The latest line of each operation under way.
    pub lines: watch::Receiver<ProgressLines>,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

impl StatusTask {
    /// Answers until the agent stops.
    pub async fn run(self, door: UnixListener, mut stop: Stop) {
        loop {
            let accepted = tokio::select! {
                () = stop.requested() => return,
                accepted = door.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    if tokio::time::timeout(WRITE_MAX, self.answer(stream)).await.is_err() {
                        tracing::debug!("who asked for the status did not read it");
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "the status door failed");
                    self.clock.sleep(WRITE_MAX).await;
                }
            }
        }
    }

    fn now(&self) -> AgentStatus {
        AgentStatus {
            schema: StatusSchema::V1,
            at: self.clock.now(),
            seen_at: self.view.borrow().seen_at,
            host_name: self.host_name.clone(),
            hub: self.hub.clone(),
            contact: self.contact.borrow().clone(),
            sections: self.with_lines(),
        }
    }

    /// The report, with what each step under way said last: too much news for the hub, just right for who looks on.
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

    async fn answer(&self, mut stream: UnixStream) {
        let told = match serde_json::to_vec(&self.now()) {
            Ok(bytes) => stream.write_all(&bytes).await,
            Err(error) => return tracing::error!(%error, "the status cannot be written"),
        };
        if let Err(error) = told {
            tracing::debug!(%error, "who asked for the status went away");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::clock::RealClock;
    use crate::port::status_door::{self, StatusError};
    use crate::task::stop;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_running_agent_tells_and_a_dead_one_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().to_owned();
        assert!(matches!(status_door::ask(&state), Err(StatusError::NotRunning { .. })));
        drop(status_door::open(&state).unwrap());
        assert!(
            matches!(status_door::ask(&state), Err(StatusError::NotRunning { .. })),
            "a dead agent's socket"
        );

        let door = status_door::open(&state).unwrap();
        let contact = Contact {
            reached_at: None,
            problem: None,
            certificate_ends_at: "2026-12-01T00:00:00Z".parse().unwrap(),
        };
        let (_contact, contact) = watch::channel(contact);
        let (_sections, sections) = watch::channel(Arc::new(Sections::default()));
        let (_view, view) = watch::channel(Arc::new(View::default()));
        let task = StatusTask {
            host_name: "box7".parse().unwrap(),
            hub: "https://hub".to_owned(),
            contact,
            sections,
            view,
            lines: watch::channel(ProgressLines::new()).1,
            clock: Arc::new(RealClock::start()),
        };
        let (stopper, stop) = stop::pair();
        let ask = async {
            let told = tokio::task::spawn_blocking(move || status_door::ask(&state)).await.unwrap().unwrap();
            stopper.stop();
            told
        };
        let (told, ()) = tokio::join!(ask, task.run(door, stop));
        assert_eq!((told.host_name.as_str(), told.seen_at), ("box7", None));
    }
}
