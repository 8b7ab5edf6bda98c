//! Two changes of one part, put together field by field.

use super::values::Values;
use super::{Field, Group, fields};

/// A field that somebody else changed since the form was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collision {
    pub field: &'static str,
    pub label: &'static str,
    /// As it was when the form was opened.
    pub before: String,
    /// As it is now.
    pub now: String,
    /// As it was typed.
    pub typed: String,
}

impl Collision {
    /// Whether both changed it, and to different values.
    #[must_use]
    pub fn is_contested(&self) -> bool {
        self.typed != self.before && self.typed != self.now
    }
}

/// The newest values with what was typed over them, and every field that somebody else changed.
#[must_use]
pub fn merged(
    form: &'static [Group],
    before: &Values,
    now: &Values,
    typed: &Values,
) -> (Values, Vec<Collision>) {
    let mut next = typed.clone();
    let mut collisions = Vec::new();
    for Field { path, label, .. } in fields(form) {
        let [was, is, wish] = [before, now, typed].map(|values| values.get(path).to_owned());
        if was == is {
            continue;
        }
        if wish == was {
            next.set(*path, &is);
        }
        collisions.push(Collision { field: path, label, before: was, now: is, typed: wish });
    }
    (next, collisions)
}
