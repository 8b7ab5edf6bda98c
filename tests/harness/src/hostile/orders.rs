//! Work orders of a stolen hub.
//!
//! In: dice, and the guests that the host reported. Out: an answer with orders: for guests of the host and for others, with
//! ids that it used before, taken back before they came, in texts that say nothing. What of it a host does is bounded by its
//! own budgets; the judge counts rows and operations. Deliberately absent: ordered restore tests, since the judge holds each
//! restore to a text that names its archive, and an order names none.

use holdfast_protocol::id::GuestUid;
use holdfast_protocol::report::Sections;
use power_disk::dice::Dice;
use serde_json::{Value, json};

use crate::fake_hub::Reply;

/// Ids come again and again.
const IDS: u64 = 400;

/// Puts orders into an answer, and says which.
pub fn write(dice: &mut Dice, sections: &Sections, mut answer: Value) -> (Reply, String) {
    let count = *dice.of_these(&[1, 1, 2, 4, 9]);
    let orders: Vec<(Value, &str)> = (0..count).map(|_| order(dice, sections)).collect();
    let words: Vec<&str> = orders.iter().map(|(_, what)| *what).collect();
    let what = format!("orders: {}", words.join("; "));
    answer["orders"] = orders.into_iter().map(|(order, _)| order).collect();
    (Reply::data(&answer), what)
}

fn order(dice: &mut Dice, sections: &Sections) -> (Value, &'static str) {
    let (act, what) = act(dice, sections);
    let end = *dice.of_these(&["2126-01-01T00:00:00Z", "2126-01-01T00:00:00Z", "1970-01-01T00:00:01Z"]);
    let text = match dice.below(12) {
        0 => "{".to_owned(),
        1 => json!({ "act": { "kind": "run", "line": "reboot" }, "expires_at": end }).to_string(),
        _ => json!({ "act": act, "expires_at": end }).to_string(),
    };
    let call = if dice.below(8) == 0 { "cancel" } else { "carry_out" };
    let id = format!("01950000-0000-7000-8000-{:012x}", dice.below(IDS));
    (json!({ "id": id, "call": call, "text": text }), what)
}

fn act(dice: &mut Dice, sections: &Sections) -> (Value, &'static str) {
    let known: Vec<GuestUid> = sections.guests.iter().flatten().filter_map(|guest| guest.uid).collect();
    let guest = match known.get(usize::try_from(dice.below(8)).unwrap_or_default()) {
        Some(uid) => uid.to_string(),
        None => "018f3c1e-0000-7000-8000-00000000dead".to_owned(),
    };
    match dice.below(8) {
        0 | 1 => (json!({ "kind": "backup_now", "guest": guest }), "a backup"),
        2 => (json!({ "kind": "snapshot", "guest": guest, "keep_s": 2_678_400 }), "a snapshot"),
        3 | 4 => (json!({ "kind": "restart_guest", "guest": guest, "timing": "at_once" }), "a restart"),
        5 | 6 => (json!({ "kind": "refresh" }), "a refresh"),
        _ => (json!({ "kind": "collect_diagnostics", "name": "journal" }), "a reading"),
    }
}
