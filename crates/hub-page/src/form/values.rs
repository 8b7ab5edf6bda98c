//! Values of a form, by the path of each field.

use std::collections::BTreeMap;

use super::{Field, Group, Input, fields, is_below};

/// What a ticked box sends.
pub const YES: &str = "yes";

/// The values of a form. A field that is empty has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values(BTreeMap<String, String>);

impl Values {
    /// A value, or an empty text.
    #[must_use]
    pub fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// Sets a value. An empty one is none, and line ends are those of a Unix text.
    pub fn set(&mut self, name: impl Into<String>, value: &str) {
        let value = value.replace("\r\n", "\n");
        let (name, value) = (name.into(), value.trim());
        if value.is_empty() {
            self.0.remove(&name);
        } else {
            self.0.insert(name, value.to_owned());
        }
    }

    /// All that have one, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(crate) fn is_ticked(&self, name: &str) -> bool {
        self.get(name) == YES
    }

    /// Whether a field counts: all that decide about it stand so that it does.
    #[must_use]
    pub fn is_active(&self, form: &'static [Group], field: &Field) -> bool {
        fields(form).filter(|other| is_below(field.path, other.path)).all(|other| match other.input {
            Input::Presence => self.is_ticked(other.path),
            Input::Variant(_) => {
                let chosen = format!("{}.{}", other.path, self.get(other.path));
                field.path == chosen || is_below(field.path, &chosen)
            }
            Input::Text
            | Input::Number
            | Input::Lines
            | Input::Check
            | Input::WordOrNumber { .. }
            | Input::Choice(_)
            | Input::Pick(_)
            | Input::Suggest(_) => true,
        })
    }
}

impl<N: Into<String>, V: AsRef<str>> FromIterator<(N, V)> for Values {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let mut values = Self::default();
        for (name, value) in pairs {
            values.set(name, value.as_ref());
        }
        values
    }
}
