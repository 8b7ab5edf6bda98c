//! Lines about data on a guest's root disk.

use holdfast_protocol::root_disk::{Coverage, Knowledge, LeftBehind, RootDiskData};
use jiff::Timestamp;

use super::time::{bytes, when};

/// What is known of it, a line for each place.
pub fn lines(known: Knowledge<'_>, now: Timestamp) -> Vec<String> {
    match known {
        Knowledge::Unknown(why) => vec![format!("unknown: {why}")],
        Knowledge::NoData => vec!["no data outside of volumes was found".to_owned()],
        Knowledge::Data(data) => places(data, now),
    }
}

fn places(data: &RootDiskData, now: Timestamp) -> Vec<String> {
    let mut lines: Vec<String> = data
        .items
        .iter()
        .map(|item| format!("{} ({}, {})", item.path.as_str(), item.kind.as_str(), bytes(item.bytes)))
        .collect();
    let more = match data.coverage {
        Coverage::Whole => "",
        Coverage::Partial => ", and there may be more",
    };
    lines.push(format!("as of {}{more}", when(data.at, now)));
    lines
}

/// What was signed of it.
pub fn signed(leaves: &LeftBehind) -> Vec<String> {
    match leaves {
        LeftBehind::Nothing => vec!["no data outside of volumes is reported".to_owned()],
        LeftBehind::Unlisted => vec!["whatever is there: it is unknown".to_owned()],
        LeftBehind::Listed(paths) => paths.iter().map(|path| path.as_str().to_owned()).collect(),
    }
}
