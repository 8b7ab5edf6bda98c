//! The local API as an OpenAPI 3.1 document.
//!
//! What comes in: the table of [`super::calls`]. What goes out: one JSON document, which is committed as
//! `docs/local-api.openapi.json` and served at `/v1/openapi.json`. Schemas are JSON Schema 2020-12, as OpenAPI 3.1 takes
//! them. Deliberately absent: anything that is not in the types already.

use std::collections::BTreeMap;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::calls::{Answer, CALLS, Call, Caller, Method, Needed, ParamLocation};
use super::{BODY_BYTES_MAX, PORT};
use crate::envelope::Envelope;

/// The document.
#[must_use]
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
    });
    let mut generator = settings.into_generator();
    let refusal = generator.subschema_for::<Envelope<()>>().to_value();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    let mut asked = Vec::new();
    for call in CALLS {
        asked.extend(call.body.and_then(|(_, schema)| component(schema(&mut generator).as_value())));
        let described = operation(call, &mut generator, &refusal);
        paths.entry(call.path).or_default().insert(method(call.method).to_owned(), described);
    }
    let mut schemas = generator.take_definitions(true);
    for name in asked {
        if let Some(properties) = schemas.get_mut(&name).and_then(|schema| schema.get_mut("properties")) {
            properties.as_object_mut().into_iter().flat_map(Map::values_mut).for_each(never_null);
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Holdfast: what a guest may ask of its own agent",
            "version": env!("CARGO_PKG_VERSION"),
            "description": format!(
                "HTTPS on the guest bridge, TLS 1.3 alone, with the leaf that the bootstrap pins. The guest is told by its token, \
                 never by the request. A body is at most {BODY_BYTES_MAX} bytes, comes with its length, and holds no null. Every \
                 answer but this document travels in the envelope."
            ),
        },
        "servers": [{
            "url": format!("https://{{address}}:{PORT}"),
            "variables": { "address": { "default": "10.0.0.1", "description": "`endpoint` of bootstrap.json" } },
        }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer",
                "description": "`token` of bootstrap.json; it is taken from the guest's own address alone" } },
        },
    })
}

/// The name of the component that a schema refers to.
fn component(schema: &Value) -> Option<String> {
    let name = schema.get("$ref")?.as_str()?.strip_prefix("#/components/schemas/")?;
    Some(name.to_owned())
}

/// The derive tells an optional field as one that may be null, and in a request null is refused: such a field is left out.
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

const fn method(method: Method) -> &'static str {
    match method {
        Method::Get => "get",
        Method::Post => "post",
        Method::Put => "put",
        Method::Delete => "delete",
    }
}

fn operation(call: &Call, generator: &mut SchemaGenerator, refusal: &Value) -> Value {
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
    let security = match call.caller {
        Caller::Anyone => json!([]),
        Caller::Guest => json!([{ "token": [] }]),
    };
    let body = call.body.map(|(needed, schema)| {
        let content = json!({ "application/json": { "schema": schema(generator) } });
        json!({ "required": needed == Needed::Always, "content": content })
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

/// The good answer, and the refusals by their status, each with its codes.
fn responses(call: &Call, generator: &mut SchemaGenerator, refusal: &Value) -> Value {
    let (status, what, schema) = match call.answer {
        Answer::Bytes => (200, "The bytes.", Value::Null),
        Answer::Done(schema) => (200, "As asked.", schema(generator).to_value()),
        Answer::Taken(schema) => {
            (202, "It was written down; its operation tells how far it is.", schema(generator).to_value())
        }
        Answer::Description => (200, "This document.", json!({ "type": "object" })),
    };
    let content = |schema: Value| json!({ "application/json": { "schema": schema } });
    let good = match call.answer {
        Answer::Bytes => json!({ "application/octet-stream": {} }),
        Answer::Done(_) | Answer::Taken(_) | Answer::Description => content(schema),
    };
    let mut all = BTreeMap::from([(status, json!({ "description": what, "content": good }))]);
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
                map.values().for_each(|inner| references(inner, found));
            }
            Value::Array(list) => list.iter().for_each(|inner| references(inner, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_somewhere_and_every_name_is_its_own() {
        let document = document();
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        assert!(found.len() > 20, "{found:?}");
        for reference in found {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
        let names: BTreeSet<_> = CALLS.iter().map(|call| call.name).collect();
        assert_eq!(names.len(), CALLS.len());
    }

    #[test]
    fn what_stands_in_a_path_is_described() {
        for call in CALLS {
            let named: Vec<_> = call.path.split(['{', '}']).skip(1).step_by(2).collect();
            let parts = call.parts.iter().filter(|part| part.location == ParamLocation::Path);
            assert_eq!(named, parts.map(|part| part.name).collect::<Vec<_>>(), "{}", call.path);
        }
    }

    #[test]
    fn no_request_may_say_null() {
        let document = document();
        for call in CALLS {
            let body = document.pointer(&format!(
                "/paths/{}/{}/requestBody",
                call.path.replace('/', "~1"),
                method(call.method)
            ));
            let Some(body) = body else { continue };
            let name = component(&body["content"]["application/json"]["schema"]).unwrap();
            let schema = &document["components"]["schemas"][&name];
            assert!(schema["properties"].as_object().is_some_and(|all| !all.is_empty()), "{name}");
            assert!(!schema.to_string().contains("null"), "{name}: {schema}");
            assert!(!schema.to_string().contains("anyOf"), "{name}: {schema}");
        }
        let keep = &document["components"]["schemas"]["SnapshotRequest"]["properties"];
        assert_eq!(keep["name"]["$ref"], "#/components/schemas/SnapshotName");
    }

    #[test]
    fn a_refusal_lists_its_codes() {
        let document = document();
        let said = |path: &str| document.pointer(path).and_then(Value::as_str).unwrap().to_owned();
        let snapshots = "/paths/~1v1~1snapshots/post/responses";
        assert!(said(&format!("{snapshots}/409/description")).contains("`LOCKED`, `NAME_TAKEN`, `QUOTA`"));
        assert!(said(&format!("{snapshots}/401/description")).contains("UNAUTHENTICATED"));
        assert!(document.pointer("/paths/~1healthz/get/responses/401").is_none());
    }
}
