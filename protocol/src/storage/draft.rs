//! A storage target in an unfinished document.
//!
//! A person who seals credentials needs the target's backend, and the document lacks just these credentials. What comes
//! in: the document's bytes and the target's name. What goes out: the backend as written there. Deliberately absent:
//! judging it, and anything else of the document, which is judged when it is applied.

use serde::Deserialize;
use serde_json::Value;

use crate::id::TargetName;

/// Why there is no backend.
#[derive(Debug)]
pub enum NoMedium {
    /// Not a document at all.
    Form(serde_json::Error),
    /// It names no such target, or none with a backend.
    Unnamed,
}

/// The backend that a document names for a target, as it is written.
///
/// # Errors
/// [`NoMedium`].
pub fn backend(document: &[u8], target: &TargetName) -> Result<Value, NoMedium> {
    #[derive(Deserialize)]
    struct Page {
        #[serde(default)]
        storage: Vec<Value>,
    }
    let page: Page = serde_json::from_slice(document).map_err(NoMedium::Form)?;
    let named = |one: &Value| one.get("name").and_then(Value::as_str) == Some(target.as_str());
    let found =
        page.storage.into_iter().find(named).and_then(|mut one| one.get_mut("backend").map(Value::take));
    found.ok_or(NoMedium::Unnamed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_target_is_found_in_half_a_document() {
        let target: TargetName = "off1".parse().unwrap();
        let found = |page: &Value| backend(page.to_string().as_bytes(), &target);
        let page = json!({ "guests": "not yet", "storage": [{ "name": "nas1", "backend": 1 }, { "name": "off1", "backend": { "pbs": {} } }] });
        assert_eq!(found(&page).unwrap(), json!({ "pbs": {} }));
        for page in [
            json!({}),
            json!({ "storage": [{ "name": "nas1", "backend": 1 }] }),
            json!({ "storage": [{ "name": "off1" }] }),
        ] {
            assert!(matches!(found(&page), Err(NoMedium::Unnamed)), "{page}");
        }
        for text in ["", "[", "{\"storage\": 1}"] {
            assert!(matches!(backend(text.as_bytes(), &target), Err(NoMedium::Form(_))), "{text}");
        }
    }
}
