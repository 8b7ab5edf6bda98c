//! Token secrets, passwords and login tickets.
//!
//! In: an `Authorization` or `Cookie` header. Out: the [`Caller`], or the reason phrase of the 401. That phrase does not show whether a
//! token is unknown, is expired or has another secret.
use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::config::AccessConfig;

/// How long a ticket is valid.
const TICKET_S: i64 = 2 * 60 * 60;

/// An authenticated caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// `agent@pve` or `agent@pve!token`.
    pub id: String,
    /// Came with a ticket and not with a token.
    pub ticket: bool,
}

impl Caller {
    /// The very user `root@pam`; a token of it is not.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.id == "root@pam"
    }

    /// The user behind a token.
    #[must_use]
    pub fn user(&self) -> &str {
        self.id.rsplit_once('!').map_or(&self.id, |(user, _)| user)
    }

    /// The token's short id.
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        self.id.rsplit_once('!').map(|(_, token)| token)
    }
}

/// Secrets that are kept next to the user configuration.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    /// By full token id.
    pub tokens: BTreeMap<String, String>,
    /// Salted password hashes by user: `salt$hash`.
    pub passwords: BTreeMap<String, String>,
    pub key: String,
}

impl Secrets {
    /// Reads `token.cfg` or `shadow.cfg`: an id, a blank or colon, a secret.
    #[must_use]
    pub fn parse(text: &str, separator: char) -> BTreeMap<String, String> {
        let pairs = text.lines().filter_map(|line| line.split_once(separator));
        pairs.map(|(id, secret)| (id.to_owned(), secret.to_owned())).collect()
    }

    /// Writes such a file.
    #[must_use]
    pub fn print(held: &BTreeMap<String, String>, separator: char) -> String {
        held.iter().map(|(id, secret)| format!("{id}{separator}{secret}\n")).collect()
    }

    /// Sets a password.
    pub fn set_password(&mut self, user: &str, salt: &str, password: &str) {
        self.passwords.insert(user.to_owned(), format!("{salt}${}", hash(&[salt, password])));
    }

    /// Whether the password is the user's.
    #[must_use]
    pub fn password_fits(&self, user: &str, password: &str) -> bool {
        let held = self.passwords.get(user).and_then(|held| held.split_once('$'));
        held.is_some_and(|(salt, wanted)| hash(&[salt, password]) == wanted)
    }

    /// A ticket and its CSRF prevention token.
    #[must_use]
    pub fn ticket(&self, user: &str, now_s: i64) -> (String, String) {
        let plain = format!("PVE:{user}:{now_s:08X}");
        let csrf = format!("{now_s:08X}:{}", hash(&[&self.key, user, &format!("{now_s:08X}")]));
        (format!("{plain}::{}", hash(&[&self.key, &plain])), csrf)
    }

    fn ticket_user(&self, ticket: &str, now_s: i64) -> Option<String> {
        let (plain, signature) = ticket.split_once("::")?;
        let stamp = plain.rsplit(':').next()?;
        let age_s = now_s - i64::from_str_radix(stamp, 16).ok()?;
        let fits = hash(&[&self.key, plain]) == signature && (-300..=TICKET_S).contains(&age_s);
        let user = plain.strip_prefix("PVE:")?.strip_suffix(stamp)?.strip_suffix(':')?;
        fits.then(|| user.to_owned())
    }

    fn csrf_fits(&self, user: &str, token: &str) -> bool {
        token.split_once(':').is_some_and(|(stamp, signature)| hash(&[&self.key, user, stamp]) == signature)
    }
}

/// What a request brought along.
#[derive(Debug, Default)]
pub struct Presented<'a> {
    /// The `Authorization` header.
    pub authorization: Option<&'a str>,
    /// The `PVEAuthCookie` of the `Cookie` header.
    pub cookie: Option<&'a str>,
    /// The `CSRFPreventionToken` header.
    pub csrf: Option<&'a str>,
    /// Reads need no CSRF token.
    pub reads_only: bool,
}

