//! The check of parameters, with the real API's texts.
//!
//! In: the parameters of one request. Out: nothing, or the `errors` object of a 400 answer. The order of the tests on one value is
//! that of the real checker (type, format, pattern, length, bounds, enumeration), because only the first fault of a value is named.
use std::collections::BTreeMap;

use serde_json::Value;

use super::format;
use super::table::{Params, Spec, Table, lookup};

/// Faults by parameter.
pub type Errors = BTreeMap<String, String>;

/// Checks all parameters of a call.
#[must_use]
pub fn params(table: &Table, specs: &Params, values: &BTreeMap<String, Value>) -> Errors {
    let mut errors = Errors::new();
    for (name, spec) in specs {
        if !name.ends_with("[n]") && !values.contains_key(name) && !spec.optional {
            add(&mut errors, name, "property is missing and it is not optional");
        }
    }
    for (name, value) in values {
        let Some(spec) = lookup(specs, name) else {
            add(
                &mut errors,
                name,
                "property is not defined in schema and the schema does not allow additional properties",
            );
            continue;
        };
        one(table, name, spec, value, &mut errors);
        if let Some(needed) = &spec.requires
            && !values.contains_key(needed)
        {
            add(&mut errors, needed, &format!("missing property - '{name}' requires this property"));
        }
    }
    errors
}

/// Checks one value.
pub fn one(table: &Table, name: &str, spec: &Spec, value: &Value, errors: &mut Errors) {
    let kind = spec.kind.as_deref().unwrap_or("any");
    if kind == "array" {
        if !value.is_array() && !value.is_string() {
            add(errors, name, "type check ('array') failed");
        }
        return;
    }
    let text = match value {
        Value::Bool(flag) if kind == "boolean" => u8::from(*flag).to_string(),
        Value::Bool(_) => {
            return add(errors, name, &format!("type check ('{kind}') failed - got JSON::PP::Boolean"));
        }
        Value::Array(_) => return add(errors, name, &format!("type check ('{kind}') failed - got ARRAY")),
        Value::Object(_) => return add(errors, name, &format!("type check ('{kind}') failed - got HASH")),
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
    };
    if let Some(fault) = fault_of(table, name, spec, kind, &text) {
        add(errors, name, &fault);
    }
}

fn fault_of(table: &Table, name: &str, spec: &Spec, kind: &str, text: &str) -> Option<String> {
    let typed = match kind {
        "boolean" => text == "0" || text == "1",
        "integer" => is_integer(text),
        "number" => is_number(text),
        _ => true,
    };
    if !typed {
        return Some(format!("type check ('{kind}') failed - got '{text}'"));
    }
    if let Some(format) = &spec.format
        && let Err(why) = format::check(table, format, text, name)
    {
        return Some(format!("invalid format - {why}"));
    }
    if let Some(pattern) = &spec.pattern
        && !pattern.fits(text)
    {
        return Some("value does not match the regex pattern".to_owned());
    }
    let length = text.chars().count();
    if let Some(max) = spec.max_length.filter(|max| length > *max) {
        return Some(format!("value may only be {max} characters long"));
    }
    if let Some(min) = spec.min_length.filter(|min| length < *min) {
        return Some(format!("value must be at least {min} characters long"));
    }
    if is_number(text)
        && let Ok(number) = text.parse::<f64>()
    {
        if let Some(max) = spec.max.filter(|max| number > *max) {
            return Some(format!("value must have a maximum value of {max}"));
        }
        if let Some(min) = spec.min.filter(|min| number < *min) {
            return Some(format!("value must have a minimum value of {min}"));
        }
    }
    let allowed = &spec.one_of.as_ref()?.0;
    let listed = allowed.iter().any(|word| word == text);
    (!listed)
        .then(|| format!("value '{text}' does not have a value in the enumeration '{}'", allowed.join(", ")))
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) =
        unsigned.split_once(['e', 'E']).map_or((unsigned, None), |(m, e)| (m, Some(e)));
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count();
    let dots = mantissa.bytes().filter(|b| *b == b'.').count();
    digits > 0 && dots <= 1 && digits + dots == mantissa.len() && exponent.is_none_or(is_integer)
}

fn add(errors: &mut Errors, name: &str, text: &str) {
    errors
        .entry(name.to_owned())
        .and_modify(|held| {
            // The real code joins with a backslash and an n, not with a newline.
            held.push_str("\\n");
            held.push_str(text);
        })
        .or_insert_with(|| text.to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn faults(at: &str, values: Value) -> Errors {
        let table = Table::committed().expect("table");
        let call = table.call(at).expect("call");
        let values = values.as_object().expect("object").clone().into_iter().collect();
        params(&table, &call.params, &values)
    }

    #[test]
    fn many_faults_at_once() {
        let found = faults(
            "POST /nodes/{node}/lxc",
            json!({"node": "pve1", "vmid": "150", "ostemplate": "local:vztmpl/t.tar.gz", "memory": "lots", "cores": 99999, "bogus": 1,
                "net0": "name=eth0,bridge=", "rootfs": "labdir:x", "arch": "vax", "features": "nesting=7", "mp0": "labdir:1", "hostname": "-bad-"}),
        );
        let keys: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(keys, ["arch", "bogus", "cores", "features", "hostname", "memory", "mp0", "net0"]);
        assert_eq!(
            found["mp0"],
            "invalid format - format error\nmp0.mp: property is missing and it is not optional\n"
        );
        assert_eq!(found["net0"], "invalid format - missing key in comma-separated list property\n");
        assert_eq!(found["cores"], "value must have a maximum value of 8192");
    }

    #[test]
    fn words_for_booleans_are_refused_but_json_ones_are_not() {
        let base =
            json!({"node": "pve1", "vmid": 150, "ostemplate": "x", "unprivileged": true, "start": "false"});
        let found = faults("POST /nodes/{node}/lxc", base);
        assert_eq!(
            found,
            Errors::from([("start".into(), "type check ('boolean') failed - got 'false'".into())])
        );
    }

    #[test]
    fn numbers_as_the_real_checker_reads_them() {
        for good in ["1", "-1", "+1.5", ".5", "5.", "1e3", "1.5E-3"] {
            assert!(is_number(good), "{good}");
        }
        for bad in ["", ".", "1.2.3", "e3", "1e", "0x1", " 1"] {
            assert!(!is_number(bad), "{bad}");
        }
    }
}
