//! A provider's discovery document.
//!
//! In: its bytes, and the issuer of the settings. Out: where people are sent, where codes are exchanged, and how the hub
//! shows that it is the client. An address in the clear is refused, unless the issuer is one on this machine.

use serde::Deserialize;
use url::Url;

/// How the provider is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Where a browser is sent.
    pub authorization: Url,
    /// Where a code is exchanged.
    pub token: Url,
    pub keys: Url,
    pub userinfo: Option<Url>,
    pub client_proof: ClientProof,
    /// Whether its answers name the issuer (RFC 9207).
    pub names_issuer: bool,
}

/// How the hub shows its secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientProof {
    /// In the header `Authorization`.
    Basic,
    /// In the form.
    Post,
}

/// Why a discovery document is refused.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    #[error("the provider's discovery document is not in the form of OpenID Connect")]
    Form(#[source] serde_json::Error),
    #[error(
        "the discovery document is of the issuer {found}, and the settings name {wanted}: write it to the letter"
    )]
    Issuer { found: String, wanted: String },
    #[error("the provider's {what} is {url}: it must be an https URL")]
    Clear { what: &'static str, url: String },
    #[error("the provider offers no {0}, which the hub uses")]
    Offers(&'static str),
}

/// There are many more members, which are not needed.
#[derive(Deserialize)]
struct Form {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    userinfo_endpoint: Option<String>,
    response_types_supported: Option<Vec<String>>,
    code_challenge_methods_supported: Option<Vec<String>>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl Metadata {
    /// Reads the document of an issuer.
    ///
    /// # Errors
    /// [`MetadataError`].
    pub fn parse(bytes: &[u8], issuer: &str) -> Result<Self, MetadataError> {
        let form: Form = serde_json::from_slice(bytes).map_err(MetadataError::Form)?;
        if form.issuer != issuer {
            let (found, wanted) = (form.issuer.chars().take(128).collect(), issuer.to_owned());
            return Err(MetadataError::Issuer { found, wanted });
        }
        let offers = |offered: &Option<Vec<String>>, wanted: &str| {
            offered.as_ref().is_none_or(|all| all.iter().any(|one| one == wanted))
        };
        if !offers(&form.response_types_supported, "code") {
            return Err(MetadataError::Offers("authorization code"));
        }
        // Who does not say so may still check it; who says others alone does not.
        if !offers(&form.code_challenge_methods_supported, "S256") {
            return Err(MetadataError::Offers("PKCE with S256"));
        }
        let proofs = &form.token_endpoint_auth_methods_supported;
        let client_proof = match (offers(proofs, "client_secret_basic"), offers(proofs, "client_secret_post"))
        {
            (true, _) => ClientProof::Basic,
            (false, true) => ClientProof::Post,
            // A client without a secret shows none.
            (false, false) if offers(proofs, "none") => ClientProof::Post,
            (false, false) => return Err(MetadataError::Offers("client_secret_basic or client_secret_post")),
        };
        let here = is_clear_allowed(issuer);
        let url = |what, text: &str| address(what, text, here);
        Ok(Self {
            authorization: url("authorization_endpoint", &form.authorization_endpoint)?,
            token: url("token_endpoint", &form.token_endpoint)?,
            keys: url("jwks_uri", &form.jwks_uri)?,
            userinfo: form.userinfo_endpoint.map(|text| url("userinfo_endpoint", &text)).transpose()?,
            client_proof,
            names_issuer: form.authorization_response_iss_parameter_supported,
        })
    }
}

/// Whether an issuer is on this machine, where no TLS is needed.
fn is_clear_allowed(issuer: &str) -> bool {
    Url::parse(issuer).is_ok_and(|url| url.scheme() == "http" && is_local(&url))
}

/// Whether a URL is of this very machine.
#[must_use]
pub fn is_local(url: &Url) -> bool {
    url.host_str().is_some_and(|host| ["127.0.0.1", "[::1]", "localhost"].contains(&host))
}

fn address(what: &'static str, text: &str, here: bool) -> Result<Url, MetadataError> {
    let refused = || MetadataError::Clear { what, url: text.chars().take(128).collect() };
    let url = Url::parse(text).map_err(|_| refused())?;
    let is_clear = url.scheme() == "http" && here && is_local(&url);
    let bare = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    if bare && (url.scheme() == "https" || is_clear) { Ok(url) } else { Err(refused()) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const ISSUER: &str = "https://login.example";

    fn good() -> Value {
        json!({ "issuer": ISSUER, "authorization_endpoint": "https://login.example/auth",
            "token_endpoint": "https://login.example/token", "jwks_uri": "https://keys.example/jwks", "more": [1] })
    }

    fn parsed(name: &str, value: Value) -> Result<Metadata, MetadataError> {
        let mut form = good();
        form[name] = value;
        Metadata::parse(form.to_string().as_bytes(), ISSUER)
    }

    #[test]
    fn a_document_says_how_the_provider_is_reached() {
        let found = parsed("userinfo_endpoint", json!("https://login.example/me")).unwrap();
        assert_eq!(found.token.as_str(), "https://login.example/token");
        assert_eq!((found.client_proof, found.names_issuer), (ClientProof::Basic, false));
        assert!(found.userinfo.is_some());
        let post = parsed("token_endpoint_auth_methods_supported", json!(["client_secret_post"])).unwrap();
        assert_eq!(post.client_proof, ClientProof::Post);
    }

    #[test]
    fn another_issuer_and_addresses_in_the_clear_are_refused() {
        let issuer = parsed("issuer", json!("https://login.example/")).unwrap_err();
        assert!(matches!(issuer, MetadataError::Issuer { .. }));
        for text in
            ["http://login.example/x", "http://127.0.0.1/x", "ftp://x", "x", "https://a:b@c/", "https://a/#b"]
        {
            for name in ["authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint"] {
                let refused = parsed(name, json!(text)).unwrap_err();
                assert!(
                    matches!(refused, MetadataError::Clear { what, .. } if what == name),
                    "{name} {text}"
                );
            }
        }
    }

    #[test]
    fn what_the_hub_uses_must_be_offered() {
        for (name, value) in [
            ("response_types_supported", json!(["id_token"])),
            ("code_challenge_methods_supported", json!(["plain"])),
            ("token_endpoint_auth_methods_supported", json!(["private_key_jwt"])),
        ] {
            assert!(matches!(parsed(name, value), Err(MetadataError::Offers(_))), "{name}");
        }
    }

    #[test]
    fn a_provider_of_this_machine_may_be_in_the_clear() {
        let issuer = "http://127.0.0.1:4000";
        let form = json!({ "issuer": issuer, "authorization_endpoint": "http://127.0.0.1:4000/auth",
            "token_endpoint": "http://127.0.0.1:4000/token", "jwks_uri": "http://127.0.0.1:4000/jwks" });
        assert!(Metadata::parse(form.to_string().as_bytes(), issuer).is_ok());
        let away = form.to_string().replace("http://127.0.0.1:4000/token", "http://login.example/token");
        assert!(matches!(Metadata::parse(away.as_bytes(), issuer), Err(MetadataError::Clear { .. })));
    }
}
