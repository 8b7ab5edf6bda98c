//! A refusal at the field that it is about.

use super::{Field, Group, fields, is_below};

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The field; none where it is about the whole.
    pub field: Option<&'static str>,
    pub message: String,
}

/// A field that every form of a change has: why.
pub const REASON: &str = "reason";

/// Places the refusal of the protocol's reading: a sentence with the path of the mistake within the part.
#[must_use]
pub fn place(form: &'static [Group], path: Option<&str>, message: &str) -> Problem {
    let message = words(message, path);
    let field = path.and_then(|path| {
        // What is missing is named in the sentence, and the path is of what it is missing from.
        let missing = message.split_once("missing field `").and_then(|(_, rest)| rest.split_once('`'));
        let missing = missing.map(|(name, _)| match path {
            "." => name.to_owned(),
            path => format!("{path}.{name}"),
        });
        missing.and_then(|path| find(form, &path)).or_else(|| find(form, path))
    });
    let is_missing = message.contains("missing field `");
    let message =
        if is_missing && field.is_some() { "this is missing: fill it in".to_owned() } else { message };
    Problem { field, message }
}

/// The field of a path: itself, else the nearest one around it, else the first one within it.
fn find(form: &'static [Group], path: &str) -> Option<&'static str> {
    if path == REASON {
        return Some(REASON);
    }
    let is_around =
        |field: &&Field| is_below(path, field.path) || path.starts_with(&format!("{}[", field.path));
    let exact = fields(form).find(|field| field.path == path);
    let around = || fields(form).filter(is_around).max_by_key(|field| field.path.len());
    let within = || fields(form).find(|field| is_below(field.path, path));
    exact.or_else(around).or_else(within).map(|field| field.path)
}

/// The sentence without what only a program needs: which document, at which path, in which column.
#[must_use]
pub fn words(message: &str, path: Option<&str>) -> String {
    let refused = path.and_then(|path| message.split_once(&format!(" is refused at {path}: ")));
    let rest = refused.map_or(message, |(_, rest)| rest);
    let end = rest.rfind(" at line ").filter(|_| refused.is_some());
    end.and_then(|end| rest.get(..end)).unwrap_or(rest).to_owned()
}
