//! The local API as an OpenAPI 3.1 document.
//!
//! What comes in: the table of [`super::calls`]. What goes out: one JSON document, which is committed as
//! `docs/local-api.openapi.json` and served at `/v1/openapi.json`.

use serde_json::{Value, json};

use super::calls::CALLS;
use super::{BODY_BYTES_MAX, PORT};
use crate::api::openapi::{self, Api, Nulls};

/// The document.
#[must_use]
pub fn document() -> Value {
    openapi::document(&Api {
        title: "Holdfast: what a guest may ask of its own agent",
        description: format!(
            "HTTPS on the guest bridge, TLS 1.3 alone, with the leaf that the bootstrap pins. The guest is told by its token, \
             never by the request. A body is at most {BODY_BYTES_MAX} bytes, comes with its length, and holds no null. Every \
             answer but this document travels in the envelope."
        ),
        servers: json!([{
            "url": format!("https://{{address}}:{PORT}"),
            "variables": { "address": { "default": "10.0.0.1", "description": "`endpoint` of bootstrap.json" } },
        }]),
        schemes: json!({ "token": { "type": "http", "scheme": "bearer",
            "description": "`token` of bootstrap.json; it is taken from the guest's own address alone" } }),
        nulls: Nulls::Refused,
        calls: &[CALLS],
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::api::ParamLocation;
    use crate::api::openapi::{component, method};

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
