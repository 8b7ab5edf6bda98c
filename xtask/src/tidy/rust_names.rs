//! Declared names of a Rust file, by a small tokenizer.
//!
//! In: source text. Out: the names of types, traits, functions, modules, constants, fields and variants, each with its
//! line. Strings, characters and comments are skipped. Names that a macro declares are read where they have the same
//! form.

/// What a name is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A struct, enum, union, trait or alias.
    Type,
    Module,
    /// A function, constant, static, field or variant.
    Other,
}

impl Kind {
    pub fn is_type_or_module(self) -> bool {
        matches!(self, Self::Type | Self::Module)
    }
}

/// A declared name.
#[derive(Debug, PartialEq, Eq)]
pub struct Name {
    pub text: String,
    pub line: usize,
    pub kind: Kind,
}

#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Punctuation(char),
}

/// The names that a file declares.
pub fn names(text: &str) -> Vec<Name> {
    let tokens = tokens(text);
    let mut names = Vec::new();
    for (at, (token, _)) in tokens.iter().enumerate() {
        let Token::Word(keyword) = token else { continue };
        let kind = match keyword.as_str() {
            "struct" | "enum" | "union" | "trait" | "type" => Kind::Type,
            "mod" => Kind::Module,
            "fn" | "const" | "static" => Kind::Other,
            _ => continue,
        };
        let Some((Token::Word(name), line)) = tokens.get(at + 1) else { continue };
        if matches!(name.as_str(), "fn" | "mut" | "unsafe" | "async" | "extern") {
            continue;
        }
        names.push(Name { text: name.clone(), line: *line, kind });
        match keyword.as_str() {
            "struct" | "union" => members(&tokens, at + 2, Members::Fields, &mut names),
            "enum" => members(&tokens, at + 2, Members::Variants, &mut names),
            _ => {}
        }
    }
    names
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Members {
    Fields,
    Variants,
}

/// The fields of a struct, or the variants of an enum and their fields: from behind its name to its closing brace.
fn members(tokens: &[(Token, usize)], from: usize, what: Members, names: &mut Vec<Name>) {
    let mut depth = 0_usize;
    let mut previous = ' ';
    for (at, (token, line)) in tokens.iter().enumerate().skip(from) {
        match token {
            Token::Punctuation(';') if depth == 0 => return,
            // A tuple struct has no field names; brackets before the brace are bounds.
            Token::Punctuation('{') => depth += 1,
            Token::Punctuation('}') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return;
                }
            }
            Token::Word(word) if depth > 0 => {
                let next = |ahead: usize| match tokens.get(at + ahead) {
                    Some((Token::Punctuation(c), _)) => *c,
                    _ => ' ',
                };
                let is_field = next(1) == ':' && next(2) != ':' && previous != ':';
                let is_variant =
                    what == Members::Variants && depth == 1 && matches!(previous, '{' | ',' | ']');
                let is_variant = is_variant && matches!(next(1), ',' | '(' | '{' | '}' | '=');
                if is_field || is_variant {
                    names.push(Name { text: word.clone(), line: *line, kind: Kind::Other });
                }
            }
            _ => {}
        }
        previous = match token {
            Token::Punctuation(c) => *c,
            Token::Word(_) => ' ',
        };
    }
}

/// Words and punctuation, each with its line.
fn tokens(text: &str) -> Vec<(Token, usize)> {
    let mut tokens = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while let Some(c) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = raw_string(rest) {
            length
        } else if c == '"' {
            string(rest)
        } else if let Some(length) = character(rest) {
            length
        } else if c.is_alphanumeric() || c == '_' {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let (word, _) = rest.split_at(end);
            tokens.push((Token::Word(word.to_owned()), line));
            end
        } else {
            if !c.is_whitespace() {
                tokens.push((Token::Punctuation(c), line));
            }
            c.len_utf8()
        };
        let (read, after) = rest.split_at(length);
        line += read.matches('\n').count();
        rest = after;
    }
    tokens
}

/// The length of a string that starts here.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of a raw or byte string that starts here.
fn raw_string(text: &str) -> Option<usize> {
    let after = ["br", "cr", "r"].iter().find_map(|prefix| text.strip_prefix(prefix))?;
    let content = after.trim_start_matches('#');
    let hashes = "#".repeat(after.len() - content.len());
    let content = content.strip_prefix('"')?;
    let start = text.len() - content.len();
    let end = content.find(&format!("\"{hashes}")).map_or(content.len(), |end| end + 1 + hashes.len());
    Some(start + end)
}

/// The length of a character that starts here; a lifetime is none.
fn character(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('\'')?;
    let mut chars = inside.char_indices();
    let (_, first) = chars.next()?;
    if first == '\\' {
        let (_, escaped) = chars.next()?;
        let from = 1 + escaped.len_utf8();
        return inside.get(from..)?.find('\'').map(|end| 1 + from + end + 1);
    }
    let (end, close) = chars.next()?;
    (close == '\'').then_some(1 + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        names(text).into_iter().map(|name| name.text).collect()
    }

    #[test]
    fn declared_names_are_found_with_their_members() {
        let text = "pub struct A<'a, T: Copy> { pub(crate) b: &'a [T], #[serde(default)] c: d::E }\n\
                    struct F(u8, G);\nstruct H;\n\
                    enum I { J, #[default] K(L), M { n: u8 }, O = 3 }\n\
                    const fn p(q: u8) -> u8 { R { s: q }.s }\nconst T: u8 = b'\\'';\nstatic mut U: u8 = 1;\n\
                    mod v { fn w() {} }\ntrait X { type Y; const Z: u8; }";
        assert_eq!(
            found(text),
            ["A", "b", "c", "F", "H", "I", "J", "K", "M", "n", "O", "p", "T", "v", "w", "X", "Y", "Z"]
        );
    }

    #[test]
    fn strings_characters_and_comments_are_skipped() {
        let text = "// struct A;\n/* struct B; */ const C: &str = \"\\\" struct D;\";\n\
                    const E: &str = r##\"\" struct F; \"# \"##; const G: char = '\"'; struct H<'i>(&'i u8);";
        assert_eq!(found(text), ["C", "E", "G", "H"]);
        assert_eq!(names("\n\"\n\n\"\nfn a() {}").first().map(|name| name.line), Some(5));
    }
}
