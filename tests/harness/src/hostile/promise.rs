//! Backup policies that a stolen hub writes.
//!
//! In: dice, and the policies and guests of a document. Out: both changed for the worse, and how, in words. Guests are
//! under the honest policy at first, so the check compares a document's change with the policy in force.

use serde_json::{Value, json};

use power_disk::dice::Dice;

/// The honest policy's name.
pub const NAME: &str = "usual";

/// What a document may promise without a signature: few enough points that weeks are fast, and more than are honest.
pub const LIMITS: &str = "[backups]\nconsistency = \"application\"\nper_day = 8\nsnapshots_per_day = 8\n";

/// Calendars: none, far too dense, as dense as allowed, odd, and invalid texts.
const CALENDARS: [&str; 10] = [
    "minutely",
    "*:0/2",
    "hourly",
    "*:0/15",
    "03:00",
    "yearly",
    "2030-02-30 00:00",
    "02:30;reboot",
    "",
    "0/3:00",
];

/// The policies of an honest document: a backup every six hours, for which guests may request a window.
#[must_use]
pub fn honest() -> Value {
    let schedule = json!({
        "at": ["02:30", "08:30", "14:30", "20:30"], "zone": "UTC", "jitter_min": 5, "window_min": 60,
    });
    let local = json!({
        "target": "backup2", "schedule": schedule, "retention": { "keep": { "daily": 60 } },
        "consistency": "application",
    });
    json!([{ "name": NAME, "tiers": { "local": local } }])
}

/// Puts guests under the honest policy.
pub fn under(guests: &mut [Value]) {
    for guest in guests {
        guest["policy"] = json!(NAME);
    }
}

/// Damages the backup part of a document.
pub fn spoil(dice: &mut Dice, policies: &mut Value, guests: &mut [Value]) -> String {
    let local = "/0/tiers/local";
    let Some(tier) = policies.pointer_mut(local) else { return "no policy".to_owned() };
    match dice.below(14) {
        0..=2 => {
            // A schedule that stopped every backup once, and came into force at once.
            let schedule = json!({ "at": ["minutely"], "zone": "UTC", "jitter_min": 0, "window_min": 1440 });
            tier["schedule"] = schedule;
            tier["retention"] = json!("keep_all");
            "a promise raised beyond use".to_owned()
        }
        3 | 4 => {
            tier["schedule"]["at"] = json!([*dice.of_these(&CALENDARS)]);
            format!("backups at {}", tier["schedule"]["at"])
        }
        5 => {
            tier["schedule"]["window_min"] = json!(*dice.of_these(&[0, 1, 60, 720, 1440, 1441]));
            format!("a window of {}", tier["schedule"]["window_min"])
        }
        6 => {
            tier["schedule"]["jitter_min"] = json!(*dice.of_these(&[0, 60, 61, 720]));
            format!("a jitter of {}", tier["schedule"]["jitter_min"])
        }
        7 => {
            let keeps = [
                json!("keep_all"),
                json!({ "keep": { "last": 1 } }),
                json!({ "keep": { "daily": 1 } }),
                json!({ "keep": { "hourly": 400, "daily": 60 } }),
                json!({ "keep": {} }),
            ];
            tier["retention"] = dice.of_these(&keeps).clone();
            format!("retention {}", tier["retention"])
        }
        8 => {
            tier["target"] = json!(*dice.of_these(&["tank", "nowhere", "../backup2", "backup2,x"]));
            format!("backups to {}", tier["target"])
        }
        9 => {
            tier["consistency"] = json!(*dice.of_these(&["crash", "application", "none"]));
            format!("consistency {}", tier["consistency"])
        }
        10 => {
            policies[0]["tiers"] = json!({});
            "a policy without tiers".to_owned()
        }
        11 => {
            let schedule = json!({ "at": [*dice.of_these(&CALENDARS)], "zone": "UTC", "jitter_min": 0, "window_min": 30 });
            let keeps = dice.of_these(&[json!("keep_all"), json!({ "keep": { "last": 3 } })]).clone();
            policies[0]["tiers"]["snapshot"] = json!({ "schedule": schedule, "retention": keeps });
            "snapshots besides".to_owned()
        }
        12 => {
            for guest in guests.iter_mut().filter_map(Value::as_object_mut) {
                guest.remove("policy");
            }
            "no guest under a policy".to_owned()
        }
        _ => {
            *policies = json!([]);
            "no policies".to_owned()
        }
    }
}
