//! What a token says, and whether that is for this sign-in.
//!
//! In: the payload of a signed token, or an answer of the provider's userinfo. Out: who signed in, as the provider names
//! them. Deliberately absent: signatures, and which operator that is.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use subtle::ConstantTimeEq as _;

use super::provider::ProviderSettings;

/// Clocks may differ by this many seconds.
pub const SKEW_S: i64 = 60;

/// A token is made for the sign-in in which it is read: an older one is of another.
pub const AGE_MAX_S: i64 = 600;

/// Of OpenID Connect: a subject has at most so many characters of ASCII.
const SUBJECT_MAX: usize = 255;

/// An e-mail address or a name at the provider.
const PERSON_MAX: usize = 254;

/// Groups of a person that are looked at.
const GROUPS_MAX: usize = 2_000;

/// What a token must match.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    pub provider: &'a ProviderSettings,
    /// Made for this sign-in.
    pub nonce: &'a str,
    pub now: Timestamp,
}

/// Claims of a token that was made for this sign-in.
#[derive(Clone, Debug, PartialEq)]
pub struct Claims {
    /// What the provider calls the person, for ever.
    pub subject: String,
    others: BTreeMap<String, Value>,
}

/// Why claims count for nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimsError {
    #[error("the token lacks claims that OpenID Connect wants, or has them in another form")]
    Form,
    #[error("the token is of the issuer {0}")]
    Issuer(String),
    #[error("the token is for somebody else than this hub")]
    Audience,
    #[error("the token is of another sign-in")]
    Nonce,
    #[error("the token has ended: are the clocks of hub and provider right?")]
    Ended,
    #[error("the token's time is not now: are the clocks of hub and provider right?")]
    Time,
    #[error("the provider says more of another person than of the one who signed in")]
    OtherPerson,
}

#[derive(Deserialize)]
struct TokenForm {
    iss: String,
    sub: String,
    aud: Audience,
    exp: f64,
    iat: f64,
    nbf: Option<f64>,
    nonce: Option<String>,
    azp: Option<String>,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

impl Audience {
    /// Whether it is this one alone: who else has the token could use it here.
    fn is(&self, client: &str) -> bool {
        match self {
            Self::One(one) => one == client,
            Self::Several(all) => !all.is_empty() && all.iter().all(|one| one == client),
        }
    }
}

#[derive(Deserialize)]
struct UserForm {
    sub: String,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

/// Reads and checks the claims of a token.
///
/// # Errors
/// [`ClaimsError`].
pub fn check(payload: &[u8], expected: Expected<'_>) -> Result<Claims, ClaimsError> {
    let form: TokenForm = serde_json::from_slice(payload).map_err(|_| ClaimsError::Form)?;
    let (provider, now) = (expected.provider, seconds(expected.now));
    if form.iss != provider.issuer {
        return Err(ClaimsError::Issuer(form.iss.chars().take(128).collect()));
    }
    let is_other = |party: &String| *party != provider.client_id;
    if !form.aud.is(&provider.client_id) || form.azp.as_ref().is_some_and(is_other) {
        return Err(ClaimsError::Audience);
    }
    let nonce = form.nonce.unwrap_or_default();
    if !bool::from(nonce.as_bytes().ct_eq(expected.nonce.as_bytes())) {
        return Err(ClaimsError::Nonce);
    }
    let (skew, age_max) = (seconds_of(SKEW_S), seconds_of(AGE_MAX_S));
    if form.exp <= now - skew {
        return Err(ClaimsError::Ended);
    }
    let is_early = form.iat > now + skew || form.nbf.is_some_and(|from| from > now + skew);
    if is_early || form.iat < now - age_max - skew || form.exp < form.iat {
        return Err(ClaimsError::Time);
    }
    let subject = subject(form.sub)?;
    Ok(Claims { subject, others: form.others })
}

impl Claims {
    /// With what the provider's userinfo adds. What the token says itself stays.
    ///
    /// # Errors
    /// [`ClaimsError`].
    pub fn with_userinfo(mut self, answer: &[u8]) -> Result<Self, ClaimsError> {
        let form: UserForm = serde_json::from_slice(answer).map_err(|_| ClaimsError::Form)?;
        if form.sub != self.subject {
            return Err(ClaimsError::OtherPerson);
        }
        for (name, value) in form.others {
            self.others.entry(name).or_insert(value);
        }
        Ok(self)
    }

    /// Whether it has all claims that the settings name.
    #[must_use]
    pub fn has_all(&self, provider: &ProviderSettings) -> bool {
        let mut wanted = vec![&provider.person_claim];
        if !provider.groups.is_empty() {
            wanted.extend([&provider.name_claim, &provider.group_claim]);
        }
        wanted.into_iter().all(|name| self.others.contains_key(name))
    }

    /// The claim that names the person; none where it is missing. An e-mail address counts when the provider says that it is
    /// the person's.
    #[must_use]
    pub fn person(&self, provider: &ProviderSettings) -> Option<String> {
        let is_theirs =
            provider.person_claim != "email" || self.others.get("email_verified") == Some(&Value::Bool(true));
        self.text(&provider.person_claim).filter(|_| is_theirs)
    }

    /// A claim that is a short text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        let text = self.others.get(name)?.as_str()?;
        let fits = !text.is_empty() && text.len() <= PERSON_MAX && !text.chars().any(char::is_control);
        fits.then(|| text.to_owned())
    }

