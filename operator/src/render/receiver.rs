//! Text of receivers and deliveries.

use holdfast_protocol::alert::{DeliveryOutcome, DeliveryView, ReceiverKind, ReceiverSettings, ReceiverView};
use jiff::Timestamp;

use super::table::{Field, NOTHING, Tone, plain, table};
use super::time::{age, ago, stamp};
use crate::screen::Style;

const RECEIVERS: [&str; 6] = ["NAME", "KIND", "WAITING", "OLDEST", "LAST", "FAILURE"];
const DELIVERIES: [&str; 7] = ["#", "AT", "RECEIVER", "OUTCOME", "TRIES", "TITLE", "REMARK"];

/// Receivers, those that fail first.
pub fn receivers(receivers: &[ReceiverView], now: Timestamp, style: Style) -> String {
    if receivers.is_empty() {
        return "The hub has no receiver, so no alert is sent: add [[receiver]] to hub.toml and run `systemctl reload hubd`.\n"
            .to_owned();
    }
    let mut sorted: Vec<&ReceiverView> = receivers.iter().collect();
    sorted.sort_by_key(|receiver| (!fails(receiver), &receiver.name));
    let rows = sorted.into_iter().map(|receiver| {
        let last = receiver.last.as_ref();
        let failure = receiver.failure.as_deref().or_else(|| {
            last.filter(|last| tone(last.outcome) == Tone::Bad).and_then(|last| last.remark.as_deref())
        });
        vec![
            plain(&receiver.name),
            plain(kind(receiver.kind)),
            (receiver.waiting.to_string(), if fails(receiver) { Tone::Bad } else { Tone::Plain }),
            plain(receiver.oldest.map_or_else(|| NOTHING.to_owned(), |oldest| age(oldest, now))),
            last.map_or_else(|| plain("never"), |last| last_field(last, now)),
            plain(failure.unwrap_or(NOTHING)),
        ]
    });
    let settings = receivers.iter().find_map(|receiver| receiver.settings);
    table(&RECEIVERS, rows, style) + &settings.map(|settings| in_force(settings, now)).unwrap_or_default()
}

fn in_force(settings: ReceiverSettings, now: Timestamp) -> String {
    let since = format!(
        "\nThese settings are in force since {} ({}).",
        stamp(settings.since),
        ago(settings.since, now)
    );
    match settings.changed_at {
        Some(changed) => format!(
            "{since}\nhub.toml or a receiver's file was changed on {}: `systemctl reload hubd` applies it.\n",
            stamp(changed)
        ),
        None => since + "\n",
    }
}

fn fails(receiver: &ReceiverView) -> bool {
    let last = receiver.last.as_ref();
    receiver.failure.is_some() || last.is_some_and(|last| tone(last.outcome) == Tone::Bad)
}

fn last_field(last: &DeliveryView, now: Timestamp) -> Field {
    (format!("{} {}", outcome(last.outcome), ago(last.at, now)), tone(last.outcome))
}

const fn kind(kind: ReceiverKind) -> &'static str {
    match kind {
        ReceiverKind::Alertmanager => "alertmanager",
        ReceiverKind::Gotify => "gotify",
        ReceiverKind::Matrix => "matrix",
        ReceiverKind::Ntfy => "ntfy",
        ReceiverKind::Slack => "slack",
        ReceiverKind::Smtp => "smtp",
        ReceiverKind::Teams => "teams",
        ReceiverKind::Telegram => "telegram",
        ReceiverKind::Webhook => "webhook",
    }
}

const fn outcome(outcome: DeliveryOutcome) -> &'static str {
    match outcome {
        DeliveryOutcome::Delivered => "delivered",
        DeliveryOutcome::Refused => "refused",
        DeliveryOutcome::GivenUp => "given up",
        DeliveryOutcome::Cancelled => "cancelled",
        DeliveryOutcome::Combined => "combined",
    }
}

const fn tone(outcome: DeliveryOutcome) -> Tone {
    match outcome {
        DeliveryOutcome::Delivered => Tone::Good,
        DeliveryOutcome::Refused | DeliveryOutcome::GivenUp => Tone::Bad,
        DeliveryOutcome::Cancelled | DeliveryOutcome::Combined => Tone::Plain,
    }
}

/// Deliveries in their order.
pub fn deliveries(deliveries: &[DeliveryView], style: Style) -> String {
    if deliveries.is_empty() {
        return "No notice was delivered or refused yet.\n".to_owned();
    }
    let rows = deliveries.iter().map(|delivery| {
        vec![
            plain(delivery.number),
            plain(stamp(delivery.at)),
            plain(&delivery.receiver),
            (outcome(delivery.outcome).to_owned(), tone(delivery.outcome)),
            plain(delivery.tries),
            plain(&delivery.title),
            plain(delivery.remark.as_deref().unwrap_or(NOTHING)),
        ]
    });
    table(&DELIVERIES, rows, style)
}
