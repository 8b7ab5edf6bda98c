//! Parameters of a request: query, form or JSON body.
//!
//! In: the raw request. Out: one map, values as sent (texts from forms, anything from JSON). A name sent twice in a form becomes a list.
use std::collections::BTreeMap;

use serde_json::Value;

use crate::wire::Request;

/// The largest body that is read.
pub const MAX_BODY_BYTES: usize = 512 * 1024;

/// Parameters by name.
pub type Params = BTreeMap<String, Value>;

/// Why a body is not read.
#[derive(Debug, PartialEq, Eq)]
pub enum BodyError {
    /// Beyond the limit.
    TooLarge,
    /// Of a kind that is not taken.
    ContentType(String),
    /// JSON that does not parse: where it broke.
    Json(usize),
}

/// Path (decoded, without the prefix) and parameters.
///
/// # Errors
/// When the body is not taken.
pub fn read(request: &Request) -> Result<(Vec<String>, Params), BodyError> {
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    let mut params = Params::new();
    form(query.as_bytes(), &mut params);
    if matches!(request.method.as_str(), "POST" | "PUT") {
        body(request, &mut params)?;
    }
    let decoded = percent_encoding::percent_decode_str(path).decode_utf8_lossy().into_owned();
    let segments = decoded.split('/').filter(|part| !part.is_empty()).skip(2).map(str::to_owned).collect();
    Ok((segments, params))
}

fn body(request: &Request, params: &mut Params) -> Result<(), BodyError> {
    if request.body.len() > MAX_BODY_BYTES {
        return Err(BodyError::TooLarge);
    }
    let kind = request.header("content-type").unwrap_or_default();
    match kind.split(';').next().unwrap_or_default().trim() {
        "application/x-www-form-urlencoded" => form(&request.body, params),
        "application/json" => {
            let text = String::from_utf8_lossy(&request.body);
            let value: Value =
                serde_json::from_str(&text).map_err(|error| BodyError::Json(error.column()))?;
            params.extend(value.as_object().cloned().unwrap_or_default());
        }
        _ if request.body.is_empty() => {}
        _ => return Err(BodyError::ContentType(kind.to_owned())),
    }
    Ok(())
}

fn form(bytes: &[u8], params: &mut Params) {
    for pair in bytes.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
        let (name, value) = match pair.iter().position(|byte| *byte == b'=') {
            Some(at) => (pair.get(..at).unwrap_or_default(), pair.get(at + 1..).unwrap_or_default()),
            None => (pair, &b""[..]),
        };
        let value = Value::from(plain(value));
        params
            .entry(plain(name))
            .and_modify(|held| match held {
                Value::Array(list) => list.push(value.clone()),
                other => *other = Value::Array(vec![other.take(), value.clone()]),
            })
            .or_insert(value);
    }
}

fn plain(bytes: &[u8]) -> String {
    let spaced: Vec<u8> = bytes.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    percent_encoding::percent_decode(&spaced).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request(method: &str, target: &str, kind: &str, body: &str) -> Request {
        Request {
            method: method.into(),
            target: target.into(),
            headers: vec![("content-type".into(), kind.into())],
            body: body.into(),
        }
    }

    #[test]
    fn forms_queries_and_json() {
        let (path, params) = read(&request(
            "PUT",
            "/api2/json/nodes/pve1/storage/b/content/b%3Abackup%2Fx?a=1",
            "application/x-www-form-urlencoded",
            "env=A%3D1%00B%3Dx+y&l=1&l=2",
        ))
        .expect("read");
        assert_eq!(path, ["nodes", "pve1", "storage", "b", "content", "b:backup", "x"]);
        assert_eq!(
            Value::Object(params.into_iter().collect()),
            json!({"a": "1", "env": "A=1\0B=x y", "l": ["1", "2"]})
        );
        let (_, params) =
            read(&request("POST", "/api2/json/x", "application/json;charset=utf-8", r#"{"on":true}"#))
                .expect("read");
        assert_eq!(params["on"], json!(true));
    }

    #[test]
    fn bodies_that_are_not_taken() {
        assert_eq!(
            read(&request("PUT", "/api2/json/x", "text/plain", "a=1")),
            Err(BodyError::ContentType("text/plain".into()))
        );
        assert_eq!(
            read(&request("PUT", "/api2/json/x", "text/plain", &"x".repeat(MAX_BODY_BYTES + 1))),
            Err(BodyError::TooLarge)
        );
        assert!(matches!(
            read(&request("PUT", "/api2/json/x", "application/json", "{\"memory\": ")),
            Err(BodyError::Json(_))
        ));
    }
}
