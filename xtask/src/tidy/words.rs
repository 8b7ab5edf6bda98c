//! Banned words in declared names and in first lines of modules.
//!
//! In: Rust sources of the crates in [`DONE`]. Out: one breach per name or line. `docs/vocabulary.md` has the words to use
//! instead. Local variables, strings and other comments are not judged here.

use super::rust_names::{Name, names};
use super::{Breach, Source};

/// The crates that keep the rule. It has no exceptions within a crate; the list grows until it holds all crates.
#[rustfmt::skip]
const DONE: &[&str] = &[
    "agentd/",
    "break-glass/",
    "crates/",
    "fuzz/",
    "gate/",
    "golden/",
    "guestd/",
    "helper/",
    "hubd/",
    "manual/",
    "operator/",
    "protocol/",
    "recovery/",
    "seal/",
    "tests/",
    "trust/",
    "xtask/",
];

/// Words that must not be a segment of a declared name, and must not be in a first line.
const BANNED: &[&str] = &[
    "aside",
    "beside",
    "besides",
    "deed",
    "deeds",
    "door",
    "doors",
    "face",
    "faces",
    "knock",
    "knocks",
    "law",
    "laws",
    "lying",
    "nobody",
    "owed",
    "owes",
    "owing",
    "pen",
    "people",
    "pens",
    "seat",
    "seats",
    "shelf",
    "shelves",
    "somebody",
    "tell",
    "telling",
    "tells",
    "throwaway",
    "told",
    "twin",
    "untold",
    "whoever",
    "whom",
    "whose",
    "wish",
    "wished",
    "wishes",
];

/// Pronouns and bare participles: no type and no module may be named by one of them alone.
const NOT_ALONE: &[&str] = &[
    "alone", "asked", "done", "due", "found", "half", "heard", "held", "kept", "known", "left", "looked",
    "lost", "meant", "placed", "removed", "said", "says", "seen", "shown", "talk", "taken", "tried", "typed",
    "wanted", "well", "what", "which", "who",
];

/// The most words that a module's first line may have.
const FIRST_LINE_WORDS_MAX: usize = 12;

/// Checks the crates in [`DONE`].
pub fn check(sources: &[Source]) -> Vec<Breach> {
    let done = |source: &&Source| DONE.iter().any(|folder| source.path.starts_with(folder));
    let rust = sources.iter().filter(|source| source.path.ends_with(".rs"));
    rust.filter(done).flat_map(check_file).collect()
}

