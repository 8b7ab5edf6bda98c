//! Numbers of what changed, for open pages.

use async_trait::async_trait;
use rusqlite::params;

use super::Sqlite;
use super::access::{ScopeColumns, has_labels};
use super::columns::{Id, Text};
use crate::domain::host::HostRef;
use crate::store::{PAGE_CHANGES_MAX, PageChange, PageChangeQuery, PageChanges, StoreError};

#[async_trait]
impl PageChanges for Sqlite {
    async fn newest_page_change(&self) -> Result<u64, StoreError> {
        self.read("read the newest change", |connection| {
            let sql = "SELECT coalesce(max(number), 0) FROM page_changes";
            let newest: i64 = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
            Ok(u64::try_from(newest).unwrap_or_default())
        })
        .await
    }

    async fn page_changes(&self, query: PageChangeQuery) -> Result<Vec<PageChange>, StoreError> {
        self.read("read changes", move |connection| {
            let ScopeColumns { labels, customer } = ScopeColumns::of(&query.scope)?;
            let (id, name) = match &query.host {
                None => (None, None),
                Some(HostRef::Id(id)) => (Some(Id(id.uuid())), None),
                Some(HostRef::Name(name)) => (None, Some(name.as_str())),
            };
            let sql = format!(
                "SELECT page_changes.number, hosts.name FROM page_changes
                     LEFT JOIN hosts ON hosts.id = page_changes.subject
                 WHERE page_changes.number > ?1 AND (?2 IS NULL OR hosts.id = ?2) AND (?3 IS NULL OR hosts.name = ?3)
                     AND CASE WHEN hosts.id IS NULL THEN ?4 IS NULL AND ?5 IS NULL
                         ELSE {} AND (?5 IS NULL OR EXISTS (SELECT 1 FROM reports, json_each(reports.guest_labels) AS guest
                             WHERE reports.host = hosts.number AND json_extract(guest.value, '$.customer') = ?5)) END
                 ORDER BY page_changes.number LIMIT ?6",
                has_labels("?4")
            );
            let after = i64::try_from(query.after).unwrap_or(i64::MAX);
            let parameters = params![after, id, name, labels, customer, PAGE_CHANGES_MAX];
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement.query_map(parameters, |row| {
                let host = row.get::<_, Option<Text<_>>>(1)?.map(|name| name.0);
                Ok(PageChange { number: u64::try_from(row.get::<_, i64>(0)?).unwrap_or_default(), host })
            })?;
            rows.collect()
        })
        .await
    }
}
