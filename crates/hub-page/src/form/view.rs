//! A field as a template writes it.

use holdfast_protocol::resource::PartKind;

use super::about::about;
use super::name_choices::KnownNames;
use super::problem::Problem;
use super::values::Values;
use super::{Case, Field, Group, Input, Shape};

/// What a person fills in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    Text,
    Number,
    Lines,
    Check,
    Select,
}

impl Control {
    /// As templates ask for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Number => "number",
            Self::Lines => "lines",
            Self::Check => "check",
            Self::Select => "select",
        }
    }
}

pub(crate) struct Choice {
    pub value: String,
    pub label: String,
    pub is_chosen: bool,
}

pub(crate) struct FieldView {
    pub id: String,
    pub name: &'static str,
    pub label: &'static str,
    pub words: String,
    pub range: Option<String>,
    pub control: Control,
    pub value: String,
    pub choices: Vec<Choice>,
    pub suggestions: Vec<String>,
    pub problem: Option<String>,
    pub is_required: bool,
    pub is_fixed: bool,
    pub is_ticked: bool,
}

impl FieldView {
    /// What a screen reader reads after the field.
    pub fn described_by(&self) -> String {
        let problem = self.problem.as_ref().map(|_| format!("{}-problem", self.id));
        let words = (!self.words.is_empty() || self.range.is_some()).then(|| format!("{}-words", self.id));
        [problem, words].into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

pub(crate) struct GroupView {
    pub legend: &'static str,
    pub fields: Vec<FieldView>,
}

/// The id of a field in its page.
pub(crate) fn id(path: &str) -> String {
    format!("field-{}", path.replace('.', "-"))
}

/// What the views of a form are made of.
pub(crate) struct FilledForm<'a> {
    pub kind: PartKind,
    pub form: &'static [Group],
    pub values: &'a Values,
    pub known: &'a KnownNames,
    pub problems: &'a [Problem],
    /// The field that names the part, and stays as it is.
    pub fixed: Option<&'static str>,
}

impl FilledForm<'_> {
    pub fn groups(&self) -> Vec<GroupView> {
        let group = |group: &'static Group| GroupView {
            legend: group.legend,
            fields: group.fields.iter().map(|field| self.field(field)).collect(),
        };
        self.form.iter().map(group).collect()
    }

    fn field(&self, field: &'static Field) -> FieldView {
        let about = about(self.kind, field.path).unwrap_or_default();
        let value = self.values.get(field.path).to_owned();
        let bounds = match field.input {
            Input::Number => about.least.zip(about.most),
            _ => None,
        };
        let range = match field.input {
            Input::WordOrNumber { word, .. } => Some(format!("{word}, or a number")),
            Input::Lines => Some("one a line".to_owned()),
            _ => bounds.map(|(least, most)| format!("{least} to {most}")),
        };
        let problem = self.problems.iter().find(|problem| problem.field == Some(field.path));
        let (control, choices, suggestions) = self.control(field, &value, about.is_required);
        // A box has no third state, and what only some forms of a content have is not asked of all.
        let is_asked = about.is_required
            && control != Control::Check
            && !super::fields(self.form).any(|other| super::is_below(field.path, other.path));
        FieldView {
            id: id(field.path),
            name: field.path,
            label: field.label,
            words: about.words,
            range,
            control,
            choices,
            suggestions,
            problem: problem.map(|problem| problem.message.clone()),
            is_required: is_asked,
            is_fixed: self.fixed == Some(field.path),
            is_ticked: self.values.is_ticked(field.path),
            value,
        }
    }

    fn control(
        &self,
        field: &'static Field,
        value: &str,
        required: bool,
    ) -> (Control, Vec<Choice>, Vec<String>) {
        let choice = |own: &str, label: &str| Choice {
            value: own.to_owned(),
            label: label.to_owned(),
            is_chosen: own == value,
        };
        let absent = (!required).then(|| choice("", "(left out)"));
        match field.input {
            Input::Text | Input::WordOrNumber { .. } => (Control::Text, Vec::new(), Vec::new()),
            Input::Number => (Control::Number, Vec::new(), Vec::new()),
            Input::Lines => (Control::Lines, Vec::new(), Vec::new()),
            Input::Check | Input::Presence => (Control::Check, Vec::new(), Vec::new()),
            Input::Suggest(names) => (Control::Text, Vec::new(), self.known.list(names)),
            Input::Choice(words) => {
                let words = words.iter().map(|(own, label)| choice(own, label));
                (Control::Select, absent.into_iter().chain(words).collect(), Vec::new())
            }
            Input::Pick(names) => {
                let mut names = self.known.list(names);
                // What was typed or is written stays to be chosen, so that its refusal names it.
                if !value.is_empty() && !names.iter().any(|name| name == value) {
                    names.push(value.to_owned());
                }
                let names = names.iter().map(|name| choice(name, name));
                (Control::Select, absent.into_iter().chain(names).collect(), Vec::new())
            }
            Input::Variant(cases) => {
                let case = |case: &Case| match case.shape {
                    Shape::Absent => choice("", case.label),
                    Shape::Word | Shape::Content => choice(case.path, case.label),
                };
                (Control::Select, cases.iter().map(case).collect(), Vec::new())
            }
        }
    }
}
