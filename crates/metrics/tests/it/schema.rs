//! A check against a JSON Schema of draft 7.
//!
//! The two libraries for it would bring second versions of crates that the workspace has once. This knows the keywords of
//! Grafana's schemas, and stops at any other.

use serde_json::{Map, Value};

/// A document of definitions.
pub(crate) struct Schema(Value);

impl Schema {
    pub(crate) fn new(text: &str) -> Self {
        Self(serde_json::from_str(text).unwrap())
    }

    /// What keeps a value from being what one of the definitions allows, each with its place.
    pub(crate) fn faults(&self, definition: &str, value: &Value) -> Vec<String> {
        let mut faults = Vec::new();
        self.check(self.definition(definition), value, "", &mut faults);
        faults
    }

    fn definition(&self, name: &str) -> &Value {
        self.0["definitions"].get(name).unwrap_or_else(|| panic!("there is no definition {name}"))
    }

    fn check(&self, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
        let schema = schema.as_object().unwrap();
        for (keyword, wanted) in schema {
            match keyword.as_str() {
                "$ref" => {
                    let name = wanted.as_str().unwrap().strip_prefix("#/definitions/").unwrap();
                    self.check(self.definition(name), value, at, faults);
                }
                "allOf" => {
                    for one in wanted.as_array().unwrap() {
                        self.check(one, value, at, faults);
                    }
                }
                "anyOf" if self.fitting(wanted, value) == 0 => {
                    faults.push(format!("{at}: none of the alternatives"));
                }
                "oneOf" if self.fitting(wanted, value) != 1 => {
                    faults.push(format!("{at}: not exactly one of the alternatives"));
                }
                "type" => {
                    let name = wanted.as_str().unwrap();
                    if !is_of_type(value, name) {
                        faults.push(format!("{at}: not of type {name}"));
                    }
                }
                "const" | "enum" => {
                    let values = wanted.as_array().map_or(std::slice::from_ref(wanted), Vec::as_slice);
                    if !values.contains(value) {
                        faults.push(format!("{at}: not one of the values"));
                    }
                }
                "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
                    if value.as_f64().is_some_and(|number| !within(keyword, number, wanted.as_f64().unwrap()))
                    {
                        faults.push(format!("{at}: beyond its {keyword}"));
                    }
                }
                "minLength" => {
                    let least = usize::try_from(wanted.as_u64().unwrap()).unwrap();
                    if value.as_str().is_some_and(|text| text.chars().count() < least) {
                        faults.push(format!("{at}: shorter than {least}"));
                    }
                }
                "items" => {
                    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.check(wanted, item, &format!("{at}/{index}"), faults);
                    }
                }
                "required" => {
                    for name in wanted.as_array().unwrap().iter().map(|name| name.as_str().unwrap()) {
                        if value.as_object().is_some_and(|object| !object.contains_key(name)) {
                            faults.push(format!("{at}: `{name}` is missing"));
                        }
                    }
                }
                "properties" | "additionalProperties" => {}
                // `format` is a remark in draft 7.
                "anyOf" | "oneOf" | "format" => {}
                other => panic!("{at}: the keyword {other} is not known here"),
            }
        }
        if let Value::Object(object) = value {
            self.check_members(schema, object, at, faults);
        }
    }

    /// The members of an object: each by its own schema, all others by the one for the rest.
    fn check_members(
        &self,
        schema: &Map<String, Value>,
        object: &Map<String, Value>,
        at: &str,
        faults: &mut Vec<String>,
    ) {
        let (own, rest) = (schema.get("properties"), schema.get("additionalProperties"));
        for (name, member) in object {
            let at = format!("{at}/{name}");
            match (own.and_then(|own| own.get(name)), rest) {
                (Some(schema), _) => self.check(schema, member, &at, faults),
                (None, Some(Value::Bool(false))) => faults.push(format!("{at}: not known")),
                (None, Some(schema @ Value::Object(_))) => self.check(schema, member, &at, faults),
                (None, _) => {}
            }
        }
    }

    fn fitting(&self, alternatives: &Value, value: &Value) -> usize {
        let fits = |one: &&Value| {
            let mut faults = Vec::new();
            self.check(one, value, "", &mut faults);
            faults.is_empty()
        };
        alternatives.as_array().unwrap().iter().filter(fits).count()
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("the type {other} is not known here"),
    }
}

fn within(keyword: &str, number: f64, limit: f64) -> bool {
    match keyword {
        "minimum" => number >= limit,
        "maximum" => number <= limit,
        "exclusiveMinimum" => number > limit,
        _ => number < limit,
    }
}
