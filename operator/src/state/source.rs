//! Lines of a snapshot from the hub or a file.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use holdfast_protocol::filter::GuestFilter;
use holdfast_protocol::id::CustomerId;
use holdfast_protocol::state::document::LINE_BYTES_MAX;
use holdfast_protocol::state::{Line, StateReader, StateSnapshotView};

use crate::args::StateRef;
use crate::hub::{Hub, WHOLE};
use crate::state_errors::StateCommandError;

/// Which part of a snapshot.
#[derive(Clone, Debug, Default)]
pub struct Part {
    pub customer: Option<CustomerId>,
    pub filter: Option<GuestFilter>,
}

/// Lines out of pieces of bytes.
#[derive(Default)]
struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    fn push(
        &mut self,
        of: &StateRef,
        piece: &[u8],
        mut take: impl FnMut(&[u8]) -> Result<(), StateCommandError>,
    ) -> Result<(), StateCommandError> {
        let mut pieces = piece.split_inclusive(|byte| *byte == b'\n');
        pieces.try_for_each(|piece| {
            self.rest.extend_from_slice(piece);
            if self.rest.last() == Some(&b'\n') {
                self.rest.pop();
                let line = std::mem::take(&mut self.rest);
                return take(&line);
            }
            if self.rest.len() > LINE_BYTES_MAX {
                return Err(StateCommandError::Line { of: of.clone() });
            }
            Ok(())
        })
    }
}

/// Reads a snapshot, and passes each line on with what it says. It fails when the snapshot is not whole.
pub async fn read(
    hub: &Hub,
    of: &StateRef,
    part: &Part,
    mut take: impl FnMut(&[u8], Line) -> Result<(), StateCommandError>,
) -> Result<(), StateCommandError> {
    let document = |source| StateCommandError::Document { of: of.clone(), source };
    let (mut reader, mut lines) = (StateReader::default(), Lines::default());
    let mut line = |text: &[u8]| take(text, reader.take(text).map_err(document)?);
    match of {
        StateRef::File(path) => from_file(of, path, &mut lines, &mut line)?,
        StateRef::Now => {
            let (customer, filter) = (
                part.customer.as_ref().map(ToString::to_string),
                part.filter.as_ref().map(ToString::to_string),
            );
            let customer = customer.as_deref().map(|customer| ("customer", customer));
            let filter = filter.as_deref().map(|filter| ("filter", filter));
            let query: Vec<(&str, &str)> = customer.into_iter().chain(filter).collect();
            hub.stream(&["v1", "state"], &query, |piece| lines.push(of, piece, &mut line)).await??;
        }
        StateRef::Latest | StateRef::Number(_) | StateRef::Day(_) => {
            let number = kept(hub, of).await?.number.to_string();
            let customer = part.customer.as_ref().map(ToString::to_string);
            let query: Vec<(&str, &str)> = customer.iter().map(|one| ("customer", one.as_str())).collect();
            let path = ["v1", "state-snapshots", &number];
            hub.stream(&path, &query, |piece| lines.push(of, piece, &mut line)).await??;
        }
    }
    reader.end().map_err(document)
}

fn from_file(
    of: &StateRef,
    path: &Path,
    lines: &mut Lines,
    mut take: impl FnMut(&[u8]) -> Result<(), StateCommandError>,
) -> Result<(), StateCommandError> {
    let failed = |source| StateCommandError::Read { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(failed)?;
    let mut piece = vec![0; 256 * 1024];
    loop {
        let count = file.read(&mut piece).map_err(failed)?;
        if count == 0 {
            return Ok(());
        }
        lines.push(of, piece.get(..count).unwrap_or_default(), &mut take)?;
    }
}

/// All that the hub keeps, newest first.
pub async fn all_kept(hub: &Hub) -> Result<Vec<StateSnapshotView>, StateCommandError> {
    Ok(hub.list(&["v1", "state-snapshots"], &[], WHOLE).await?)
}

/// One that the hub keeps.
async fn kept(hub: &Hub, wanted: &StateRef) -> Result<StateSnapshotView, StateCommandError> {
    let all = all_kept(hub).await?;
    if all.is_empty() {
        return Err(StateCommandError::None);
    }
    let found = all.into_iter().find(|view| match wanted {
        StateRef::Number(number) => view.number == *number,
        StateRef::Day(day) => view.day == *day,
        StateRef::Latest => true,
        StateRef::Now | StateRef::File(_) => false,
    });
    found.ok_or_else(|| StateCommandError::NotKept { wanted: wanted.clone() })
}
