//! Rules for a person at a host without a running agent.
//!
//! In: what was read of the records. Out: sentences, each of them something that is safe, something that is not, or a step to
//! take. What the journal leaves open is never safe: the task of an operation can still run in Proxmox without its agent.
//! Deliberately absent: the present state of the host, which nobody observed.

use holdfast_protocol::operation::{OperationStatus, OperationView};
use serde::{Deserialize, Serialize};

use super::recovery::Recover;
use crate::model::parked::ParkedEntry;

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advice {
    pub kind: AdviceKind,
    pub text: String,
}

/// What a rule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdviceKind {
    /// It must not be done.
    Never,
    /// It should be done, in this order.
    Step,
    /// It can be done.
    Safe,
}

impl Advice {
    fn new(kind: AdviceKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

/// The state of the file, as far as rules depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileFacts {
    pub agent: AgentFact,
    pub schema: SchemaFact,
    pub soundness: Soundness,
    /// Whether another machine replaces this host.
    pub replacement: Replacement,
}

/// Whether an agent holds the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AgentFact {
    #[default]
    Stopped,
    Running,
}

/// The version of the schema, compared with that of this program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchemaFact {
    #[default]
    Same,
    Older,
    Newer,
}

/// Whether all of the file could be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Soundness {
    #[default]
    Sound,
    Damaged,
}

/// Whether a signed order gave this host's place away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replacement {
    #[default]
    None,
    Ordered,
}

/// The rules for the file, before those for its operations.
#[must_use]
pub fn of_file(facts: FileFacts, open: usize) -> Vec<Advice> {
    use AdviceKind::{Never, Safe, Step};
    let mut all = vec![Advice::new(
        Never,
        "do not delete or edit agent.db, agent.db-wal or agent.db-shm: the last writes are in the second, and what was promised is nowhere else",
    )];
    let mut add = |kind, text: &str| all.push(Advice::new(kind, text));
    if facts.replacement == Replacement::Ordered {
        add(
            Never,
            "do not start the agent or the guests here: another machine has this host's place, and its guests may run there",
        );
    }
    if facts.soundness == Soundness::Damaged {
        add(Step, "copy the whole state folder to another disk first, and look at this disk: `dmesg`");
        add(
            Step,
            "put a good copy of agent.db in its place with the agent stopped; without one the agent sets the damaged file aside at its start, and only observes",
        );
        add(
            Never,
            "do not take a missing row below for a guest or operation that is not there: the page may be damaged",
        );
    }
    if facts.schema == SchemaFact::Newer {
        add(
            Step,
            "install the agentd that wrote this file: this one reads only what it knows, and would not start on it",
        );
    }
    if facts.agent == AgentFact::Running {
        add(
            Step,
            "an agent holds these records: ask it first (`agentd status`, `agentd parked list`); where it does not answer, `systemctl restart agentd` is safe at any moment",
        );
    }
    if open == 0 && facts.soundness == Soundness::Sound && facts.replacement == Replacement::None {
        add(
            Safe,
            "no operation is open: guests can be started, stopped and backed up in Proxmox by hand; the agent reads the host anew at its start",
        );
    } else if facts.replacement == Replacement::None {
        add(
            Safe,
            "starting the agent (`systemctl start agentd`) is safe: it looks at the host before it does anything again",
        );
    }
    add(
        Safe,
        "guests of which nothing is open below can be started, stopped and backed up in Proxmox by hand",
    );
    add(Safe, "reading is always safe: `pct list`, `pct config VMID`, and the task list of the node");
    all
}

/// The rules for an operation that has not ended.
#[must_use]
pub fn of_operation(view: &OperationView, recover: Option<&Recover>) -> Vec<Advice> {
    use AdviceKind::{Never, Safe, Step};
    let what = format!("{} of {}", view.kind.as_str(), view.name.as_str());
    if view.status == OperationStatus::Queued {
        return vec![Advice::new(Safe, format!("{what} was not begun: nothing of it is on the host"))];
    }
    let Some(vmid) = view.vmid else {
        return vec![Advice::new(
            Never,
            format!(
                "{what} has no VMID in its journal yet: do not remove a guest that nobody knows, it may be this one"
            ),
        )];
    };
    let mut all = vec![Advice::new(
        Never,
        format!(
            "do not remove a lock of guest {vmid} by hand, and do not start, stop, roll back or destroy it: {what} is open, and its task may still run"
        ),
    )];
    match recover {
        Some(Recover::Adopt { upid, .. }) => all.push(Advice::new(
            Step,
            format!("look in the task list of the node whether {upid} still runs, and let it end; the agent follows it when it starts"),
        )),
        Some(Recover::Probe { question, .. }) => all.push(Advice::new(
            Step,
            format!("leave it to the agent, which asks of {what} at its start: {question}"),
        )),
        Some(Recover::Undo) => all.push(Advice::new(
            Step,
            format!("leave what {what} made where it is: the agent takes it back when it starts"),
        )),
        Some(Recover::Park { remedy, .. }) => all.push(Advice::new(Step, remedy.clone())),
        Some(Recover::GoOn | Recover::Conclude | Recover::Wait) | None => {}
    }
    all
}

