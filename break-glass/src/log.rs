//! The hash chain of what was done, one JSON line each.
//!
//! In: the file as it is, and what happened. Out: the line to append, or where the chain does not hold. The form is that
//! of the agent's audit. A line that was cut off while it was written was never acknowledged, and gives way. Openings
//! and ends always have room; refusals have half of it, since anybody with the agent's rights can cause them.

use holdfast_protocol::audit::{AuditLine, Fields, chain, hex};
use holdfast_protocol::id::JobId;
use jiff::Timestamp;

/// The file is at most this long.
pub const BYTES_MAX: usize = 8 * 1024 * 1024;

/// Refusals are written up to here.
const REFUSALS_MAX: usize = BYTES_MAX / 2;

/// One line is at most this long: a reason, the customers and the signers.
const DETAIL_MAX: usize = 4 * 1024;

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Opened,
    Refused,
    SessionBegan,
    SessionEnded,
    Closed,
}

impl Action {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Refused => "refused",
            Self::SessionBegan => "session_began",
            Self::SessionEnded => "session_ended",
            Self::Closed => "closed",
        }
    }
}

/// Why nothing is appended, or the file is not believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    #[error(
        "the log does not hold at line {0}: it was cut or changed; keep the file, and see who could write it"
    )]
    Broken(usize),
    #[error("the log is full: root moves it to another place, then the next line begins a new one")]
    Full,
}

/// A line to be appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// So much of the file is whole.
    pub whole: usize,
    pub line: String,
}

/// Makes the next line.
///
/// # Errors
/// [`LogError`]; nothing may be opened then.
pub fn append(
    file: &[u8],
    at: Timestamp,
    (action, job): (Action, Option<JobId>),
    detail: &str,
) -> Result<Appended, LogError> {
    let whole = file.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last.saturating_add(1));
    let lines = lines(file.get(..whole).unwrap_or_default())?;
    let before = lines.last().map(|line| unhex(&line.chain)).unwrap_or_default();
    let (number, at_us) =
        (i64::try_from(lines.len()).unwrap_or(i64::MAX).saturating_add(1), at.as_microsecond());
    let (operation, detail) = (job.map(|job| job.to_string()), clipped(detail));
    let action_text = action.as_str().to_owned();
    let operation_text = operation.as_deref();
    let hash = chain(
        &before,
        Fields {
            number,
            at_us,
            action: &action_text,
            guest: None,
            operation: operation_text,
            detail: &detail,
        },
    );
    let line =
        AuditLine { number, at_us, action: action_text, guest: None, operation, detail, chain: hex(&hash) };
    let mut line = serde_json::to_string(&line).map_err(|_| LogError::Full)?;
    line.push('\n');
    let most = room(action);
    if whole.saturating_add(line.len()) > most { Err(LogError::Full) } else { Ok(Appended { whole, line }) }
}

/// How long the file may become by such a line.
const fn room(action: Action) -> usize {
    match action {
        Action::Refused => REFUSALS_MAX,
        Action::Opened | Action::SessionBegan | Action::SessionEnded | Action::Closed => BYTES_MAX,
    }
}

/// Reads a file whose last line is whole, and holds every line to its hash.
///
/// # Errors
/// [`LogError::Broken`], with the first line that does not hold.
pub fn lines(file: &[u8]) -> Result<Vec<AuditLine>, LogError> {
    let (mut lines, mut before) = (Vec::new(), Vec::new());
    for (count, text) in (1..).zip(file.split_inclusive(|byte| *byte == b'\n')) {
        let broken = LogError::Broken(count);
        let line: AuditLine = serde_json::from_slice(text).map_err(|_| broken.clone())?;
        let fields = Fields {
            number: line.number,
            at_us: line.at_us,
            action: &line.action,
            guest: line.guest.as_deref(),
            operation: line.operation.as_deref(),
            detail: &line.detail,
        };
        let hash = chain(&before, fields);
        if usize::try_from(line.number) != Ok(count) || line.chain != hex(&hash) {
            return Err(broken);
        }
        before = hash.to_vec();
        lines.push(line);
    }
    Ok(lines)
}

fn unhex(text: &str) -> Vec<u8> {
    // It was compared with a hash just now.
    hex::decode(text).unwrap_or_default()
}

fn clipped(detail: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    detail.chars().map(plain).take(DETAIL_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown(count: usize) -> Vec<u8> {
        let mut file = Vec::new();
        for n in 0..count {
            let at = Timestamp::from_second(1_700_000_000).unwrap();
            let next = append(&file, at, (Action::Refused, None), &format!("line {n}")).unwrap();
            assert_eq!(next.whole, file.len());
            file.extend(next.line.into_bytes());
        }
        file
    }

    #[test]
    fn each_changed_byte_is_noticed() {
        let file = grown(3);
        assert_eq!(lines(&file).unwrap().len(), 3);
        for at in 0..file.len() {
            let mut other = file.clone();
            other[at] ^= 1;
            assert!(lines(&other).is_err(), "byte {at}");
        }
        let second = file.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        assert_eq!(lines(&file[second..]), Err(LogError::Broken(1)));
    }

    #[test]
    fn a_line_that_was_cut_off_gives_way() {
        let (file, at) = (grown(3), Timestamp::from_second(1_700_000_000).unwrap());
        let cut = &file[..file.len() - 5];
        let next = append(cut, at, (Action::Opened, None), "after a crash").unwrap();
        let mut whole = cut[..next.whole].to_vec();
        whole.extend(next.line.into_bytes());
        assert_eq!(lines(&whole).unwrap().last().unwrap().number, 3);
    }

    #[test]
    fn refusals_leave_room_for_openings() {
        for (action, length, has) in [
            (Action::Refused, REFUSALS_MAX, true),
            (Action::Refused, REFUSALS_MAX + 1, false),
            (Action::Opened, REFUSALS_MAX + 1, true),
            (Action::Closed, BYTES_MAX, true),
            (Action::Opened, BYTES_MAX + 1, false),
        ] {
            assert_eq!(room(action) >= length, has, "{action:?} {length}");
        }
    }

    #[test]
    fn a_line_is_bounded_and_plain() {
        assert_eq!(clipped(&"é".repeat(DETAIL_MAX * 2)).chars().count(), DETAIL_MAX);
        assert_eq!(clipped("a\nb\u{1b}[2J"), "a b [2J");
    }
}
