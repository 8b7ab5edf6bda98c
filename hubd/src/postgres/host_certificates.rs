//! Certificates in use by host, and events of the CA.

use async_trait::async_trait;
use holdfast_protocol::id::HostId;

use super::columns::{Id, Text, Time};
use super::events::emit;
use super::sql;
use super::{Failed, Postgres};
use crate::domain::event::NewEvent;
use crate::store::{CaEvent, HostCertificate, HostCertificates, StoreError};

#[async_trait]
impl HostCertificates for Postgres {
    async fn host_certificates(&self) -> Result<Vec<HostCertificate>, StoreError> {
        self.read("list certificates of hosts", |connection| {
            let sql = "SELECT hosts.id AS id, name, pem, coalesce(not_after, certificate_ends_at) AS ends_at, seen_at FROM hosts
               LEFT JOIN certificates ON host = number AND generation = CASE used_generation WHEN 0 THEN issued_generation
                   ELSE used_generation END
               WHERE status <> 'revoked' ORDER BY name";
            let read = |row: &sql::Row<'_>| {
                Ok(HostCertificate {
                    host: HostId::new(row.get::<_, Id>("id")?.0),
                    name: row.get::<_, Text<_>>("name")?.0,
                    pem: row.get::<_, Option<String>>("pem")?,
                    ends_at: row.get::<_, Time>("ends_at")?.0,
                    seen_at: row.get::<_, Option<Time>>("seen_at")?.map(|at| at.0),
                })
            };
            connection.prepare_cached(sql)?.query_map([], read)?.collect()
        })
        .await
    }

    async fn record_ca_event(&self, event: CaEvent) -> Result<(), StoreError> {
        let recorded = self.write("record an event of the CA", move |tx| {
            let CaEvent { kind, message, at, correlation } = event;
            let event = NewEvent { at, kind: kind.event(), host: None, actor: None, correlation, message };
            emit(tx, &event)?;
            Ok::<_, Failed<std::convert::Infallible>>(())
        });
        recorded.await.map_err(StoreError::from)
    }
}
