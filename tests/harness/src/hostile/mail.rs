//! Signed jobs as a stolen hub sends them.
//!
//! In: dice and every text that ever passed through the hub. Out: the mailbox of one answer. Deliberately absent: a new
//! signature; a thief has none.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdfast_protocol::id::JobId;
use serde_json::{Value, json};

use super::document::spoil_bytes;
use power_disk::dice::Dice;

/// A text that passed through the hub.
#[derive(Clone, Debug)]
pub struct Captured {
    /// The id it was left under.
    pub id: JobId,
    pub text: String,
    /// Its description, in words.
    pub what: &'static str,
}

/// One thing in a mailbox.
#[derive(Clone, Debug)]
pub struct Mailed {
    /// Under which id it is left.
    pub id: String,
    pub text: String,
    /// Its description, in words.
    pub what: String,
}

/// One thing for the mailbox.
pub fn write(dice: &mut Dice, captured: &[Captured]) -> Mailed {
    let Some(one) = pick(dice, captured) else {
        return Mailed { id: id(dice), text: "{}".to_owned(), what: "nothing".to_owned() };
    };
    let mut mailed = Mailed { id: one.id.to_string(), text: one.text.clone(), what: one.what.to_owned() };
    let how = match dice.below(20) {
        0..8 => "again".to_owned(),
        8 => {
            mailed.id = id(dice);
            "under another id".to_owned()
        }
        9 | 10 => wrapped_anew(dice, &mut mailed.text),
        11..15 => edited(dice, &mut mailed.text),
        15 => swapped(dice, &mut mailed.text, captured),
        16 | 17 => spoil_bytes(dice, &mut mailed.text),
        18 => signatures(dice, &mut mailed.text),
        _ => {
            mailed.text = "A".repeat(usize::try_from(dice.below(200_000)).unwrap());
            "rubbish".to_owned()
        }
    };
    mailed.what = format!("{} {how}", mailed.what);
    mailed
}

/// Picks recent texts more often than old ones.
fn pick<'a>(dice: &mut Dice, captured: &'a [Captured]) -> Option<&'a Captured> {
    if captured.is_empty() {
        return None;
    }
    let recent = captured.len().saturating_sub(12);
    let list = if dice.below(3) == 0 { captured } else { &captured[recent..] };
    Some(dice.of_these(list))
}

fn id(dice: &mut Dice) -> String {
    let (a, b) = (dice.throw(), dice.throw());
    uuid::Builder::from_random_bytes(((u128::from(a) << 64) | u128::from(b)).to_be_bytes())
        .into_uuid()
        .to_string()
}

/// The same bytes and signatures in another envelope, as far as the text can be read.
fn wrapped_anew(dice: &mut Dice, text: &mut String) -> String {
    let Ok(envelope) = serde_json::from_str::<Value>(text) else { return "unreadable".to_owned() };
    *text = match dice.below(3) {
        0 => serde_json::to_string_pretty(&envelope).unwrap(),
        1 => format!(
            "{{\"signatures\":{},\"payload\":{},\"schema\":{}}}",
            envelope["signatures"], envelope["payload"], envelope["schema"]
        ),
        _ => format!(" \n{text}\t"),
    };
    "in another envelope".to_owned()
}

/// The payload, read, changed by a rule, and put back under the old signatures.
fn rewritten(text: &mut String, change: impl FnOnce(String) -> String) -> Option<()> {
    let mut envelope: Value = serde_json::from_str(text).ok()?;
    let payload = STANDARD.decode(envelope["payload"].as_str()?).ok()?;
    let payload = change(String::from_utf8(payload).ok()?);
    envelope["payload"] = json!(STANDARD.encode(payload));
    *text = envelope.to_string();
    Some(())
}

fn edited(dice: &mut Dice, text: &mut String) -> String {
    let edits: [(&str, &str); 9] = [
        ("\"vmid\":300", "\"vmid\":301"),
        ("web-1", "web-2"),
        ("disk-0", "disk-1"),
        ("backup_now", "destroy_guest"),
        ("\"host_epoch\":", "\"host_epoch\":1"),
        ("\"nonce\":\"0", "\"nonce\":\"1"),
        ("\"job_id\":\"0194", "\"job_id\":\"0195"),
        ("expires_at\":\"2026", "expires_at\":\"2027"),
        ("{\"schema\"", "{ \"schema\""),
    ];
    let (from, to) = *dice.of_these(&edits);
    let spoiled = dice.below(3) == 0;
    let done = rewritten(text, |payload| {
        let mut payload = payload.replacen(from, to, 1);
        if spoiled {
            spoil_bytes(dice, &mut payload);
        }
        payload
    });
    if done.is_some() { format!("with {to:?} for {from:?}") } else { "unreadable".to_owned() }
}

fn swapped(dice: &mut Dice, text: &mut String, captured: &[Captured]) -> String {
    let other = pick(dice, captured).and_then(|other| serde_json::from_str::<Value>(&other.text).ok());
    if let (Ok(mut envelope), Some(other)) = (serde_json::from_str::<Value>(text), other) {
        envelope["signatures"] = other["signatures"].clone();
        *text = envelope.to_string();
    }
    "with another's signatures".to_owned()
}

fn signatures(dice: &mut Dice, text: &mut String) -> String {
    let Ok(mut envelope) = serde_json::from_str::<Value>(text) else { return "unreadable".to_owned() };
    let Some(list) = envelope["signatures"].as_array_mut().filter(|list| !list.is_empty()) else {
        return "unsigned".to_owned();
    };
    let word = match dice.below(6) {
        0 => {
            list.clear();
            "without signatures"
        }
        1 => {
            let one = list[0].clone();
            list.extend(std::iter::repeat_n(one, 8));
            "with nine signatures"
        }
        2 => {
            list.truncate(1);
            "with one signature"
        }
        3 => {
            list.reverse();
            "with its signatures turned round"
        }
        4 => {
            list[0] = json!(list[0].as_str().unwrap_or_default().replace('\n', "\r\n"));
            "with other line ends"
        }
        _ => {
            let mut armour = list[0].as_str().unwrap_or_default().to_owned();
            spoil_bytes(dice, &mut armour);
            list[0] = json!(armour);
            "with a torn signature"
        }
    };
    *text = envelope.to_string();
    word.to_owned()
}