/// Authenticates a request.
///
/// # Errors
/// The reason phrase of the 401.
pub fn authenticate(
    config: &AccessConfig,
    secrets: &Secrets,
    shown: &Presented<'_>,
    now_s: i64,
) -> Result<Caller, &'static str> {
    const FAILED: &str = "Authentication failed!";
    if let Some(rest) = shown.authorization.and_then(|header| header.strip_prefix("PVEAPIToken")) {
        // The header may be percent-encoded; a blank does for the first equals sign.
        let rest = percent_encoding::percent_decode_str(rest).decode_utf8_lossy().into_owned();
        if let Some(value) = rest.strip_prefix(['=', ' ']) {
            let (id, secret) = value.rsplit_once('=').ok_or(FAILED)?;
            let token =
                config.token(id).filter(|token| token.expire == 0 || token.expire >= now_s).ok_or(FAILED)?;
            let known = secrets.tokens.get(id).is_some_and(|held| hash(&[held]) == hash(&[secret]));
            let who = Caller { id: id.to_owned(), ticket: false };
            return if known && active(config, who.user(), now_s) && token.expire >= 0 {
                Ok(who)
            } else {
                Err(FAILED)
            };
        }
    }
    let cookie = shown.cookie.filter(|text| !text.is_empty()).ok_or("No ticket")?;
    let cookie = percent_encoding::percent_decode_str(cookie).decode_utf8_lossy().into_owned();
    let user =
        secrets.ticket_user(&cookie, now_s).filter(|user| active(config, user, now_s)).ok_or(FAILED)?;
    if !shown.reads_only && !shown.csrf.is_some_and(|token| secrets.csrf_fits(&user, token)) {
        return Err("Permission denied - invalid csrf token");
    }
    Ok(Caller { id: user, ticket: true })
}

/// Whether a user may act at all.
#[must_use]
pub fn active(config: &AccessConfig, user: &str, now_s: i64) -> bool {
    config.users.get(user).is_some_and(|held| held.enabled && (held.expire == 0 || held.expire > now_s))
}

fn hash(parts: &[&str]) -> String {
    let mut state = Sha256::new();
    for part in parts {
        state.update((part.len() as u64).to_le_bytes());
        state.update(part.as_bytes());
    }
    hex(&state.finalize())
}

#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lab() -> (AccessConfig, Secrets) {
        let mut secrets = Secrets { key: "k".into(), ..Secrets::default() };
        for id in ["agent@pve!hostagent", "agent@pve!expired"] {
            secrets.tokens.insert(id.into(), "s3".into());
        }
        (AccessConfig::parse(include_str!("../../lab/user.cfg")), secrets)
    }

    fn with(header: &str) -> Result<Caller, &'static str> {
        let (config, secrets) = lab();
        authenticate(
            &config,
            &secrets,
            &Presented { authorization: Some(header), ..Presented::default() },
            1_800_000_000,
        )
    }

    #[test]
    fn tokens_in_every_spelling() {
        assert_eq!(with("PVEAPIToken=agent@pve!hostagent=s3").expect("good").id, "agent@pve!hostagent");
        assert!(
            with("PVEAPIToken agent@pve!hostagent=s3").is_ok()
                && with("PVEAPIToken=agent%40pve!hostagent=s3").is_ok()
        );
        for bad in [
            "PVEAPIToken=agent@pve!hostagent=s4",
            "PVEAPIToken=agent@pve!expired=s3",
            "PVEAPIToken=agent@pve!hostagent:s3",
            "PVEAPIToken=agent@pve=s3",
        ] {
            assert_eq!(with(bad), Err("Authentication failed!"), "{bad}");
        }
        for none in ["Bearer s3", "pveapitoken=agent@pve!hostagent=s3"] {
            assert_eq!(with(none), Err("No ticket"), "{none}");
        }
    }

    #[test]
    fn a_ticket_that_writes_needs_its_csrf_token() {
        let (config, secrets) = lab();
        let (ticket, csrf) = secrets.ticket("agent@pve", 1_800_000_000);
        let ask = |csrf, reads_only, now_s| {
            authenticate(
                &config,
                &secrets,
                &Presented { cookie: Some(&ticket), csrf, reads_only, ..Presented::default() },
                now_s,
            )
        };
        assert!(ask(None, true, 1_800_000_100).is_ok());
        assert_eq!(ask(None, false, 1_800_000_100), Err("Permission denied - invalid csrf token"));
        assert!(ask(Some(&csrf), false, 1_800_000_100).is_ok());
        assert_eq!(ask(Some(&csrf), true, 1_800_000_000 + TICKET_S + 1), Err("Authentication failed!"));
    }
}
