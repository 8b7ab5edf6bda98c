//! Comparison of two snapshots, with one of them in memory.
//!
//! In: two names of snapshots. Out: what changed. The earlier one is kept as it came, some 40 to 90 MB of a thousand hosts with
//! 44 guests each; the later one is compared as it comes.

use std::collections::BTreeMap;

use holdfast_protocol::id::HostId;
use holdfast_protocol::state::{Line, StateHead, StateHost, StateLine, StateTail};
use state_diff::{Comparison, HostChanges, Side, compare_hosts};

use super::source::{Part, read};
use crate::args::StateRef;
use crate::hub::Hub;
use crate::state_errors::StateCommandError;

/// The two ends of a document.
#[derive(Default)]
struct Ends(Option<StateHead>, Option<StateTail>);

impl Ends {
    fn side(self) -> Option<Side> {
        Some(Side { head: self.0?, tail: self.1? })
    }
}

/// A file has all customers; what the hub gives is narrowed already.
fn narrowed(host: Box<StateHost>, part: &Part) -> Option<StateHost> {
    match &part.customer {
        Some(customer) => host.of_customer(customer),
        None => Some(*host),
    }
}

/// Compares two snapshots.
pub async fn compare(
    hub: &Hub,
    (before, after): (&StateRef, &StateRef),
    part: &Part,
) -> Result<Comparison, StateCommandError> {
    let (mut earlier, mut ends) = (BTreeMap::<HostId, Vec<u8>>::new(), Ends::default());
    read(hub, before, part, |text, line| {
        match line {
            Line::Head(head) => ends.0 = Some(head),
            Line::Tail(tail) => ends.1 = Some(tail),
            Line::Host(host) => drop(earlier.insert(host.id, text.to_owned())),
        }
        Ok(())
    })
    .await?;
    let mut earlier_host = |id: &HostId| earlier.remove(id).and_then(|text| host_of(&text, part));
    let (mut found, mut ends_after) = (Vec::<Option<HostChanges>>::new(), Ends::default());
    read(hub, after, part, |_, line| {
        match line {
            Line::Head(head) => ends_after.0 = Some(head),
            Line::Tail(tail) => ends_after.1 = Some(tail),
            Line::Host(host) => {
                let old = earlier_host(&host.id);
                if let Some(new) = narrowed(host, part) {
                    found.push(compare_hosts(old.as_ref(), Some(&new)));
                } else if let Some(old) = old {
                    found.push(compare_hosts(Some(&old), None));
                }
            }
        }
        Ok(())
    })
    .await?;
    let gone = earlier.into_values().filter_map(|text| host_of(&text, part));
    found.extend(gone.map(|host| compare_hosts(Some(&host), None)));
    // Both were read to their ends, so both have them.
    let sides = ends.side().zip(ends_after.side());
    let sides = sides.ok_or(StateCommandError::None)?;
    Ok(Comparison::collect(sides, found))
}

/// The line was read once before.
fn host_of(text: &[u8], part: &Part) -> Option<StateHost> {
    match serde_json::from_slice(text) {
        Ok(StateLine::Host(host)) => narrowed(host, part),
        Ok(StateLine::Head(_) | StateLine::Tail(_)) | Err(_) => None,
    }
}
