//! Ended operations as a list, with repeats counted.
//!
//! Input: the last ended operations. Output: a limited number of lines, each an operation. Undone operations of one
//! kind on one guest with one code become one line: the last of them, with their count. So one cause does not hide the
//! others, and its count is not cut off by the length of the list. Only a limited number of operations is read. For a
//! cause that lasted longer the count is a minimum.

use std::collections::BTreeMap;

use holdfast_protocol::operation::Alike;
use rusqlite::Connection;

use super::StoreError;
use super::columns::time;

/// The number of ended operations that are read, newest first.
const LOOKED_THROUGH: u32 = 500;

pub(super) struct Line {
    pub serial: i64,
    /// It and those before it that failed alike, where there are any.
    pub alike: Option<Alike>,
}

struct Ended {
    serial: i64,
    kind: String,
    guest: String,
    opened_at: i64,
    /// Why it was undone.
    code: Option<String>,
}

/// The last lines, the newest first.
pub(super) fn lines(connection: &Connection, most: u32) -> Result<Vec<Line>, StoreError> {
    let sql = "SELECT serial, kind, guest, opened_at, CASE outcome WHEN 'undone' THEN
                   coalesce(json_extract(kept, '$.problem.code'), (SELECT json_extract(body, '$.undo_begun.problem.code') FROM event
                    WHERE operation = serial AND json_extract(body, '$.undo_begun') IS NOT NULL
                    ORDER BY number DESC LIMIT 1)) END
               FROM operation WHERE ended_at IS NOT NULL ORDER BY serial DESC LIMIT ?1";
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Ended {
            serial: row.get(0)?,
            kind: row.get(1)?,
            guest: row.get(2)?,
            opened_at: row.get(3)?,
            code: row.get(4)?,
        })
    };
    let limit = if most == 0 { 0 } else { LOOKED_THROUGH };
    let ended: Vec<Ended> = connection
        .prepare_cached(sql)
        .and_then(|mut select| select.query_map([limit], read)?.collect())
        .map_err(StoreError::sqlite("list ended operations"))?;
    let mut tries: BTreeMap<(&str, &str, &str), (u32, i64)> = BTreeMap::new();
    let mut lines: Vec<&Ended> = Vec::new();
    for one in &ended {
        let Some(code) = &one.code else {
            lines.push(one);
            continue;
        };
        let (count, first) = tries.entry((&one.kind, &one.guest, code)).or_insert((0, one.opened_at));
        (*count, *first) = (count.saturating_add(1), one.opened_at.min(*first));
        if *count == 1 {
            lines.push(one);
        }
    }
    let line = |one: &Ended| -> Result<Line, StoreError> {
        let tried = one.code.as_ref().and_then(|code| tries.get(&(&*one.kind, &*one.guest, &**code)));
        let alike = tried.filter(|(count, _)| *count > 1);
        let alike = match alike {
            Some((count, first)) => Some(Alike { count: *count, first_at: time(*first)? }),
            None => None,
        };
        Ok(Line { serial: one.serial, alike })
    };
    lines.into_iter().take(usize::try_from(most).unwrap_or(usize::MAX)).map(line).collect()
}
