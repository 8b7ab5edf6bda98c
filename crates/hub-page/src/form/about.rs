//! Bounds and explanations of a field, from the type of its content.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use holdfast_protocol::desired::{DesiredGuest, DesiredVolume};
use holdfast_protocol::protection::BackupPolicy;
use holdfast_protocol::resource::PartKind;
use holdfast_protocol::storage::StorageTarget;
use schemars::schema_for;
use serde_json::Value;

/// What a type says of a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// What it is.
    pub words: String,
    pub least: Option<i64>,
    pub most: Option<i64>,
    /// Whether the content must have it wherever it has the object around it.
    pub is_required: bool,
}

/// The schema of each kind, written once.
static SCHEMAS: LazyLock<BTreeMap<PartKind, Value>> = LazyLock::new(|| {
    BTreeMap::from([
        (PartKind::Guest, schema_for!(DesiredGuest).to_value()),
        (PartKind::Volume, schema_for!(DesiredVolume).to_value()),
        (PartKind::StorageTarget, schema_for!(StorageTarget).to_value()),
        (PartKind::Policy, schema_for!(BackupPolicy).to_value()),
    ])
});

/// What the type of a part says of a path; none where it has no such path.
pub fn about(kind: PartKind, path: &str) -> Option<About> {
    let root = SCHEMAS.get(&kind)?;
    let mut node = root;
    let mut found = About::default();
    for key in path.split('.') {
        let (owner, property) = property(root, node, key)?;
        let required = owner.get("required").and_then(Value::as_array);
        found.is_required = required.is_some_and(|all| all.iter().any(|one| one == key));
        node = property;
        found.words = description(node).unwrap_or_default();
    }
    let inner = inner(root, node);
    found.least = inner.get("minimum").and_then(Value::as_i64);
    found.most = inner.get("maximum").and_then(Value::as_i64);
    Some(found)
}

/// The object that has a property, and the property.
fn property<'v>(root: &'v Value, node: &'v Value, key: &str) -> Option<(&'v Value, &'v Value)> {
    let node = inner(root, node);
    if let Some(property) = node.get("properties").and_then(|all| all.get(key)) {
        return Some((node, property));
    }
    let cases = ["oneOf", "anyOf"].into_iter().filter_map(|word| node.get(word)?.as_array()).flatten();
    cases.filter_map(|case| property(root, case, key)).next()
}

/// What a reference or an optional type stands for.
fn inner<'v>(root: &'v Value, node: &'v Value) -> &'v Value {
    let referred = node.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix('#'));
    if let Some(referred) = referred.and_then(|pointer| root.pointer(pointer)) {
        return inner(root, referred);
    }
    let optional = node.get("anyOf").and_then(Value::as_array);
    let only = optional.and_then(|cases| match cases.as_slice() {
        [one, none] if none.get("type").is_some_and(|kind| kind == "null") => Some(one),
        _ => None,
    });
    only.map_or(node, |one| inner(root, one))
}

/// The words of the type, without marks of links.
fn description(node: &Value) -> Option<String> {
    let words = node.get("description")?.as_str()?;
    Some(words.replace("[`", "").replace("`]", "").replace('`', "").replace('\n', " "))
}
