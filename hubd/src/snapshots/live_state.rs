//! The state of all hosts now, some hosts at a time.

use std::collections::BTreeSet;

use holdfast_protocol::filter::GuestFilter;
use holdfast_protocol::id::{GuestUid, HostName, Vmid};
use holdfast_protocol::state::{StateHead, StateHost, StateSchema, StateScope, StateTail, StateWriter};
use jiff::Timestamp;

use super::SnapshotError;
use crate::domain::state_snapshot::{StateSource, host_state};
use crate::store::SharedStore;

/// Hosts that are in memory at once. The report of one and its document have up to 1 MiB each.
const BATCH: u32 = 4;

/// A snapshot that is being made.
pub struct LiveState {
    store: SharedStore,
    scope: StateScope,
    now: Timestamp,
    place: Place,
    tail: Option<StateTail>,
}

/// How far it is.
enum Place {
    Begin,
    After(Box<StateWriter>, Option<(HostName, i64)>),
    End,
}

impl LiveState {
    #[must_use]
    pub const fn new(store: SharedStore, scope: StateScope, now: Timestamp) -> Self {
        Self { store, scope, now, place: Place::Begin, tail: None }
    }

    /// The end of the document, once it was given out.
    #[must_use]
    pub const fn tail(&self) -> Option<&StateTail> {
        self.tail.as_ref()
    }

    /// The next lines; none after the last one.
    ///
    /// # Errors
    /// [`SnapshotError`].
    pub async fn next_lines(&mut self) -> Result<Option<String>, SnapshotError> {
        let (mut writer, after, mut text) = match std::mem::replace(&mut self.place, Place::End) {
            Place::Begin => {
                let (writer, line) = StateWriter::begin(self.head())?;
                (Box::new(writer), None, line)
            }
            Place::After(writer, after) => (writer, after, String::new()),
            Place::End => return Ok(None),
        };
        let sources = self.store.state_sources(after, BATCH, self.now).await?;
        let is_end = sources.len() < BATCH as usize;
        let last = sources.last().map(|source| (source.view.name.clone(), source.number));
        for source in sources {
            if let Some(host) = select(source, &self.scope) {
                text.push_str(&writer.host(host)?);
            }
        }
        if is_end {
            let end = writer.end()?;
            text.push_str(&end.line);
            self.tail = Some(end.tail);
        } else {
            self.place = Place::After(writer, last);
        }
        Ok(Some(text))
    }

    fn head(&self) -> StateHead {
        StateHead {
            schema: StateSchema::V1,
            taken_at: self.now,
            hub_version: env!("CARGO_PKG_VERSION").to_owned(),
            scope: self.scope.clone(),
        }
    }
}

/// A guest, wherever it is named.
type GuestKey = (Option<GuestUid>, Option<Vmid>, String);

fn select(source: StateSource, scope: &StateScope) -> Option<StateHost> {
    let chosen = scope.filter.as_ref().map(|filter| chosen(&source, filter));
    let mut host = host_state(source);
    if let Some(customer) = &scope.customer {
        host = host.of_customer(customer)?;
    }
    match chosen {
        None => Some(host),
        Some(chosen) => host.narrowed(|guest| {
            let vmid = guest.current.as_ref().and_then(|current| current.vmid);
            chosen.contains(&(guest.uid, vmid, guest.name.clone()))
        }),
    }
}

/// A filter is about what hosts report.
fn chosen(source: &StateSource, filter: &GuestFilter) -> BTreeSet<GuestKey> {
    let reported = source.sections.guests.iter().flatten();
    let chosen = reported.filter(|guest| filter.selects(&source.view, guest));
    chosen.map(|guest| (guest.uid, guest.vmid, guest.name.clone())).collect()
}
