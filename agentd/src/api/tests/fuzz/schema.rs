//! Values made from, and checked by, the served schemas.

use serde_json::{Map, Value, json};

use super::dice::Dice;

/// The schemas of a document.
pub struct Schemas<'a>(pub &'a Value);

/// The values for text fields: some fit somewhere, some nowhere.
const TEXTS: [&str; 22] = [
    "018f3c1e-6b1f-7c1d-9d0a-000000000001",
    "018f3c1e-6b1f-7c1d-9d0a-000000000002",
    "018f3c1e-6b1f-7c1d-9d0a-0000000000ff",
    "00000000-0000-0000-0000-000000000000",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "before",
    "shop",
    "/srv/db",
    "/",
    "local",
    "2026-11-21T12:00:00Z",
    "9999-12-31T23:59:59Z",
    "0.1.0",
    "well",
    "crash",
    "10.66.0.91/24",
    "",
    " ",
    "../../etc/passwd",
    "\u{202e}txt",
    "a\u{0}b",
    "'; DROP TABLE guest; --",
];

impl<'a> Schemas<'a> {
    fn resolved(&self, schema: &'a Value) -> &'a Value {
        match schema.get("$ref").and_then(Value::as_str) {
            Some(path) => self.resolved(self.0.pointer(path.trim_start_matches('#')).unwrap()),
            None => schema,
        }
    }

    /// Something of this form; with a little luck of the dice, nearly so.
    pub fn say(&self, schema: &'a Value, dice: &mut Dice) -> Value {
        let schema = self.resolved(schema);
        if dice.one_in(24) {
            return self.nonsense(dice);
        }
        if let Some(fixed) = schema.get("const") {
            return fixed.clone();
        }
        for choice in ["anyOf", "oneOf", "enum"] {
            if let Some(all) = schema.get(choice).and_then(Value::as_array) {
                let one = dice.of(all);
                return if choice == "enum" { one.clone() } else { self.say(one, dice) };
            }
        }
        match types(schema).first().copied() {
            Some("object") => self.object(schema, dice),
            Some("array") => {
                let most = schema["maxItems"].as_u64().unwrap_or(4);
                // Sometimes more than may be.
                let count = if dice.one_in(12) { most + 1 } else { dice.below(most.min(4) + 1) };
                (0..count).map(|_| self.say(&schema["items"], dice)).collect()
            }
            Some("integer") => {
                let least = schema["minimum"].as_i64().unwrap_or(0);
                let most = schema["maximum"].as_i64().unwrap_or(1 << 40);
                json!(*dice.of(&[
                    least,
                    least + 1,
                    most,
                    least - 1,
                    most.saturating_add(1),
                    60,
                    0,
                    -1,
                    i64::MAX
                ]))
            }
            Some("null") => Value::Null,
            _ => json!(dice.of(&TEXTS)),
        }
    }

    fn object(&self, schema: &'a Value, dice: &mut Dice) -> Value {
        let needed: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut object = Map::new();
        for (name, of) in schema["properties"].as_object().into_iter().flatten() {
            let left_out = if needed.contains(&name.as_str()) { dice.one_in(30) } else { dice.one_in(2) };
            if !left_out {
                let said = self.say(of, dice);
                // What is absent is left out, not null.
                if !said.is_null() || dice.one_in(10) {
                    object.insert(name.clone(), said);
                }
            }
        }
        if dice.one_in(40) {
            object.insert("unheard_of".to_owned(), self.nonsense(dice));
        }
        Value::Object(object)
    }

    fn nonsense(&self, dice: &mut Dice) -> Value {
        match dice.below(6) {
            0 => Value::Null,
            1 => json!([]),
            2 => json!({}),
            3 => json!(-1),
            4 => json!("x".repeat(usize::try_from(dice.below(3_000)).unwrap())),
            _ => json!(dice.of(&TEXTS)),
        }
    }

    /// The first place where an answer is not of this form.
    pub fn breach(&self, schema: &'a Value, value: &Value, at: &str) -> Option<String> {
        let schema = self.resolved(schema);
        let wrong = |what: &str| Some(format!("{at}: {value} {what}"));
        if schema.get("const").is_some_and(|fixed| fixed != value) {
            return wrong("is not the one value that may stand there");
        }
        if schema.get("enum").and_then(Value::as_array).is_some_and(|all| !all.contains(value)) {
            return wrong("is none of those that may stand there");
        }
        for choice in ["anyOf", "oneOf"] {
            if let Some(all) = schema.get(choice).and_then(Value::as_array) {
                let fits = all.iter().filter(|one| self.breach(one, value, at).is_none()).count();
                if fits == 0 || (choice == "oneOf" && fits > 1) {
                    return wrong("fits none of the forms, or more than one");
                }
            }
        }
        let types = types(schema);
        if !types.is_empty() && !types.contains(&kind(value)) {
            return wrong("is of another type");
        }
        match value {
            Value::Object(object) => self.breach_of_object(schema, object, at),
            Value::Array(items) => {
                let long = schema["maxItems"].as_u64().is_some_and(|most| items.len() as u64 > most);
                let mut each = items.iter().enumerate();
                let inner =
                    each.find_map(|(n, item)| self.breach(&schema["items"], item, &format!("{at}[{n}]")));
                if long { wrong("is too long") } else { inner }
            }
            Value::Number(number) => {
                let low = schema["minimum"].as_f64().is_some_and(|least| number.as_f64().unwrap() < least);
                let high = schema["maximum"].as_f64().is_some_and(|most| number.as_f64().unwrap() > most);
                if low || high { wrong("is out of range") } else { None }
            }
            Value::String(text) => {
                let chars = text.chars().count() as u64;
                let short = schema["minLength"].as_u64().is_some_and(|least| chars < least);
                let long = schema["maxLength"].as_u64().is_some_and(|most| chars > most);
                if short || long { wrong("has another length") } else { None }
            }
            _ => None,
        }
    }

    fn breach_of_object(&self, schema: &'a Value, object: &Map<String, Value>, at: &str) -> Option<String> {
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        if let Some(missing) = required.into_iter().find(|name| !object.contains_key(*name)) {
            return Some(format!("{at}.{missing} is missing"));
        }
        object.iter().find_map(|(name, value)| {
            let at = format!("{at}.{name}");
            match properties.and_then(|all| all.get(name)) {
                Some(of) => self.breach(of, value, &at),
                None if schema.get("additionalProperties") == Some(&Value::Bool(false)) => {
                    Some(format!("{at} is not told of"))
                }
                None => None,
            }
        })
    }
}

fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[test]
fn an_answer_that_breaks_its_schema_is_reported_by_its_place() {
    let document = json!({"form": {"type": "object", "additionalProperties": false, "required": ["a"], "properties": {
        "a": {"type": "array", "maxItems": 1, "items": {"type": "integer", "minimum": 0}},
        "b": {"oneOf": [{"const": "x"}, {"type": "string", "minLength": 2}]}}}});
    let schemas = Schemas(&document);
    let form = json!({"$ref": "#/form"});
    let breach = |value: Value| schemas.breach(&form, &value, "").unwrap_or_default();
    assert_eq!(breach(json!({"a": [1], "b": "x"})), "");
    for (bad, part) in [
        (json!([]), "another type"),
        (json!({}), ".a is missing"),
        (json!({"a": [-1]}), ".a[0]: -1 is out of range"),
        (json!({"a": ["1"]}), "another type"),
        (json!({"a": [1, 2]}), "too long"),
        (json!({"a": [], "b": "y"}), "fits none"),
        (json!({"a": [], "c": 1}), ".c is not told of"),
    ] {
        let reported = breach(bad.clone());
        assert!(reported.contains(part), "{bad}: {reported}");
    }
}
