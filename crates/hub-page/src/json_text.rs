//! A document's text with line numbers and a meaning of each piece.
//!
//! In: a text that may be no JSON at all. Out: its lines, each made of pieces; and the line of a path. A text that is no JSON
//! has pieces too, and never fails.

/// What a piece of a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    Key,
    Text,
    Number,
    /// `true`, `false` and `null`.
    Word,
    /// Brackets, commas and white space.
    Plain,
}

impl Meaning {
    /// The class in the style sheet.
    #[must_use]
    pub const fn class(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Text => "text",
            Self::Number => "num",
            Self::Word => "lit",
            Self::Plain => "",
        }
    }
}

/// A piece of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'t> {
    pub text: &'t str,
    pub meaning: Meaning,
}

/// A line with its number, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line<'t> {
    pub number: usize,
    pub pieces: Vec<Piece<'t>>,
}

/// The lines of a text.
#[must_use]
pub fn lines(text: &str) -> Vec<Line<'_>> {
    text.lines().enumerate().map(|(at, line)| Line { number: at + 1, pieces: pieces(line) }).collect()
}

/// A JSON string has no line end, so each line can be read alone.
fn pieces(line: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let (length, meaning) = first(rest);
        let (text, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        found.push(Piece { text, meaning });
        rest = after;
    }
    found
}

/// Length and meaning of the piece that a text begins with.
fn first(text: &str) -> (usize, Meaning) {
    let is_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.');
    match text.chars().next() {
        Some('"') => {
            let length = string_length(text);
            let is_key = text.get(length..).is_some_and(|rest| rest.trim_start().starts_with(':'));
            (length, if is_key { Meaning::Key } else { Meaning::Text })
        }
        Some(c) if is_token(c) => {
            let length = text.find(|c| !is_token(c)).unwrap_or(text.len());
            let is_number = c.is_ascii_digit() || c == '-';
            (length, if is_number { Meaning::Number } else { Meaning::Word })
        }
        _ => (text.find(|c| c == '"' || is_token(c)).unwrap_or(text.len()), Meaning::Plain),
    }
}

/// With both quotes. A quote after a backslash is a character of the string.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !is_escaped => return at + 1,
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    text.len()
}

/// An open object or list.
enum Level {
    Object { key: String, is_value: bool },
    List { index: usize },
}

/// The line on which the value of a path begins, such as `guests[2].size.cores`; the nearest one around it where the text
/// does not have it.
#[must_use]
pub fn line_of(text: &str, path: &str) -> Option<usize> {
    let mut open: Vec<Level> = Vec::new();
    let mut best: Option<(usize, usize)> = None;
    for line in lines(text) {
        for piece in &line.pieces {
            match piece.meaning {
                Meaning::Key => {
                    if let Some(Level::Object { key, is_value }) = open.last_mut() {
                        piece.text.trim_matches('"').clone_into(key);
                        *is_value = true;
                    }
                    note(&open, path, line.number, &mut best);
                }
                Meaning::Text | Meaning::Number | Meaning::Word => note(&open, path, line.number, &mut best),
                Meaning::Plain => {
                    for c in piece.text.chars() {
                        step(&mut open, c);
                        if matches!(c, '{' | '[') {
                            note(&open, path, line.number, &mut best);
                        }
                    }
                }
            }
        }
    }
    best.map(|(_, line)| line)
}

fn step(open: &mut Vec<Level>, c: char) {
    match c {
        '{' => open.push(Level::Object { key: String::new(), is_value: false }),
        '[' => open.push(Level::List { index: 0 }),
        '}' | ']' => drop(open.pop()),
        ',' => match open.last_mut() {
            Some(Level::List { index }) => *index += 1,
            Some(Level::Object { is_value, .. }) => *is_value = false,
            None => {}
        },
        _ => {}
    }
}

/// Keeps the longest beginning of the path that was met, at its first line.
fn note(open: &[Level], path: &str, line: usize, best: &mut Option<(usize, usize)>) {
    let mut here = String::new();
    for level in open {
        match level {
            Level::Object { key, is_value: true } if here.is_empty() => here.push_str(key),
            Level::Object { key, is_value: true } => {
                here.push('.');
                here.push_str(key);
            }
            Level::List { index } => here.push_str(&format!("[{index}]")),
            Level::Object { is_value: false, .. } => {}
        }
    }
    let rest = path.strip_prefix(here.as_str());
    let is_around = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
    if is_around && best.is_none_or(|(length, _)| here.len() > length) {
        *best = Some((here.len(), line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "{\n  \"guests\": [\n    { \"name\": \"a\\\"b: {\", \"n\": -1.5e3 },\n    {\n      \"size\": {\n        \"cores\": 0\n      },\n      \"on\": true\n    }\n  ]\n}\n";

    #[test]
    fn each_piece_has_its_meaning_and_none_is_lost() {
        let all = lines(TEXT);
        for (line, text) in all.iter().zip(TEXT.lines()) {
            assert_eq!(line.pieces.iter().map(|piece| piece.text).collect::<String>(), text);
        }
        let meanings: Vec<(&str, Meaning)> = all[2]
            .pieces
            .iter()
            .filter(|piece| piece.meaning != Meaning::Plain)
            .map(|piece| (piece.text, piece.meaning))
            .collect();
        assert_eq!(
            meanings,
            [
                ("\"name\"", Meaning::Key),
                ("\"a\\\"b: {\"", Meaning::Text),
                ("\"n\"", Meaning::Key),
                ("-1.5e3", Meaning::Number)
            ]
        );
        for text in ["\"", "\"\\", "ä\"ö", "}}]]", "{\"a\" 1 \u{1F600}", "\\\"x"] {
            let back: String = lines(text)[0].pieces.iter().map(|piece| piece.text).collect();
            assert_eq!(back, text);
            assert!(line_of(text, "a.b").is_none_or(|line| line == 1));
        }
    }

    #[test]
    fn a_path_has_its_line() {
        for (path, line) in [
            ("guests", 2),
            ("guests[0].name", 3),
            ("guests[0].n", 3),
            ("guests[1]", 4),
            ("guests[1].size.cores", 6),
            ("guests[1].on", 8),
            // What is not there is looked for at what is around it.
            ("guests[1].size.memory_mib", 5),
            ("guests[7]", 2),
            (".", 1),
        ] {
            assert_eq!(line_of(TEXT, path), Some(line), "{path}");
        }
        assert_eq!(line_of("", "guests"), None);
    }
}
