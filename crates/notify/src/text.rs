//! Sentences that all channels share.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::fit::{Fitted, fit};
use crate::message::{Message, MessageState};

/// The text as one line of at most `max` characters. Longer text ends with `…`.
pub(crate) fn one_line(text: &str, max: usize) -> String {
    // Line separators and controls could end a header, or hide what follows.
    let plain = |c: char| if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') { ' ' } else { c };
    // Marks that reverse the reading direction could make a name look like another.
    let hidden = |c: &char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    let text: String = text.trim().chars().filter(|c| !hidden(c)).map(plain).collect();
    if text.chars().count() <= max {
        return text;
    }
    let mut cut: String = text.chars().take(max.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// The title with its state, or with its severity while it fires.
pub(crate) fn heading(message: &Message) -> String {
    let word = match message.state {
        MessageState::Firing => message.severity.as_str(),
        MessageState::Resolved | MessageState::Digest | MessageState::Test | MessageState::Flapping => {
            message.state.as_str()
        }
    };
    format!("[{word}] {}", message.title)
}

/// The line that stands for alerts that are not named.
pub(crate) fn more(omitted: u64) -> String {
    format!("and {omitted} more")
}

/// The time of a message, in UTC.
pub(crate) fn moment(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// The lines below the alerts.
pub(crate) fn foot(message: &Message) -> Vec<String> {
    let remedy = message.remedy.iter().map(|remedy| format!("Run: {remedy}"));
    let link = message.link.iter().map(|link| format!("See: {}", link.as_str()));
    remedy.chain(link).chain([moment(message.at)]).collect()
}

/// The body as plain text of at most `budget`, measured by `size`.
pub(crate) fn plain(message: &Message, budget: usize, size: impl Fn(&str) -> usize) -> String {
    let foot = foot(message).join("\n");
    let left = budget.saturating_sub(size(&foot)).saturating_sub(2);
    let Fitted { lines, omitted } =
        fit(message.alerts.iter().map(|alert| alert.text.clone()).collect(), message.omitted, left, size);
    let mut parts = lines;
    if omitted > 0 {
        parts.push(more(omitted));
    }
    if parts.is_empty() { foot } else { format!("{}\n\n{foot}", parts.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_and_says_when_it_was_cut() {
        for (text, max, line) in [
            ("short", 5, "short"),
            ("longer", 5, "long…"),
            ("日本語です", 5, "日本語です"),
            ("日本語ですか", 5, "日本語で…"),
            (" a\r\nBcc: x\u{2028}b ", 20, "a  Bcc: x b"),
            ("a\u{202e}b", 5, "ab"),
        ] {
            assert_eq!(one_line(text, max), line);
        }
    }

    #[test]
    fn times_are_in_utc_and_say_so() {
        assert_eq!(moment(Timestamp::from_second(1_785_679_380).unwrap()), "2026-08-02 14:03 UTC");
    }
}
