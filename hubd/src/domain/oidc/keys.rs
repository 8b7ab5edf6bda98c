//! The public keys of a provider.
//!
//! In: a JSON Web Key Set (RFC 7517). Out: its keys that check signatures by an accepted algorithm. Keys of other kinds are
//! passed over, as the standard wants. The algorithm belongs to the key, so a token cannot choose another one for it.

use serde::Deserialize;

use super::unbase64;

/// Providers have two to five.
pub const KEYS_MAX: usize = 64;

/// The accepted algorithms. A key is for exactly one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    Rs256,
    Es256,
    EdDsa,
}

impl Algorithm {
    pub const ALL: [Self; 3] = [Self::Rs256, Self::Es256, Self::EdDsa];

    /// As tokens name it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
        }
    }

    /// The accepted algorithm of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == name)
    }
}

/// What a signature is checked with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Material {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// An uncompressed point.
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// One public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    pub id: Option<String>,
    pub material: Material,
}

impl PublicKey {
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        match self.material {
            Material::Rsa { .. } => Algorithm::Rs256,
            Material::P256(_) => Algorithm::Es256,
            Material::Ed25519(_) => Algorithm::EdDsa,
        }
    }
}

/// All keys of a provider that are of use here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeySet(Vec<PublicKey>);

/// Why a key set is refused.
#[derive(Debug, thiserror::Error)]
pub enum KeySetError {
    #[error("the provider's keys are no JSON Web Key Set")]
    Form(#[source] serde_json::Error),
    #[error("the provider has {0} keys; at most {KEYS_MAX} are looked at")]
    TooMany(usize),
    #[error("the provider has no key for RS256, ES256 or EdDSA")]
    Empty,
}

/// Providers add members of their own, so unknown ones are allowed.
#[derive(Deserialize)]
struct SetForm {
    keys: Vec<KeyForm>,
}

#[derive(Deserialize)]
struct KeyForm {
    kty: String,
    #[serde(rename = "use")]
    purpose: Option<String>,
    alg: Option<String>,
    kid: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl KeySet {
    /// Reads a key set.
    ///
    /// # Errors
    /// [`KeySetError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, KeySetError> {
        let form: SetForm = serde_json::from_slice(bytes).map_err(KeySetError::Form)?;
        if form.keys.len() > KEYS_MAX {
            return Err(KeySetError::TooMany(form.keys.len()));
        }
        let keys: Vec<_> = form.keys.into_iter().filter_map(key).collect();
        if keys.is_empty() { Err(KeySetError::Empty) } else { Ok(Self(keys)) }
    }

    /// The keys that a token with this head may have been signed with.
    pub(super) fn fitting<'a>(
        &'a self,
        algorithm: Algorithm,
        id: Option<&'a str>,
    ) -> impl Iterator<Item = &'a PublicKey> {
        let fits = move |key: &&PublicKey| {
            key.algorithm() == algorithm && id.is_none_or(|id| key.id.as_deref() == Some(id))
        };
        self.0.iter().filter(fits)
    }
}

/// A key of use; none for other kinds, other purposes and damaged ones.
fn key(form: KeyForm) -> Option<PublicKey> {
    if form.purpose.is_some_and(|purpose| purpose != "sig") {
        return None;
    }
    let material = match (form.kty.as_str(), form.crv.as_deref()) {
        ("RSA", None) => Material::Rsa { modulus: number(&form.n?)?, exponent: number(&form.e?)? },
        ("EC", Some("P-256")) => {
            let (x, y) = (unbase64(&form.x?)?, unbase64(&form.y?)?);
            Material::P256((x.len() == 32 && y.len() == 32).then(|| [&[4], &x[..], &y[..]].concat())?)
        }
        ("OKP", Some("Ed25519")) => Material::Ed25519(unbase64(&form.x?).filter(|x| x.len() == 32)?),
        (_, _) => return None,
    };
    let key = PublicKey { id: form.kid, material };
    form.alg.is_none_or(|alg| alg == key.algorithm().as_str()).then_some(key)
}

/// A number without leading zeros.
fn number(text: &str) -> Option<Vec<u8>> {
    let bytes = unbase64(text)?;
    let first = bytes.iter().position(|byte| *byte != 0)?;
    bytes.get(first..).map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_other_kinds_and_purposes_are_passed_over() {
        let x = "A".repeat(43);
        let set = serde_json::json!({ "more": 1, "keys": [
            { "kty": "RSA", "kid": "r", "n": "AAEB", "e": "AQAB", "x5t": "z" },
            { "kty": "RSA", "kid": "for encryption", "use": "enc", "n": "AQAB", "e": "AQAB" },
            { "kty": "RSA", "kid": "for another algorithm", "alg": "PS256", "n": "AQAB", "e": "AQAB" },
            { "kty": "oct", "kid": "shared", "k": "AAAA" },
            { "kty": "EC", "crv": "P-256", "kid": "e", "x": x, "y": x },
            { "kty": "EC", "crv": "P-256", "kid": "short", "x": "AAAA", "y": x },
            { "kty": "EC", "crv": "P-384", "kid": "other curve", "x": x, "y": x },
            { "kty": "OKP", "crv": "Ed25519", "kid": "o", "use": "sig", "alg": "EdDSA", "x": x },
            { "kty": "OKP", "crv": "X25519", "kid": "for agreement", "x": x },
        ]});
        let keys = KeySet::parse(set.to_string().as_bytes()).unwrap();
        let ids: Vec<_> = keys.0.iter().map(|key| key.id.as_deref().unwrap()).collect();
        assert_eq!(ids, ["r", "e", "o"]);
        assert_eq!(keys.0[0].material, Material::Rsa { modulus: vec![1, 1], exponent: vec![1, 0, 1] });
        assert_eq!(keys.fitting(Algorithm::Es256, Some("r")).count(), 0);
        assert_eq!(keys.fitting(Algorithm::Es256, None).count(), 1);
    }

    #[test]
    fn too_many_keys_and_none_are_refused() {
        let one = serde_json::json!({ "kty": "oct", "k": "AAAA" });
        let many = serde_json::json!({ "keys": vec![one; KEYS_MAX + 1] });
        assert!(matches!(KeySet::parse(many.to_string().as_bytes()), Err(KeySetError::TooMany(65))));
        assert!(matches!(KeySet::parse(b"{\"keys\":[]}"), Err(KeySetError::Empty)));
        assert!(matches!(KeySet::parse(b"[]"), Err(KeySetError::Form(_))));
    }
}