fn check_file(source: &Source) -> Vec<Breach> {
    let mut breaches: Vec<Breach> = first_line(&source.text)
        .into_iter()
        .map(|says| Breach::new(format!("{}:1", source.path), says))
        .collect();
    let stem = source.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
    breaches.extend(name(stem, SingleWord::Banned).map(|says| Breach::new(&source.path, says)));
    for Name { text, line, kind } in names(&source.text) {
        let alone = if kind.is_type_or_module() { SingleWord::Banned } else { SingleWord::Allowed };
        let says = name(&text, alone);
        breaches.extend(says.map(|says| Breach::new(format!("{}:{line}", source.path), says)));
    }
    breaches
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SingleWord {
    Banned,
    Allowed,
}

fn name(name: &str, alone: SingleWord) -> Option<String> {
    let segments = segments(name);
    if let Some(banned) = segments.iter().find(|segment| BANNED.contains(&segment.as_str())) {
        return Some(format!("`{name}` has the banned word `{banned}`: docs/vocabulary.md has another"));
    }
    let [only] = segments.as_slice() else { return None };
    (alone == SingleWord::Banned && NOT_ALONE.contains(&only.as_str()))
        .then(|| format!("`{name}` is a pronoun or a bare participle: name what the thing is"))
}

fn first_line(text: &str) -> Option<String> {
    let line = text.lines().next()?.strip_prefix("//!")?.trim();
    let words = line.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count();
    if words > FIRST_LINE_WORDS_MAX {
        return Some(format!(
            "the first line has {words} words, at most {FIRST_LINE_WORDS_MAX}: one noun phrase"
        ));
    }
    if !line.ends_with('.') {
        return Some(
            "the first line does not end with a full stop: one noun phrase, then an empty line".to_owned(),
        );
    }
    let mut plain = line.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    plain
        .find(|word| BANNED.contains(&word.as_str()))
        .map(|word| format!("the first line has the banned word `{word}`: docs/vocabulary.md has another"))
}

/// `EscrowFile`, `escrow_file` and `ESCROW_FILE` are `escrow` and `file`.
fn segments(name: &str) -> Vec<String> {
    let mut segments: Vec<String> = Vec::new();
    for part in name.split('_').filter(|part| !part.is_empty()) {
        let mut last_was_lower = false;
        let mut current = String::new();
        for c in part.chars() {
            if c.is_uppercase() && last_was_lower {
                segments.push(std::mem::take(&mut current));
            }
            last_was_lower = c.is_lowercase() || c.is_ascii_digit();
            current.extend(c.to_lowercase());
        }
        segments.push(current);
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaches(path: &str, text: &str) -> Vec<String> {
        let source = Source { path: path.to_owned(), text: text.to_owned() };
        check(&[source]).into_iter().map(|breach| format!("{}: {}", breach.place, breach.says)).collect()
    }

    #[test]
    fn banned_words_are_refused_in_each_kind_of_name() {
        for code in [
            "struct Told;",
            "pub enum GuestKnock { A }",
            "fn is_told() {}",
            "mod beside;",
            "const SEATS_MAX: usize = 1;",
            "static SHELF: u8 = 1;",
            "trait Deed {}",
            "type Face = u8;",
            "struct A { pub(crate) was_told: u8 }",
            "struct A<T> where T: Copy { first: Vec<(u8, T)>, people: T }",
            "enum A { One, Untold(u8) }",
            "enum A { One { aside: u8 } }",
            "fn f() { fn told() {} }",
        ] {
            assert_eq!(breaches("recovery/src/a.rs", &format!("//! Docs.\n\n{code}\n")).len(), 1, "{code}");
        }
    }

    #[test]
    fn other_places_are_not_judged() {
        for code in [
            "fn f() { let told = \"told\"; }",
            "/// Told.\nstruct A;",
            "/* struct Told; */",
            "const A: &str = r#\"struct Told { face: u8 }\"#;",
            "fn f(c: char) { match c { '\"' => {} _ => {} } } // struct Told;",
            "struct Teller { tolds: u8, facet: u8 }",
            "fn f<'told>(a: &'told str) {}",
            "struct A { b: told::B }",
            "enum A { Held }",
            "fn held() {}",
        ] {
            assert_eq!(
                breaches("recovery/src/a.rs", &format!("//! Docs.\n\n{code}\n")),
                Vec::<String>::new()
            );
        }
        assert_eq!(breaches("unlisted/src/a.rs", "//! Told.\nstruct Told;"), Vec::<String>::new());
    }

    #[test]
    fn types_and_modules_are_not_named_by_a_participle_alone() {
        assert_eq!(
            breaches("recovery/src/a.rs", "//! Docs.\nenum Kept { A }"),
            ["recovery/src/a.rs:2: `Kept` is a pronoun or a bare participle: name what the thing is"]
        );
        assert_eq!(breaches("recovery/src/typed.rs", "//! Docs.\n").len(), 1, "a file is a module");
        assert_eq!(breaches("recovery/src/a.rs", "//! Docs.\nstruct KeptFile;"), Vec::<String>::new());
    }

    #[test]
    fn first_lines_are_short_sentences_without_banned_words() {
        let long = "one two three four five six seven eight nine ten eleven twelve";
        assert_eq!(breaches("recovery/src/a.rs", &format!("//! {long}.\n")), Vec::<String>::new());
        assert_eq!(breaches("recovery/src/a.rs", &format!("//! {long} thirteen.\n")).len(), 1, "too long");
        assert_eq!(
            breaches("recovery/src/a.rs", "//! Runs on\n//! to a second line.\n").len(),
            1,
            "no full stop"
        );
        assert_eq!(breaches("recovery/src/a.rs", "//! What people see.\n").len(), 1, "a banned word");
    }
}
