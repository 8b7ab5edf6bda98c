//! Tests of a restore test in a booted scratch guest.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use e2e::wait;
use serde_json::{Value, json};

use super::guest::Guest;
use super::shop;
use super::stand::{self, SHOP, Stand};

/// A restore, a boot, a recovery, two stacks; nothing is measured by it.
const TRIED: Duration = Duration::from_secs(900);

/// A point outside the suite's run: a backup by schedule would stop what the suite measures.
#[expect(clippy::disallowed_methods, reason = "the agent under test goes by the machine's own clock")]
fn half_a_day_away() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    format!("{:02}:30", (now / 3_600 + 12) % 24)
}

/// Promises the guest a daily backup that is tested every week. The backup that the guest requested itself is tested at
/// once.
pub fn proves(stand: &Stand, shop: &Guest) {
    stand.step("a policy: the backup that stood still is tried in a scratch guest");
    let schedule = json!({ "at": [half_a_day_away()], "zone": "UTC", "jitter_min": 0, "window_min": 60 });
    let local = json!({
        "target": "backup2", "schedule": schedule, "retention": { "keep": { "last": 9 } },
        "consistency": "application", "restore_test_days": 7
    });
    stand.goal("backups that are tried", |document| {
        document["policies"] = json!([{ "name": "nightly", "tiers": { "local": local } }]);
        stand::guest_in(document, SHOP)["policy"] = json!("nightly");
    });
    let mut seen = Value::Null;
    let reported = wait::until("what the test shows", TRIED, || {
        seen = stand.reported(SHOP)?.map_or(Value::Null, |guest| guest["protection"].clone());
        Ok((seen["posture"]["is"] == "protected").then_some(()))
    });
    reported.unwrap_or_else(|error| panic!("{error}: {seen:#}"));
    println!("         {}", seen["posture"]["why"]);
    // The scratch guest is removed with its test; the copies that were restored by hand stay.
    wait::until("the scratch guest is gone", TRIED, || {
        let left = stand.stage.configurations()?;
        Ok(left.keys().all(|vmid| !(6_000..6_010).contains(vmid)).then_some(()))
    })
    .unwrap();
    shop::unharmed(stand, shop);
}
