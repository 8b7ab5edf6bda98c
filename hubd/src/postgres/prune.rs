//! Deletion of rows past their time.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use super::columns::Time;
use super::sql::params;
use super::{Failed, Postgres, image_approvals};
use crate::store::{
    ALERT_LOG_KEPT, ANSWERS_KEPT, AUDIT_RECORDS_KEPT, CERTIFICATES_KEPT, DELIVERIES_KEPT,
    ENROLLMENT_REQUESTS_KEPT, EVENTS_KEPT, INVITES_KEPT, JOBS_KEPT, NOTICES_KEPT, Pruning, READINGS_KEPT,
    RESTORE_ORDERS_SHOWN, SILENCES_KEPT, StoreError, Term, VERSIONS_KEPT, WORK_ORDERS_KEPT, duty,
};

#[async_trait]
impl Pruning for Postgres {
    async fn prune(&self, term: &Term<duty::Upkeep>, now: Timestamp) -> Result<(), StoreError> {
        let before = move |kept: SignedDuration| now.checked_sub(kept).map_or(Time(Timestamp::MIN), Time);
        let action = "drop what is past its time";
        let pruned = self.write_fenced(term.fence(), action, move |tx| {
            tx.execute("DELETE FROM idempotency WHERE at < $1", [before(ANSWERS_KEPT)])?;
            tx.execute("DELETE FROM invites WHERE expires_at < $1", [before(INVITES_KEPT)])?;
            tx.execute(
                "DELETE FROM restores WHERE used_at IS NULL AND created_at < $1",
                [before(RESTORE_ORDERS_SHOWN)],
            )?;
            tx.execute("DELETE FROM tokens WHERE expires_at < $1", [before(INVITES_KEPT)])?;
            tx.execute(
                "DELETE FROM enrollment_requests WHERE state = 'pending' AND last_at < $1",
                [before(ENROLLMENT_REQUESTS_KEPT)],
            )?;
            tx.execute("DELETE FROM jobs WHERE submitted_at < $1", [before(JOBS_KEPT)])?;
            image_approvals::prune(tx, before(JOBS_KEPT))?;
            tx.execute("DELETE FROM work_orders WHERE created_at < $1", [before(WORK_ORDERS_KEPT)])?;
            tx.execute("UPDATE work_orders SET reading = NULL WHERE read_at < $1", [before(READINGS_KEPT)])?;
            tx.execute("DELETE FROM guest_audit WHERE received_at < $1", [before(AUDIT_RECORDS_KEPT)])?;
            tx.execute("DELETE FROM notices WHERE done_at < $1", [before(NOTICES_KEPT)])?;
            tx.execute(
                "DELETE FROM events WHERE number <= (SELECT max(number) FROM events) - $1",
                [EVENTS_KEPT],
            )?;
            tx.execute("DELETE FROM alert_silences WHERE until < $1", [before(SILENCES_KEPT)])?;
            for (table, kept) in [("alert_log", ALERT_LOG_KEPT), ("alert_deliveries", DELIVERIES_KEPT)] {
                let sql =
                    format!("DELETE FROM {table} WHERE number <= (SELECT max(number) FROM {table}) - $1");
                tx.execute(&sql, [kept])?;
            }
            tx.execute(
                "DELETE FROM desired WHERE (host, generation) IN (SELECT host, generation FROM
                     (SELECT host, generation, row_number() OVER (PARTITION BY host ORDER BY generation DESC) AS place
                      FROM desired) AS placed WHERE place > $1)",
                params![VERSIONS_KEPT],
            )?;
            tx.execute(
                "DELETE FROM certificates WHERE generation + $1 <=
                     (SELECT used_generation FROM hosts WHERE number = host)",
                params![CERTIFICATES_KEPT],
            )?;
            super::sessions::prune(tx, now)?;
            super::usage::prune(tx, now)?;
            Ok::<_, Failed<std::convert::Infallible>>(())
        });
        pruned.await.map_err(StoreError::from)
    }
}
