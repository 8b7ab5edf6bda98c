//! Forms for the parts of a desired document.
//!
//! In: the content of a part as JSON, and what a person typed. Out: the fields with their values, or the content with what
//! was typed. Bounds and explanations come from the types of `holdfast_protocol`. Deliberately absent: whether a content is
//! good, which the protocol's own reading says; only a number that is none is noticed here, since JSON cannot hold it.
//!
//! | module | contents |
//! | --- | --- |
//! | [`parts`] | which fields each kind of part has |
//! | [`values`] | what was typed, by the path of its field |
//! | [`content`] | from JSON to values, and from values to JSON |
//! | [`about`] | bounds and explanations of a field, from its type |
//! | [`name_choices`] | names to choose from |
//! | [`problem`] | a refusal at its field |
//! | [`merge`] | what two people changed at once |
//! | [`view`] | a field as a template writes it |

pub(crate) mod about;
pub mod content;
pub mod merge;
pub mod name_choices;
pub mod parts;
pub mod problem;
pub mod values;
pub(crate) mod view;

#[cfg(test)]
mod tests;

/// A heading with its fields.
pub struct Group {
    pub legend: &'static str,
    pub fields: &'static [Field],
}

/// A field of a form. Its name is its path in the content.
pub struct Field {
    pub path: &'static str,
    pub label: &'static str,
    pub input: Input,
}

/// How a field is filled in, and what it is in the content.
#[derive(Clone, Copy)]
pub enum Input {
    /// A text.
    Text,
    /// A whole number.
    Number,
    /// Texts, one a line.
    Lines,
    /// Yes or no.
    Check,
    /// A word, or a number under a key.
    WordOrNumber { word: &'static str, key: &'static str },
    /// One of these words; the first of a pair is the content's.
    Choice(&'static [(&'static str, &'static str)]),
    /// The name of something that the document has.
    Pick(Names),
    /// A text, with what is known already to choose from.
    Suggest(Names),
    /// Whether the object of this path is there.
    Presence,
    /// Which form the content of this path has.
    Variant(&'static [Case]),
}

/// One form that a content may have.
pub struct Case {
    /// Where it lies below the field's path.
    pub path: &'static str,
    pub label: &'static str,
    pub shape: Shape,
}

/// What a form holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Nothing: it is its own word.
    Word,
    /// Fields, or a value.
    Content,
    /// The part has no such content at all.
    Absent,
}

/// Names to choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    Policies,
    /// Targets for root disks.
    Primary,
    /// Targets for volumes of either kind.
    Volumes,
    /// Targets for backups.
    Backups,
    Images,
    Customers,
}

/// The fields of a form, in their order.
pub(crate) fn fields(form: &'static [Group]) -> impl Iterator<Item = &'static Field> {
    form.iter().flat_map(|group| group.fields)
}

/// Whether a path lies below another.
pub(crate) fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.starts_with('.'))
}
