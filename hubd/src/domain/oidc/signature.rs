//! Signatures of tokens: compact JSON Web Signatures (RFC 7515).
//!
//! In: a token and a provider's keys. Out: its payload, which one of the keys signed. The algorithm is that of the key, and
//! is one of three: `none` and those with a shared secret have no key here.

use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;

use super::keys::{Algorithm, KeySet, Material, PublicKey};
use super::unbase64;

/// Tokens of people in a thousand groups have some tens of kilobytes.
pub const TOKEN_MAX: usize = 64 * 1024;

/// Why a token counts for nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    #[error("the token is longer than {TOKEN_MAX} bytes")]
    Long,
    #[error("the token is no signed token")]
    Form,
    #[error("the token's algorithm is {0}; RS256, ES256 and EdDSA are accepted")]
    Algorithm(String),
    #[error("the token has conditions that must be understood, and are not")]
    Critical,
    /// Perhaps a new one: the keys may be fetched again.
    #[error("the provider has no such key as the token names")]
    UnknownKey,
    #[error("the token's signature is wrong")]
    Signature,
}

#[derive(Deserialize)]
struct Head {
    alg: String,
    kid: Option<String>,
    crit: Option<serde::de::IgnoredAny>,
}

/// The payload of a token, once its signature was checked.
///
/// # Errors
/// [`SignatureError`].
pub fn payload(token: &str, keys: &KeySet) -> Result<Vec<u8>, SignatureError> {
    if token.len() > TOKEN_MAX {
        return Err(SignatureError::Long);
    }
    let (signed, signature) = token.rsplit_once('.').ok_or(SignatureError::Form)?;
    let (head, payload) = signed.split_once('.').ok_or(SignatureError::Form)?;
    let (head, payload) = (unbase64(head), unbase64(payload));
    let (Some(head), Some(payload), Some(signature)) = (head, payload, unbase64(signature)) else {
        return Err(SignatureError::Form);
    };
    let head: Head = serde_json::from_slice(&head).map_err(|_| SignatureError::Form)?;
    if head.crit.is_some() {
        return Err(SignatureError::Critical);
    }
    let algorithm = Algorithm::named(&head.alg)
        .ok_or_else(|| SignatureError::Algorithm(head.alg.chars().take(16).collect()))?;
    let mut fitting = keys.fitting(algorithm, head.kid.as_deref()).peekable();
    if fitting.peek().is_none() {
        return Err(SignatureError::UnknownKey);
    }
    match fitting.any(|key| signs(key, signed.as_bytes(), &signature)) {
        true => Ok(payload),
        // A token that names no key may be of a new one.
        false if head.kid.is_none() => Err(SignatureError::UnknownKey),
        false => Err(SignatureError::Signature),
    }
}

fn signs(key: &PublicKey, signed: &[u8], signature: &[u8]) -> bool {
    let checked = match &key.material {
        Material::Rsa { modulus, exponent } => RsaPublicKeyComponents { n: modulus, e: exponent }.verify(
            &signature::RSA_PKCS1_2048_8192_SHA256,
            signed,
            signature,
        ),
        Material::P256(point) => {
            UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point).verify(signed, signature)
        }
        Material::Ed25519(key) => UnparsedPublicKey::new(&signature::ED25519, key).verify(signed, signature),
    };
    checked.is_ok()
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::json;

    use super::*;

    /// RFC 7515, appendix A.2: RS256.
    const RSA_KEYS: &str = r#"{"keys":[{"kty":"RSA","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ","e":"AQAB"}]}"#;
    const RSA_TOKEN: &str = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";

    /// RFC 7515, appendix A.3: ES256.
    const EC_KEYS: &str = r#"{"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}"#;
    const EC_TOKEN: &str = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";

    /// RFC 8037, appendix A: EdDSA.
    const ED_KEYS: &str =
        r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
    const ED_TOKEN: &str = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";

    fn keys(text: &str) -> KeySet {
        KeySet::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn the_examples_of_the_standards_are_accepted() {
        for (token, set) in [(RSA_TOKEN, RSA_KEYS), (EC_TOKEN, EC_KEYS), (ED_TOKEN, ED_KEYS)] {
            let payload = payload(token, &keys(set)).unwrap();
            assert!(payload.starts_with(b"{\"iss\":\"joe\"") || payload == b"Example of Ed25519 signing");
        }
    }

    #[test]
    fn whatever_is_changed_in_a_token_is_seen() {
        for (token, set) in [(RSA_TOKEN, RSA_KEYS), (EC_TOKEN, EC_KEYS), (ED_TOKEN, ED_KEYS)] {
            let keys = keys(set);
            for place in 0..token.len() {
                let mut changed = token.as_bytes().to_vec();
                changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
                let changed = String::from_utf8(changed).unwrap();
                assert!(payload(&changed, &keys).is_err(), "{place}");
            }
        }
    }

    #[test]
    fn a_token_does_not_choose_its_algorithm() {
        let of = |head: serde_json::Value, signature: &[u8]| {
            let (head, body) = (head.to_string(), json!({ "sub": "ada" }).to_string());
            let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(head), URL_SAFE_NO_PAD.encode(body));
            format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
        };
        let keys = keys(RSA_KEYS);
        for alg in ["none", "None", "HS256", "PS256", "RS512", "", "rs256"] {
            for signature in [&b""[..], b"x"] {
                let refused = payload(&of(json!({ "alg": alg }), signature), &keys).unwrap_err();
                assert!(matches!(refused, SignatureError::Algorithm(_)), "{alg}: {refused}");
            }
        }
        // The public key as the shared secret of HS256.
        let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, RSA_KEYS.as_bytes());
        let unsigned = of(json!({ "alg": "HS256" }), b"");
        let signed = unsigned.trim_end_matches('.');
        let tag = ring::hmac::sign(&secret, signed.as_bytes());
        let forged = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag.as_ref()));
        assert!(matches!(payload(&forged, &keys), Err(SignatureError::Algorithm(_))));
        // An algorithm that the key is not for, a key that is not there, and no empty signature.
        assert_eq!(payload(&of(json!({ "alg": "ES256" }), b"x"), &keys), Err(SignatureError::UnknownKey));
        let unknown = json!({ "alg": "RS256", "kid": "another" });
        assert_eq!(payload(&of(unknown, b"x"), &keys), Err(SignatureError::UnknownKey));
        assert!(payload(&of(json!({ "alg": "RS256" }), b""), &keys).is_err());
        let critical = json!({ "alg": "RS256", "crit": ["exp"] });
        assert_eq!(payload(&of(critical, b"x"), &keys), Err(SignatureError::Critical));
    }

    #[test]
    fn what_is_no_token_is_refused() {
        let keys = keys(EC_KEYS);
        for text in ["", ".", "..", "a.b", "a.b.c", "....", "é.é.é"] {
            assert_eq!(payload(text, &keys), Err(SignatureError::Form), "{text}");
        }
        let long = "a".repeat(TOKEN_MAX + 1);
        assert_eq!(payload(&long, &keys), Err(SignatureError::Long));
    }
}