/// The rules for an operation whose journal cannot be read.
#[must_use]
pub fn of_unreadable(kind: &str, guest: &str) -> Advice {
    Advice::new(
        AdviceKind::Never,
        format!(
            "the journal of {kind} of guest {guest} cannot be read: leave that guest as it is, with its locks, until the agent that wrote it runs again"
        ),
    )
}

/// The rules for a parked operation: what it waits for was written down when it was parked.
#[must_use]
pub fn of_parked(entry: &ParkedEntry) -> Vec<Advice> {
    let what = format!("{} of {}", entry.kind.as_str(), entry.name.as_str());
    vec![
        Advice::new(AdviceKind::Step, format!("{what} is parked: {}", entry.remedy)),
        Advice::new(
            AdviceKind::Step,
            format!("then, with the agent running, `agentd parked retry {}`", entry.operation),
        ),
    ]
}

/// The rule for a guest with stopped programs.
#[must_use]
pub fn of_window(guest: &str) -> Advice {
    Advice::new(
        AdviceKind::Safe,
        format!(
            "programs of {guest} may be stopped for a backup: the guest agent starts them again by itself at its bound (`systemctl status guestd` in the guest)"
        ),
    )
}

/// The rule for a guest whose access is closed.
#[must_use]
pub fn of_frozen(guest: &str) -> Advice {
    Advice::new(
        AdviceKind::Step,
        format!(
            "two used the identity of {guest}: find the copy and end it, then `agentd thaw {guest} --reason WHY` with the agent running"
        ),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn view(status: &str, vmid: Option<u32>) -> OperationView {
        serde_json::from_value(json!({
            "id": "018f3c1e-0000-7000-8000-000000000001", "kind": "backup", "guest": "018f3c1e-6b1f-7c1d-9d0a-000000000001",
            "name": "web-1", "vmid": vmid, "status": status, "steps": [], "opened_at": "2026-11-21T02:50:00Z"
        }))
        .unwrap()
    }

    fn of_kind(all: &[Advice], kind: AdviceKind) -> Vec<&str> {
        all.iter().filter(|one| one.kind == kind).map(|one| one.text.as_str()).collect()
    }

    #[test]
    fn a_lock_of_an_open_operation_is_never_removed_by_hand() {
        let question = "is the archive there?".to_owned();
        let probe = Recover::Probe { question, blind: None };
        for recover in [Some(&probe), Some(&Recover::Undo), Some(&Recover::GoOn), None] {
            let all = of_operation(&view("running", Some(301)), recover);
            let never = of_kind(&all, AdviceKind::Never);
            assert!(never[0].contains("do not remove a lock of guest 301"), "{all:?}");
            assert_eq!(of_kind(&all, AdviceKind::Safe), [""; 0]);
        }
        let unknown = of_operation(&view("running", None), None);
        assert!(of_kind(&unknown, AdviceKind::Never)[0].contains("no VMID"), "{unknown:?}");
        let queued = of_operation(&view("queued", Some(301)), Some(&Recover::Wait));
        assert_eq!((of_kind(&queued, AdviceKind::Never).len(), queued.len()), (0, 1));
    }

    #[test]
    fn a_task_that_may_run_is_looked_for_first() {
        let known = super::super::recovery::TaskNameSource::Journal;
        let adopt = Recover::Adopt { upid: "UPID:pve1:1".to_owned(), known };
        let all = of_operation(&view("running", Some(301)), Some(&adopt));
        assert!(of_kind(&all, AdviceKind::Step)[0].contains("UPID:pve1:1"), "{all:?}");
    }

    #[test]
    fn guests_are_free_only_where_the_file_is_sound_and_nothing_is_open() {
        let free =
            |facts, open| of_file(facts, open).iter().any(|one| one.text.starts_with("no operation is open"));
        let sound = FileFacts::default();
        assert!(free(sound, 0));
        assert!(!free(sound, 1));
        assert!(!free(FileFacts { soundness: Soundness::Damaged, ..sound }, 0));
        let replaced = of_file(FileFacts { replacement: Replacement::Ordered, ..sound }, 0);
        assert!(
            of_kind(&replaced, AdviceKind::Never).iter().any(|text| text.contains("do not start the agent"))
        );
        assert!(!replaced.iter().any(|one| one.text.contains("systemctl start agentd")), "{replaced:?}");
        let newer = of_file(FileFacts { schema: SchemaFact::Newer, ..sound }, 0);
        assert!(of_kind(&newer, AdviceKind::Step)[0].contains("install the agentd that wrote this file"));
    }
}
