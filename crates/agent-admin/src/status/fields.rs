//! `agentd status GUEST`: its fields side by side.

use std::fmt::Write as _;

use holdfast_protocol::report::InForce;

use super::table;
use crate::ago::ago;
use crate::port::admin_socket::FieldsView;

/// The page for people.
pub(super) fn page(view: &FieldsView) -> String {
    let mut page = format!("{} ({})\n", view.name, view.uid);
    let Some(read_at) = view.read_at else {
        page.push_str("Its configuration could not be read at the last look: `agentd status` tells why.\n");
        return page;
    };
    // Writing into a String cannot fail.
    let _infallible = writeln!(page, "Proxmox's configuration was read {}.\n", ago(read_at, view.at));
    let mut rows = table(&["FIELD", "DOCUMENT", "PROXMOX", "LAST CARRIED OUT", "WHEN"]);
    for state in &view.fields {
        let or_dash = |text: Option<&String>| text.cloned().unwrap_or_else(|| "-".to_owned());
        let observed = match state.in_force {
            InForce::Now => or_dash(state.observed.as_ref()),
            InForce::NextStart => format!("{} (from its next start)", or_dash(state.observed.as_ref())),
        };
        let applied = state.applied.as_ref();
        rows.add_row([
            state.field.path().to_owned(),
            or_dash(state.desired.as_ref()),
            observed,
            or_dash(applied.map(|applied| &applied.value)),
            applied.map_or_else(|| "-".to_owned(), |applied| ago(applied.at, view.at)),
        ]);
    }
    let _infallible = writeln!(page, "{rows}");
    for note in &view.notes {
        let _infallible = writeln!(page, "\n{note}");
    }
    page
}
