//! The file that root's service writes of the disks.
//!
//! ```text
//! holdfast-disks 1 1764211111        form, version, seconds since 1970
//! disk /dev/sda                      a device, as smartctl lists it
//! answer {"json_format_version": …   what smartctl printed, on one line
//! disk /dev/bus/0 megaraid,4
//! ```
//! In: its bytes. Out: one row for each disk. A disk without an answer, or with one that is unusable, is *unreadable*.
//! The texts in it come from the disks, so nothing of it is trusted but its form.

use holdfast_protocol::report::{DISKS_MAX, DiskReport, HardwareName};
use jiff::Timestamp;

use super::smartctl;

/// The whole file, in bytes: a hundred disks with full logs.
pub const FILE_BYTES_MAX: u64 = 2 * 1024 * 1024;

/// One answer, in bytes. The answer of a disk with a full log of self-tests has 20 KiB.
const ANSWER_BYTES_MAX: usize = 128 * 1024;

/// One reading of all disks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskReadings {
    pub read_at: Timestamp,
    /// In the order of the file, at most [`DISKS_MAX`].
    pub disks: Vec<DiskReport>,
    /// How many more there are.
    pub left_out: u32,
}

/// Why a file is unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DisksFileError {
    #[error("its first line is not `holdfast-disks 1 SECONDS`: another version of the package wrote it")]
    Header,
    #[error("an answer stands before the first disk")]
    Order,
}

/// Reads it. A line of another kind is ignored.
///
/// # Errors
/// [`DisksFileError`]; then nothing of it is used.
pub fn read(bytes: &[u8]) -> Result<DiskReadings, DisksFileError> {
    let mut lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let read_at = lines.next().and_then(header).ok_or(DisksFileError::Header)?;
    let mut rows: Vec<(HardwareName, Option<&[u8]>)> = Vec::new();
    let mut left_out = 0_u32;
    for line in lines {
        if let Some(device) = line.strip_prefix(b"disk ") {
            let device = HardwareName::clipped(&String::from_utf8_lossy(device));
            match device.filter(|_| rows.len() < DISKS_MAX) {
                Some(device) => rows.push((device, None)),
                None => left_out = left_out.saturating_add(1),
            }
        } else if let Some(answer) = line.strip_prefix(b"answer ").filter(|_| left_out == 0) {
            let row = rows.last_mut().ok_or(DisksFileError::Order)?;
            // A second line is no answer: then there is none that can be relied on.
            row.1 = if row.1.is_some() { Some(&[]) } else { Some(answer) };
        }
    }
    let disks = rows.into_iter().map(|(device, answer)| {
        let answer = answer.filter(|answer| answer.len() <= ANSWER_BYTES_MAX);
        smartctl::disk(device, answer.unwrap_or_default(), read_at)
    });
    Ok(DiskReadings { read_at, disks: disks.collect(), left_out })
}

fn header(line: &[u8]) -> Option<Timestamp> {
    let line = std::str::from_utf8(line).ok()?;
    let seconds = line.strip_prefix("holdfast-disks 1 ")?;
    seconds.parse().ok().and_then(|seconds| Timestamp::from_second(seconds).ok())
}