    /// The groups of the person. One that is no text is passed over.
    #[must_use]
    pub fn groups(&self, provider: &ProviderSettings) -> Vec<String> {
        match self.others.get(&provider.group_claim) {
            Some(Value::Array(all)) => {
                let texts = all.iter().take(GROUPS_MAX).filter_map(Value::as_str);
                texts.map(str::to_owned).collect()
            }
            Some(Value::String(one)) => vec![one.clone()],
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Vec::new(),
        }
    }
}

fn subject(text: String) -> Result<String, ClaimsError> {
    let fits =
        !text.is_empty() && text.len() <= SUBJECT_MAX && text.bytes().all(|b| (0x20..0x7f).contains(&b));
    if fits { Ok(text) } else { Err(ClaimsError::Form) }
}

/// The time as tokens have it. Its fractions do not matter.
fn seconds(at: Timestamp) -> f64 {
    at.as_duration().as_secs_f64()
}

fn seconds_of(seconds: i64) -> f64 {
    jiff::SignedDuration::from_secs(seconds).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: i64 = 1_700_000_000;

    fn provider() -> ProviderSettings {
        ProviderSettings::for_tests("https://login.example", "holdfast")
    }

    fn good() -> Value {
        json!({ "iss": "https://login.example", "sub": "s-1", "aud": "holdfast", "exp": NOW + 300, "iat": NOW,
            "nonce": "n", "email": "ada@x.example", "email_verified": true, "groups": ["a", 7, "b"] })
    }

    fn checked(claims: &Value) -> Result<Claims, ClaimsError> {
        let now = Timestamp::from_second(NOW).unwrap();
        check(claims.to_string().as_bytes(), Expected { provider: &provider(), nonce: "n", now })
    }

    fn with(name: &str, value: Value) -> Value {
        let mut claims = good();
        claims[name] = value;
        claims
    }

    #[test]
    fn a_token_for_this_sign_in_names_its_person() {
        let claims = checked(&good()).unwrap();
        assert_eq!(claims.subject, "s-1");
        assert_eq!(claims.person(&provider()).as_deref(), Some("ada@x.example"));
        assert_eq!(claims.groups(&provider()), ["a", "b"]);
        for fits in [
            with("aud", json!(["holdfast"])),
            with("azp", json!("holdfast")),
            with("exp", json!(NOW - 59)),
            with("iat", json!(NOW + 60)),
            with("iat", json!(NOW as f64 - 0.5)),
        ] {
            let mut fits = fits;
            if fits["exp"] == json!(NOW - 59) {
                fits["iat"] = json!(NOW - 60);
            }
            assert!(checked(&fits).is_ok(), "{fits}");
        }
    }

    #[test]
    fn a_token_of_another_place_person_or_time_is_refused() {
        for (name, value, refused) in [
            ("iss", json!("https://login.example/"), ClaimsError::Issuer("https://login.example/".into())),
            ("aud", json!("another"), ClaimsError::Audience),
            ("aud", json!(["holdfast", "another"]), ClaimsError::Audience),
            ("aud", json!([]), ClaimsError::Audience),
            ("azp", json!("another"), ClaimsError::Audience),
            ("nonce", json!("m"), ClaimsError::Nonce),
            ("nonce", json!(""), ClaimsError::Nonce),
            ("exp", json!(NOW - 60), ClaimsError::Ended),
            ("iat", json!(NOW + 61), ClaimsError::Time),
            ("iat", json!(NOW - 661), ClaimsError::Time),
            ("nbf", json!(NOW + 61), ClaimsError::Time),
            ("sub", json!(""), ClaimsError::Form),
            ("sub", json!("é"), ClaimsError::Form),
            ("sub", json!("a".repeat(256)), ClaimsError::Form),
            ("exp", json!("soon"), ClaimsError::Form),
        ] {
            assert_eq!(checked(&with(name, value.clone())), Err(refused), "{name}: {value}");
        }
        for name in ["iss", "sub", "aud", "exp", "iat"] {
            let mut claims = good();
            claims.as_object_mut().unwrap().remove(name);
            assert_eq!(checked(&claims), Err(ClaimsError::Form), "{name}");
        }
        let mut claims = good();
        claims.as_object_mut().unwrap().remove("nonce");
        assert_eq!(checked(&claims), Err(ClaimsError::Nonce));
        let twice = good().to_string().replacen('{', "{\"sub\":\"s-2\",", 1);
        let now = Timestamp::from_second(NOW).unwrap();
        let twice = check(twice.as_bytes(), Expected { provider: &provider(), nonce: "n", now });
        assert_eq!(twice, Err(ClaimsError::Form));
    }

    #[test]
    fn an_address_that_is_not_proved_names_no_person() {
        for proof in [json!(false), json!("true"), json!(1), Value::Null] {
            let claims = checked(&with("email_verified", proof)).unwrap();
            assert_eq!(claims.person(&provider()), None);
        }
        let named = ProviderSettings { person_claim: "login".to_owned(), ..provider() };
        assert_eq!(checked(&with("login", json!("ada"))).unwrap().person(&named).as_deref(), Some("ada"));
        assert_eq!(checked(&with("login", json!("a\nb"))).unwrap().person(&named), None);
    }

    #[test]
    fn userinfo_adds_to_its_own_person_alone() {
        let claims = checked(&good()).unwrap();
        let added = json!({ "sub": "s-1", "email": "eve@x.example", "login": "ada" }).to_string();
        let both = claims.clone().with_userinfo(added.as_bytes()).unwrap();
        assert_eq!(both.text("email").as_deref(), Some("ada@x.example"));
        assert_eq!(both.text("login").as_deref(), Some("ada"));
        let other = json!({ "sub": "s-2", "login": "eve" }).to_string();
        assert_eq!(claims.with_userinfo(other.as_bytes()), Err(ClaimsError::OtherPerson));
    }
}
