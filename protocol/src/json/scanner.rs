//! Tokens of a JSON text, with the path of each.
//!
//! In: a text that a parser has read without an error of syntax, or a beginning of one. Out: where each key, bracket and
//! value ends, and the path there. Of other bytes it makes some tokens, and it never fails.

/// A reader that goes from token to token.
pub struct Scanner<'t> {
    text: &'t [u8],
    /// The offset after the last token.
    end: usize,
    /// The open objects and arrays, the outermost first.
    open: Vec<Level<'t>>,
}

/// An open object or array, and how far it is read.
enum Level<'t> {
    /// The key that was read last, with its quotes.
    Object { key: Option<&'t [u8]>, next: Next },
    /// The index of the element that was read last.
    Array { index: Option<usize> },
}

/// What a string in an object is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Key,
    Value,
}

impl<'t> Scanner<'t> {
    /// At the beginning of a text.
    pub const fn new(text: &'t [u8]) -> Self {
        Self { text, end: 0, open: Vec::new() }
    }

    /// The path of the last token: a key's own, and of a closing bracket that of its object or array. `.` is the whole.
    pub fn path(&self) -> String {
        let mut path = String::new();
        for level in &self.open {
            match level {
                Level::Object { key: Some(key), .. } => {
                    let separator = if path.is_empty() { "" } else { "." };
                    path.push_str(separator);
                    path.push_str(&plain(key));
                }
                Level::Array { index: Some(index) } => path.push_str(&format!("[{index}]")),
                Level::Object { key: None, .. } | Level::Array { index: None } => (),
            }
        }
        if path.is_empty() { ".".to_owned() } else { path }
    }

    /// An object's string is a key, or else the value of the key before it.
    fn enter(&mut self, token: &'t [u8]) {
        match self.open.last_mut() {
            Some(Level::Object { key, next: next @ Next::Key }) => (*key, *next) = (Some(token), Next::Value),
            Some(Level::Object { next, .. }) => *next = Next::Key,
            Some(Level::Array { index }) => *index = Some(index.map_or(0, |index| index + 1)),
            None => (),
        }
    }
}

/// The offsets at which the tokens end.
impl Iterator for Scanner<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let rest = self.text.get(self.end..)?;
        let blank =
            rest.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b',' | b':'))?;
        let rest = rest.get(blank..)?;
        let (token, _) = rest.split_at_checked(length(rest))?;
        match token {
            b"}" | b"]" => drop(self.open.pop()),
            _ => self.enter(token),
        }
        match token {
            b"{" => self.open.push(Level::Object { key: None, next: Next::Key }),
            b"[" => self.open.push(Level::Array { index: None }),
            _ => (),
        }
        self.end += blank + token.len();
        Some(self.end)
    }
}

/// How long the token is that a text begins with.
fn length(text: &[u8]) -> usize {
    match text.first() {
        Some(b'{' | b'}' | b'[' | b']') => 1,
        Some(b'"') => string_length(text),
        _ => {
            let ends = |byte: &u8| {
                matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b',' | b':' | b'{' | b'}' | b'[' | b']' | b'"')
            };
            text.iter().position(ends).unwrap_or(text.len())
        }
    }
}

/// With both quotes. A quote after a backslash is a character of the string.
fn string_length(text: &[u8]) -> usize {
    let mut is_escaped = false;
    let closing = text.iter().skip(1).position(|byte| {
        let closes = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        closes
    });
    closing.map_or(text.len(), |at| at + 2)
}

/// A key as it is meant, without quotes and escapes.
fn plain(key: &[u8]) -> String {
    serde_json::from_slice(key).unwrap_or_else(|_| String::from_utf8_lossy(key).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_has_its_path() {
        let text = br#" {"a": [1, {"b\"c": "d,e", "f" :null} ,[]], "g.h":{"\u0069":-1.5e3}} "#;
        let mut scanner = Scanner::new(text);
        let mut paths = Vec::new();
        let mut from = 0;
        while let Some(end) = scanner.next() {
            let token = text.get(from..end).unwrap().trim_ascii_start();
            let token = token.strip_prefix(b",").or_else(|| token.strip_prefix(b":")).unwrap_or(token);
            paths.push(format!("{} {}", String::from_utf8_lossy(token).trim(), scanner.path()));
            from = end;
        }
        let wanted = [
            "{ .",
            r#""a" a"#,
            "[ a",
            "1 a[0]",
            "{ a[1]",
            r#""b\"c" a[1].b"c"#,
            r#""d,e" a[1].b"c"#,
            r#""f" a[1].f"#,
            "null a[1].f",
            "} a[1]",
            "[ a[2]",
            "] a[2]",
            "] a",
            r#""g.h" g.h"#,
            "{ g.h",
            r#""\u0069" g.h.i"#,
            "-1.5e3 g.h.i",
            "} g.h",
            "} .",
        ];
        assert_eq!(paths, wanted);
    }

    #[test]
    fn bytes_that_are_no_json_have_an_end() {
        for text in
            [&b""[..], b"]]}", b"\"", b"\"\\", b"{{{[", b"\xff\xfe\x00", b"{\"a\" \"b\" 1 2 \"c", b"1\"2\"[3"]
        {
            let mut scanner = Scanner::new(text);
            let ends: Vec<usize> = scanner.by_ref().collect();
            assert!(ends.is_sorted_by(|one, next| one < next), "{text:?}: {ends:?}");
            assert_eq!(ends.last().copied().unwrap_or_default(), text.len());
            assert!(!scanner.path().is_empty());
        }
    }
}
