//! Preconditions about pools.
//!
//! In: a recorded list of all resources. Out: guests that were there, in their pools, up or down as listed. Only pools that show sums
//! count: elsewhere a row of a guest that no later call uses proves nothing.
use serde_json::Value;

use super::precondition::Premises;
use super::recording::Call;
use crate::fault::admin::Edit;

impl Premises<'_> {
    /// Guests of a pool that shows sums.
    pub(super) fn pool_sums(&mut self, number: usize, call: &Call) {
        let plain = call.path.split('?').next().unwrap_or_default();
        if call.method != "GET" || !plain.ends_with("/cluster/resources") || call.answer.status != 200 {
            return;
        }
        let rows = call.answer.body.as_ref().and_then(|body| body.get("data")).and_then(Value::as_array);
        let rows: Vec<Value> = rows.cloned().unwrap_or_default();
        let text = |row: &Value, key: &str| row.get(key).and_then(Value::as_str).map(str::to_owned);
        for pool in rows.iter().filter(|row| text(row, "type").as_deref() == Some("pool")) {
            let (Some(name), Some(_)) = (text(pool, "pool"), pool.get("maxmem")) else { continue };
            let of_pool = |row: &&Value| {
                text(row, "type").as_deref() == Some("lxc") && text(row, "pool").as_deref() == Some(&name)
            };
            for row in rows.iter().filter(of_pool) {
                let vmid = row.get("vmid").and_then(Value::as_u64).and_then(|vmid| u32::try_from(vmid).ok());
                let Some(vmid) = vmid else { continue };
                let up = text(row, "status").as_deref() == Some("running");
                let reported = ["name", "tags"].map(|key| text(row, key));
                self.listed_guest(number, vmid, &name, up, reported);
            }
        }
    }

    fn listed_guest(
        &mut self,
        number: usize,
        vmid: u32,
        pool: &str,
        up: bool,
        reported: [Option<String>; 2],
    ) {
        if !self.node.world().guests.has(vmid) {
            self.make(number, vmid);
            for (key, value) in ["hostname", "tags"].into_iter().zip(reported) {
                value
                    .into_iter()
                    .for_each(|value| self.edit(number, &Edit::Set { vmid, key: key.into(), value }));
            }
        }
        self.member(number, vmid, pool);
        if self.node.power.is_running(vmid) != up {
            self.edit(number, &if up { Edit::Start { vmid } } else { Edit::Stop { vmid } });
        }
    }
}
