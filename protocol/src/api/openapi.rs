//! An OpenAPI 3.1 document of a table of calls.
//!
//! Schemas are JSON Schema 2020-12, as OpenAPI 3.1 takes them. Deliberately absent: anything that is not in the types
//! and the table already.

use std::collections::BTreeMap;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::{Answer, Call, Caller, Method, Needed, ParamLocation, SchemaOf};
use crate::envelope::Envelope;

/// Whether a body may say `null` for a field that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nulls {
    /// As good as left out.
    Taken,
    /// Refused.
    Refused,
}

/// An API to describe.
pub struct Api<C: 'static> {
    /// What it is for.
    pub title: &'static str,
    /// What holds for all calls.
    pub description: String,
    /// Where it is served, as OpenAPI writes that.
    pub servers: Value,
    /// The security schemes that callers name.
    pub schemes: Value,
    /// Of bodies.
    pub nulls: Nulls,
    /// All of them, by table.
    pub calls: &'static [&'static [Call<C>]],
}

/// The document.
#[must_use]
pub fn document<C: Caller>(api: &Api<C>) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
    });
    let mut generator = settings.into_generator();
    let refusal = generator.subschema_for::<Envelope<()>>().to_value();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    let mut asked = Vec::new();
    for call in api.calls.iter().copied().flatten() {
        asked.extend(call.body.and_then(|(_, schema)| component(schema(&mut generator).as_value())));
        let described = operation(call, &mut generator, &refusal);
        paths.entry(call.path).or_default().insert(method(call.method).to_owned(), described);
    }
    let mut schemas = generator.take_definitions(true);
    if api.nulls == Nulls::Refused {
        asked.iter().for_each(|name| no_nulls(&mut schemas, name));
    }
    json!({
        "openapi": "3.1.0",
        "info": { "title": api.title, "version": env!("CARGO_PKG_VERSION"), "description": api.description },
        "servers": api.servers,
        "paths": paths,
        "components": { "schemas": schemas, "securitySchemes": api.schemes },
    })
}

fn no_nulls(schemas: &mut Map<String, Value>, name: &str) {
    if let Some(properties) = schemas.get_mut(name).and_then(|schema| schema.get_mut("properties")) {
        properties.as_object_mut().into_iter().flat_map(Map::values_mut).for_each(never_null);
    }
}

/// The name of the component that a schema refers to.
pub(crate) fn component(schema: &Value) -> Option<String> {
    let name = schema.get("$ref")?.as_str()?.strip_prefix("#/components/schemas/")?;
    Some(name.to_owned())
}

/// The derive describes an optional field as one that may be null. A request refuses null: such a field is left out.
fn never_null(field: &mut Value) {
    let Some(field) = field.as_object_mut() else { return };
    let is_null = |one: &Value| *one == "null" || *one == json!({ "type": "null" });
    if let Some(Value::Array(types)) = field.get_mut("type") {
        types.retain(|one| !is_null(one));
    }
    if let Some(Value::Array(mut forms)) = field.remove("anyOf") {
        forms.retain(|one| !is_null(one));
        let only = forms.pop().filter(|_| forms.is_empty());
        field.extend(only.and_then(|one| one.as_object().cloned()).into_iter().flatten());
    }
}

pub(crate) const fn method(method: Method) -> &'static str {
    match method {
        Method::Get => "get",
        Method::Post => "post",
        Method::Put => "put",
        Method::Patch => "patch",
        Method::Delete => "delete",
    }
}

fn operation<C: Caller>(call: &Call<C>, generator: &mut SchemaGenerator, refusal: &Value) -> Value {
    let parts: Vec<Value> = call
        .parts
        .iter()
        .map(|part| {
            let location = match part.location {
                ParamLocation::Path => "path",
                ParamLocation::Query => "query",
                ParamLocation::Header => "header",
            };
            json!({ "in": location, "name": part.name, "description": part.says, "required": part.location == ParamLocation::Path,
                "schema": (part.schema)(generator) })
        })
        .collect();
    let security = call.caller.scheme().map_or_else(|| json!([]), |scheme| json!([{ scheme: [] }]));
    let body = call.body.map(|(needed, schema)| {
        let (required, content) = match needed {
            Needed::Always => (true, json!({ "application/json": { "schema": schema(generator) } })),
            Needed::Optional => (false, json!({ "application/json": { "schema": schema(generator) } })),
            Needed::Octets => (true, json!({ "application/octet-stream": {} })),
        };
        json!({ "required": required, "content": content })
    });
    let described = [
        ("operationId", Some(json!(call.name))),
        ("summary", Some(json!(call.does))),
        ("parameters", Some(json!(parts))),
        ("requestBody", body),
        ("responses", Some(responses(call, generator, refusal))),
        ("security", Some(security)),
    ];
    let said = described.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Value::Object(said.collect())
}

/// The good answers, and the refusals by their status, each with its codes.
fn responses<C: Caller>(call: &Call<C>, generator: &mut SchemaGenerator, refusal: &Value) -> Value {
    let content = |schema: Value| json!({ "application/json": { "schema": schema } });
    let mut good = |schema: SchemaOf| content(schema(generator).to_value());
    const WRITTEN_DOWN: &str = "It was written down; its operation tells how far it is.";
    let answers = match call.answer {
        Answer::Bytes => vec![(200, "The bytes.", json!({ "application/octet-stream": {} }))],
        Answer::Text => vec![(200, "The page.", json!({ "text/plain": {} }))],
        Answer::BytesOrPart => vec![
            (200, "The bytes.", json!({ "application/octet-stream": {} })),
            (206, "The part that `Range` names.", json!({ "application/octet-stream": {} })),
        ],
        Answer::Done(schema) => vec![(200, "As asked.", good(schema))],
        Answer::Made(schema) => vec![(201, "It was made.", good(schema))],
        Answer::MadeOrJudged(schema) => {
            vec![(201, "It was made.", good(schema)), (200, "It was only judged.", good(schema))]
        }
        Answer::Taken(schema) => vec![(202, WRITTEN_DOWN, good(schema))],
        Answer::DoneOrTaken(schema) => {
            vec![
                (200, "It is decided.", good(schema)),
                (202, "It is not decided yet: ask again.", good(schema)),
            ]
        }
        Answer::Description => vec![(200, "This document.", content(json!({ "type": "object" })))],
    };
    let described = |(status, what, content)| (status, json!({ "description": what, "content": content }));
    let mut all: BTreeMap<u16, Value> = answers.into_iter().map(described).collect();
    let mut codes: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for code in call.always().chain(call.refusals.iter().copied()) {
        codes.entry(code.http_status()).or_default().push(code.as_str());
    }
    for (status, mut names) in codes {
        names.sort_unstable();
        names.dedup();
        let description = format!("Refused: `{}`.", names.join("`, `"));
        all.insert(status, json!({ "description": description, "content": content(refusal.clone()) }));
    }
    let named: BTreeMap<String, Value> =
        all.into_iter().map(|(status, response)| (status.to_string(), response)).collect();
    json!(named)
}
