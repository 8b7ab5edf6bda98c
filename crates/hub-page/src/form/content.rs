//! The content of a part as values of its form, and back.
//!
//! A content that comes back is the earlier one with the fields of the form set: what a form does not show stays as it was.

use serde_json::{Map, Value};

use super::problem::Problem;
use super::values::{Values, YES};
use super::{Case, Field, Group, Input, Shape, fields, is_below};

/// The values of a content.
#[must_use]
pub fn values_of(form: &'static [Group], content: &Value) -> Values {
    fields(form).filter_map(|field| Some((field.path, written(field, content)?))).collect()
}

fn written(field: &Field, content: &Value) -> Option<String> {
    let found = at(content, field.path);
    match field.input {
        Input::Presence => found.map(|_| YES.to_owned()),
        Input::Variant(cases) => {
            let is_it = |case: &&Case| match (case.shape, found) {
                (Shape::Absent, None) => true,
                (Shape::Word, Some(Value::String(word))) => word == case.path,
                (Shape::Content, Some(found)) => at(found, case.path).is_some(),
                (Shape::Absent | Shape::Word, _) | (Shape::Content, None) => false,
            };
            cases.iter().find(is_it).map(|case| case.path.to_owned())
        }
        Input::WordOrNumber { key, .. } => match found? {
            Value::String(word) => Some(word.clone()),
            other => at(other, key).map(text),
        },
        Input::Check => found?.as_bool().and_then(|is| is.then(|| YES.to_owned())),
        Input::Lines => {
            let lines: Vec<String> = found?.as_array()?.iter().map(text).collect();
            Some(lines.join("\n"))
        }
        Input::Text | Input::Number | Input::Choice(_) | Input::Pick(_) | Input::Suggest(_) => {
            Some(text(found?))
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The content with what was typed.
///
/// # Errors
/// The fields that hold no number where one belongs.
pub fn content_of(form: &'static [Group], base: Value, values: &Values) -> Result<Value, Vec<Problem>> {
    let (mut content, mut problems) = (base, Vec::new());
    for field in fields(form).filter(|field| values.is_active(form, field)) {
        match typed(field, values.get(field.path), &content) {
            Ok(Some(value)) => set(&mut content, field.path, value),
            Ok(None) => remove(form, &mut content, field),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(content) } else { Err(problems) }
}

/// What the text of a field is in the content; none where the content is to leave it out.
fn typed(field: &Field, text: &str, content: &Value) -> Result<Option<Value>, Problem> {
    let was = at(content, field.path);
    Ok(match field.input {
        Input::Presence if text == YES => Some(was.cloned().unwrap_or_else(empty)),
        Input::Presence => None,
        Input::Variant(cases) => {
            let chosen = cases.iter().find(|case| case.path == text);
            chosen.and_then(|case| match case.shape {
                Shape::Absent => None,
                Shape::Word => Some(case.path.into()),
                Shape::Content => {
                    let kept = was.and_then(|was| at(was, case.path)).cloned();
                    let mut next = empty();
                    set(&mut next, case.path, kept.unwrap_or_else(empty));
                    Some(next)
                }
            })
        }
        Input::Check => Some((text == YES).into()),
        _ if text.is_empty() => None,
        Input::Number => Some(number(field, text)?),
        Input::Lines => {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            Some(lines.map(Value::from).collect())
        }
        Input::WordOrNumber { word, .. } if text == word => Some(word.into()),
        Input::WordOrNumber { word, key } => {
            let number = number(field, text).map_err(|problem| Problem {
                message: format!("write {word}, or a whole number: {text} is neither"),
                ..problem
            })?;
            let mut next = empty();
            set(&mut next, key, number);
            Some(next)
        }
        Input::Text | Input::Choice(_) | Input::Pick(_) | Input::Suggest(_) => Some(text.into()),
    })
}

fn number(field: &Field, text: &str) -> Result<Value, Problem> {
    let number: Result<u64, _> = text.parse();
    number.map(Value::from).map_err(|_| Problem {
        field: Some(field.path),
        message: format!("write a whole number, in digits alone: {text} is none"),
    })
}

/// Takes a field out, and the object around it where that is left empty and no field of the form stands for it.
fn remove(form: &'static [Group], content: &mut Value, field: &Field) {
    let mut path = field.path;
    loop {
        let (above, key) = path.rsplit_once('.').unwrap_or(("", path));
        let Some(Value::Object(object)) = at_mut(content, above) else { return };
        object.remove(key);
        let is_a_choice = |other: &Field| {
            matches!(other.input, Input::Presence | Input::Variant(_))
                && (other.path == above || is_below(above, other.path))
        };
        let decides = matches!(field.input, Input::Presence | Input::Variant(_));
        if above.is_empty() || !object.is_empty() || decides || fields(form).any(is_a_choice) {
            return;
        }
        path = above;
    }
}

fn empty() -> Value {
    Value::Object(Map::new())
}

/// What lies at a path of keys with dots between them.
pub(crate) fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, key| value.get(key))
}

fn at_mut<'v>(value: &'v mut Value, path: &str) -> Option<&'v mut Value> {
    if path.is_empty() {
        return Some(value);
    }
    path.split('.').try_fold(value, |value, key| value.get_mut(key))
}

/// Sets what lies at a path. What is on the way and is no object makes room for one.
fn set(value: &mut Value, path: &str, new: Value) {
    let (key, rest) = path.split_once('.').map_or((path, None), |(key, rest)| (key, Some(rest)));
    if !value.is_object() {
        *value = empty();
    }
    let Value::Object(object) = value else { return };
    match rest {
        Some(rest) => set(object.entry(key).or_insert_with(empty), rest, new),
        None => drop(object.insert(key.to_owned(), new)),
    }
}
