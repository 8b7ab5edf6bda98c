//! Text of an explanation of a condition.

use holdfast_protocol::alert::{ExplanationView, MuteView, QuietView, QuietWindow, ReceiverExplanationView};

use super::table::{clean, list};
use super::time::{span, stamp};

/// What would become of a condition.
pub fn explanation(explained: &ExplanationView) -> String {
    let ExplanationView { code, severity, subject, .. } = explained;
    let seconds = |seconds: u32| span(u64::from(seconds));
    let mut text = list(&[
        ("Condition", format!("{code} ({severity}): {}", code.spec().meaning)),
        ("About", subject.clone()),
        ("Fires", format!("after {}", seconds(explained.fires_after_s))),
        ("Is over", format!("after {} without it", seconds(explained.clears_after_s))),
        ("Route", explained.route.clone().unwrap_or_else(|| "none: it is only in the log".to_owned())),
    ]);
    explained.receivers.iter().for_each(|one| text.push_str(&receiver(one)));
    if !explained.inhibited_by.is_empty() {
        let codes: Vec<&str> = explained.inhibited_by.iter().map(|code| code.as_str()).collect();
        text.push_str(&format!("\nMute while the same host has: {}\n", codes.join(", ")));
    }
    text
}

fn receiver(one: &ReceiverExplanationView) -> String {
    let seconds = |seconds: u32| span(u64::from(seconds));
    let entry = one.escalated_after_s.map(|after| format!(", once it fires for {}", seconds(after)));
    let mut text = format!("\n{}{}\n", one.receiver, entry.unwrap_or_default());
    let mut line = |name: &str, value: &str| text.push_str(&format!("  {name:<8}  {}\n", clean(value)));
    line("group", &one.group);
    let (wait, interval) = (seconds(one.group_wait_s), seconds(one.group_interval_s));
    let repeat = seconds(one.repeat_interval_s);
    line("pace", &format!("first after {wait}, changes every {interval}, repeated every {repeat}"));
    line("now", &verdict("it would be sent", one.fire_muted.as_ref()));
    line("its end", &verdict("it would be sent", one.resolve_muted.as_ref()));
    one.quiet_hours.iter().for_each(|hours| line("quiet", &quiet(hours)));
    text
}

fn verdict(good: &str, muted: Option<&MuteView>) -> String {
    muted.map_or_else(|| good.to_owned(), |mute| format!("it would not be sent: {}", mute.text))
}

fn quiet(hours: &QuietView) -> String {
    let window = |window: &QuietWindow| format!("{} to {}", stamp(window.from), stamp(window.until));
    let current =
        hours.current.as_ref().map_or_else(|| "not now".to_owned(), |now| format!("now, {}", window(now)));
    let next = hours.next.as_ref().map(|next| format!("; next {}", window(next))).unwrap_or_default();
    format!("{}: {current}{next}", hours.rule)
}
