//! The rules that hold for the records that were read.
//!
//! In: the records. Out: advice in the order in which a person should read it, and whether everything was read.

use std::collections::BTreeMap;

use crate::plan::rescue_advice::{
    Advice, AgentFact, FileFacts, Replacement, SchemaFact, Soundness, of_file, of_frozen, of_operation,
    of_parked, of_unreadable, of_window,
};
use crate::port::store::rescue::{AgentProcess, RescueState, Rows};

/// Whether all could be read, and the audit holds.
pub fn is_complete(state: &RescueState) -> bool {
    fn whole<T>(rows: &Rows<T>) -> bool {
        rows.incomplete.is_none() && rows.not_understood == 0
    }
    let (findings, audit) = (&state.file.findings, &state.audit);
    whole(&state.open)
        && state.open.rows.iter().all(|operation| operation.unreadable.is_none())
        && whole(&state.parked)
        && whole(&state.windows)
        && whole(&state.guests)
        && whole(&state.backups)
        && whole(&state.tests)
        && whole(&state.targets)
        && (whole(findings) && findings.rows.is_empty())
        && (audit.broken.is_none() && audit.incomplete.is_none())
}

/// What is safe, what is not, and what to do.
pub fn advice(state: &RescueState) -> Vec<Advice> {
    let names: BTreeMap<&str, &str> =
        state.guests.rows.iter().map(|guest| (guest.uid.as_str(), guest.name.as_str())).collect();
    let name = |uid: &str| names.get(uid).map_or_else(|| uid.to_owned(), |name| (*name).to_owned());
    let mut all = of_file(facts(state), state.open.rows.len() + state.parked.rows.len());
    for operation in &state.open.rows {
        match &operation.view {
            Some(view) => all.extend(of_operation(view, operation.recover.as_ref())),
            None => all.push(of_unreadable(&operation.kind, &name(&operation.guest))),
        }
    }
    all.extend(state.parked.rows.iter().flat_map(of_parked));
    all.extend(state.windows.rows.iter().map(|window| of_window(&name(&window.guest))));
    let frozen = state.guests.rows.iter().filter(|guest| guest.access == "frozen");
    all.extend(frozen.map(|guest| of_frozen(&guest.name)));
    // Stable: within a kind the order is that of the rules.
    all.sort_by_key(|one| one.kind);
    all
}

fn facts(state: &RescueState) -> FileFacts {
    let file = &state.file;
    let is_damaged =
        !file.findings.rows.is_empty() || file.findings.incomplete.is_some() || file.damaged_copy.is_some();
    FileFacts {
        agent: match state.agent {
            AgentProcess::Running => AgentFact::Running,
            AgentProcess::Stopped | AgentProcess::Unknown => AgentFact::Stopped,
        },
        schema: match file.version {
            Some(version) if version > file.known_version => SchemaFact::Newer,
            Some(version) if version < file.known_version => SchemaFact::Older,
            Some(_) | None => SchemaFact::Same,
        },
        soundness: if is_damaged { Soundness::Damaged } else { Soundness::Sound },
        replacement: if file.replaced_by.is_some() { Replacement::Ordered } else { Replacement::None },
    }
}
