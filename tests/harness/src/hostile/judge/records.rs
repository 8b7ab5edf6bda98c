//! What the agent's records and audit must show in a hostile run.
//!
//! In: the database, and what operators signed. Out: violations by the invariant's name.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::audit::hex;
use holdfast_protocol::id::JobId;
use holdfast_protocol::job::Verb;
use rusqlite::Connection;

use super::{HOUR_US, REFUSALS_PER_HOUR, TOUCHED_MAX, WINDOW_US, Watch};
use crate::hostile::desk::Desk;
use crate::hostile::rows;

impl Watch {
    pub(super) fn heads_are_in_the_books(
        &mut self,
        books: &Connection,
        heads: impl Iterator<Item = (u64, String)>,
    ) {
        let mut last = self.heads.keys().next_back().copied().unwrap_or(0);
        let mut found = Vec::new();
        for (number, chain) in heads {
            let kept: Option<Vec<u8>> = books
                .query_row("SELECT chain FROM audit WHERE number = ?1", [number.cast_signed()], |row| {
                    row.get(0)
                })
                .ok();
            if number > 0 && kept.is_none_or(|kept| hex(&kept) != chain) {
                found.push(format!("head {number} was told, and the books have another line there"));
            }
            if number < last {
                found.push(format!("head {number} was told after head {last}"));
            }
            last = last.max(number);
            self.heads = BTreeMap::from([(number, chain)]);
        }
        found.truncate(3);
        for what in found {
            self.wrong("I11", what);
        }
    }

    /// I2 and the bounds, by the lines of the audit.
    pub(super) fn the_audit_is_right(&mut self, books: &Connection, desk: &Desk) {
        let mut taken: BTreeMap<String, usize> = BTreeMap::new();
        let (mut refused, mut rosters) = (Vec::new(), 0);
        let figures = &mut self.figures;
        (figures.documents, figures.jobs, figures.audit) = ([0; 2], [desk.ordered.len(), 0, 0], 0);
        let mut select = books.prepare("SELECT at, action, coalesce(operation, '') FROM audit").unwrap();
        let mut rows = select.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let (at, action, of): (i64, String, String) =
                (row.get(0).unwrap(), row.get(1).unwrap(), row.get(2).unwrap());
            figures.audit += 1;
            match action.as_str() {
                "job_taken" => {
                    figures.jobs[1] += 1;
                    *taken.entry(of).or_default() += 1;
                }
                "job_refused" | "document_refused" | "set_back" => {
                    figures.jobs[2] += usize::from(action == "job_refused");
                    figures.documents[1] += usize::from(action == "document_refused");
                    refused.push(at);
                }
                "desired_accepted" => figures.documents[0] += 1,
                "operators_changed" => rosters += 1,
                _ => {}
            }
        }
        for (id, times) in taken {
            let known = id.parse::<JobId>().is_ok_and(|id| desk.ordered.contains_key(&id));
            if !known {
                self.wrong("I1", format!("job {id} was taken, and nobody signed it for this host"));
            }
            if times > 1 {
                self.wrong("I2", format!("job {id} was taken {times} times"));
            }
        }
        let policies = desk.ordered.values().filter(|job| job.act.verb() == Verb::PolicyUpdate).count();
        if rosters > policies + 1 {
            self.wrong("I2", format!("{rosters} rosters came into use, and {policies} were signed"));
        }
        refused.sort_unstable();
        let most = refused
            .iter()
            .enumerate()
            .map(|(first, at)| refused[first..].iter().take_while(|other| **other - at < HOUR_US).count());
        if let Some(most) = most.max().filter(|most| *most > REFUSALS_PER_HOUR) {
            self.wrong("bound", format!("{most} refusals were written within an hour"));
        }
    }

    /// I4: as many guests as the brake lets pass are stopped by documents, and no more.
    pub(super) fn the_brake_held(&mut self, books: &Connection) {
        let sql = "SELECT opened_at, guest FROM operation WHERE kind = 'stop' ORDER BY opened_at";
        let mut select = books.prepare(sql).unwrap();
        let stops: Vec<(i64, String)> =
            select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
        let most = stops.iter().enumerate().map(|(first, (at, _))| {
            let within = stops[first..].iter().take_while(|(other, _)| other - at < WINDOW_US);
            within.map(|(_, guest)| guest).collect::<BTreeSet<_>>().len()
        });
        if let Some(most) = most.max().filter(|most| *most > TOUCHED_MAX) {
            self.wrong("I4", format!("{most} guests were stopped by documents within a day"));
        }
    }

    pub(super) fn tables_are_bounded(&mut self, books: &Connection, now_us: i64, desk: &Desk) {
        for what in rows::too_many(books, now_us, desk.ordered.len()) {
            self.wrong("bound", what);
        }
        let operations = usize::try_from(rows::count(books, "operation")).unwrap();
        let most = usize::try_from(rows::OPERATIONS_PER_DAY).unwrap();
        self.figures.operations = operations;
        let before = std::mem::replace(&mut self.operations, operations);
        if before > 0 && operations - before > most {
            self.wrong("bound", format!("{} operations in one day", operations - before));
        }
    }
}
