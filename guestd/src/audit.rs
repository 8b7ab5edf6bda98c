//! `guestd audit`: audit records of this guest, verified by hash.
//!
//! What comes in: pages of `GET /v1/audit`. What goes out: the records as a table, or as one JSON document; exit code 1
//! and the number of the first record that fails the check. Compare a kept output with a later one to see whether the
//! log was changed. The head matches the one that the host reported to the hub.

use std::fmt::Write as _;

use holdfast_protocol::local::audit::{AuditPage, AuditRecord};
use jiff::Timestamp;

use crate::args::{AuditArgs, EXIT_DONE, EXIT_FAILED};
use crate::work::{Session, WorkError, print};

/// Five thousand records, well within the requests that a guest may send in a minute.
const PAGES_MAX: usize = 50;

pub async fn audit(args: &AuditArgs) -> Result<u8, WorkError> {
    let session = Session::open(&args.paths)?;
    let page = collect(&session, args.after).await?;
    let broken = first_broken(&page.records, args.after);
    print(args.output, &page, || table(&page))?;
    if let Some(number) = broken {
        eprintln!(
            "guestd: record {number} does not match its hash: it was changed on the host or in transit; notify its operator"
        );
        return Ok(EXIT_FAILED);
    }
    Ok(EXIT_DONE)
}

/// Joins all pages, up to the bound.
async fn collect(session: &Session, after: i64) -> Result<AuditPage, WorkError> {
    let mut whole: AuditPage = session.agent.audit(&session.token, after).await?;
    for _ in 1..PAGES_MAX {
        let Some(next) = whole.next else { break };
        let page: AuditPage = session.agent.audit(&session.token, next).await?;
        whole.records.extend(page.records);
        (whole.next, whole.head) = (page.next, page.head);
    }
    Ok(whole)
}

/// The first record that does not hold, or is not behind the one before it.
fn first_broken(records: &[AuditRecord], after: i64) -> Option<i64> {
    let mut last = after;
    records.iter().find_map(|record| {
        let number = record.line.number;
        let good = number > last && record.holds();
        last = number;
        (!good).then_some(number)
    })
}

fn table(page: &AuditPage) -> String {
    let mut text = String::new();
    for AuditRecord { line, .. } in &page.records {
        let at = Timestamp::from_microsecond(line.at_us).unwrap_or(Timestamp::UNIX_EPOCH);
        let at = at.strftime("%Y-%m-%d %H:%M:%S UTC");
        let operation = line.operation.as_ref().map(|id| format!(" operation {id}")).unwrap_or_default();
        // Writing to a String cannot fail.
        let _ =
            writeln!(text, "{:>8}  {at}  {}{operation} {}", line.number, line.action, plain(&line.detail));
    }
    let head = &page.head;
    let _ = writeln!(
        text,
        "{} records; the whole chain has {} and ends with {}",
        page.records.len(),
        head.number,
        head.chain
    );
    if let Some(next) = page.next {
        let _ = writeln!(text, "more records: guestd audit --after {next}");
    }
    text
}

/// What came from elsewhere must not move the cursor.
fn plain(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_debug().collect() } else { vec![c] }).collect()
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::audit::{AuditLine, Fields, chain, hex};
    use holdfast_protocol::report::AuditHead;

    use super::*;

    fn record(number: i64, detail: &str) -> AuditRecord {
        let before = [u8::try_from(number).unwrap(); 32];
        let fields = Fields { number, at_us: 0, action: "done", guest: Some("g"), operation: None, detail };
        let (action, guest, detail) = ("done".to_owned(), Some("g".to_owned()), detail.to_owned());
        let hash = hex(&chain(&before, fields));
        let line = AuditLine { number, at_us: 0, action, guest, operation: None, detail, chain: hash };
        AuditRecord { line, before: hex(&before) }
    }

    #[test]
    fn the_first_record_that_does_not_hold_is_named() {
        let good = [record(3, "a"), record(7, "b"), record(8, "c")];
        assert_eq!(first_broken(&good, 2), None);
        assert_eq!(first_broken(&good, 3), Some(3), "a record from before the place that was asked for");
        let mut changed = good.clone();
        changed[1].line.detail = "x".to_owned();
        assert_eq!(first_broken(&changed, 0), Some(7));
        let swapped = [good[1].clone(), good[0].clone()];
        assert_eq!(first_broken(&swapped, 0), Some(3));
    }

    #[test]
    fn a_detail_cannot_draw_on_the_terminal() {
        let head = AuditHead { number: 9, chain: "ab".to_owned() };
        let page = AuditPage { records: vec![record(3, "a\u{1b}[2Jb\n4")], next: Some(3), head };
        let text = table(&page);
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(!text.contains('\u{1b}') && text.contains("--after 3"), "{text}");
    }
}
