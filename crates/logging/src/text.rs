//! An entry as a line for a terminal.

use crate::entry::Entry;

/// The line with its end. Text from elsewhere can neither move the cursor nor begin a line: what follows a line end is
/// indented, and other control characters are escaped.
pub fn line(entry: &Entry) -> String {
    let mut line = format!("{:.3} {:5} ", entry.timestamp, entry.level.as_str());
    for c in entry.sentence().chars() {
        match c {
            '\n' => line.push_str("\n    "),
            c if c.is_control() => line.extend(c.escape_default()),
            c => line.push(c),
        }
    }
    let ids = [
        ("guest", entry.guest.map(|id| id.to_string())),
        ("correlation_id", entry.correlation_id.map(|id| id.to_string())),
    ];
    for (name, id) in ids.into_iter().filter_map(|(name, id)| Some((name, id?))) {
        line.push_str(&format!(" {name}={id}"));
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use tracing::Level;

    use super::*;
    use crate::origin::Service;

    #[test]
    fn text_from_elsewhere_begins_no_line_and_moves_no_cursor() {
        let mut entry = Entry::new(Timestamp::UNIX_EPOCH, Level::WARN, Service::Hubd);
        entry.set("message", "one\nINFO forged\u{1b}[2J\r".to_owned());
        assert_eq!(line(&entry), "1970-01-01T00:00:00.000Z WARN  one\n    INFO forged\\u{1b}[2J\\r\n");
    }
}
