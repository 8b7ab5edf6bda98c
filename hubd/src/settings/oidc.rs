//! The settings of sign-in by a provider.
//!
//! In: `[oidc]` of `hub.toml`, and the files that it names. Out: a provider within its bounds.

use std::path::PathBuf;

use holdfast_protocol::access::{AccessScope, Grant, GrantError, Role};
use holdfast_protocol::secret::Secret;
use notify::ChannelFileError;
use notify::channel_file::read_secret;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde::Deserialize;
use url::Url;

use crate::domain::oidc::metadata::is_local;
use crate::domain::oidc::provider::{GroupGrant, ProviderSettings};

/// A list of groups that is longer belongs into the provider.
const GROUPS_MAX: usize = 64;

/// Names, scopes and claims are short words.
const WORD_MAX: usize = 200;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OidcFile {
    issuer: String,
    name: Option<String>,
    client_id: String,
    client_secret_file: Option<PathBuf>,
    scopes: Option<Vec<String>>,
    person_claim: Option<String>,
    name_claim: Option<String>,
    group_claim: Option<String>,
    ca_file: Option<PathBuf>,
    #[serde(default)]
    group: Vec<GroupFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupFile {
    group: String,
    role: Role,
    #[serde(default)]
    scope: AccessScope,
}

/// Why the settings of a provider are refused.
#[derive(Debug, thiserror::Error)]
pub enum OidcSettingsError {
    #[error(
        "oidc.issuer is {0}: write the provider's https URL as its discovery document has it, without ? and #"
    )]
    Issuer(String),
    #[error("oidc.{0} is empty, too long, or has characters that it cannot have: correct it")]
    Word(&'static str),
    #[error("oidc.client_secret_file is refused")]
    Secret(#[source] ChannelFileError),
    #[error("oidc.client_secret_file names {}, which is empty: write the client's secret into it", .0.display())]
    NoSecret(PathBuf),
    #[error("oidc.ca_file names {}, which cannot be read", path.display())]
    CaRead {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("oidc.ca_file names {}, which has no certificate in PEM", .0.display())]
    Ca(PathBuf),
    #[error("[[oidc.group]] names {0} groups; at most {GROUPS_MAX} are accepted")]
    Groups(usize),
    #[error("[[oidc.group]] names {0} twice: keep one of the two")]
    Twice(String),
    #[error("[[oidc.group]] of {group} is refused")]
    Grant {
        group: String,
        #[source]
        source: GrantError,
    },
}

impl OidcFile {
    pub(super) fn provider(self) -> Result<ProviderSettings, OidcSettingsError> {
        let host = issuer_host(&self.issuer)?;
        let client_secret = self.client_secret_file.map(secret).transpose()?;
        let ca_pem = self.ca_file.map(ca).transpose()?;
        let claim =
            |given: Option<String>, usual: &str, what| word(given.unwrap_or_else(|| usual.to_owned()), what);
        let scopes = self.scopes.unwrap_or_else(|| vec!["email".to_owned(), "profile".to_owned()]);
        let scopes = scopes.into_iter().map(|scope| word(scope, "scopes")).collect::<Result<_, _>>()?;
        let name = self.name.unwrap_or(host);
        if name.is_empty() || name.len() > WORD_MAX || name.chars().any(char::is_control) {
            return Err(OidcSettingsError::Word("name"));
        }
        Ok(ProviderSettings {
            issuer: self.issuer,
            name,
            client_id: word(self.client_id, "client_id")?,
            client_secret,
            scopes,
            person_claim: claim(self.person_claim, "email", "person_claim")?,
            name_claim: claim(self.name_claim, "preferred_username", "name_claim")?,
            group_claim: claim(self.group_claim, "groups", "group_claim")?,
            groups: groups(self.group)?,
            ca_pem,
        })
    }

    /// The issuer alone, for commands that link a person.
    pub(super) fn issuer(self) -> Result<String, OidcSettingsError> {
        issuer_host(&self.issuer).map(|_| self.issuer)
    }
}

fn issuer_host(text: &str) -> Result<String, OidcSettingsError> {
    let refused = || OidcSettingsError::Issuer(text.chars().take(128).collect());
    let url = Url::parse(text).map_err(|_| refused())?;
    let bare = url.query().is_none() && url.fragment().is_none();
    let anonymous = url.username().is_empty() && url.password().is_none();
    let safe = url.scheme() == "https" || (url.scheme() == "http" && is_local(&url));
    let host = url.host_str().filter(|_| bare && anonymous && safe && text.len() <= WORD_MAX);
    host.map(str::to_owned).ok_or_else(refused)
}

fn word(text: String, what: &'static str) -> Result<String, OidcSettingsError> {
    let fits = !text.is_empty() && text.len() <= WORD_MAX && text.chars().all(|c| c.is_ascii_graphic());
    if fits { Ok(text) } else { Err(OidcSettingsError::Word(what)) }
}

fn secret(path: PathBuf) -> Result<Secret, OidcSettingsError> {
    let text = read_secret(&path).map_err(OidcSettingsError::Secret)?;
    match text.trim() {
        "" => Err(OidcSettingsError::NoSecret(path)),
        text => Ok(Secret::new(text.to_owned())),
    }
}

fn ca(path: PathBuf) -> Result<Vec<u8>, OidcSettingsError> {
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(source) => return Err(OidcSettingsError::CaRead { path, source }),
    };
    let mut certificates = CertificateDer::pem_slice_iter(&bytes).peekable();
    let whole = certificates.peek().is_some() && certificates.all(|one| one.is_ok());
    if whole { Ok(bytes) } else { Err(OidcSettingsError::Ca(path)) }
}

fn groups(files: Vec<GroupFile>) -> Result<Vec<GroupGrant>, OidcSettingsError> {
    if files.len() > GROUPS_MAX {
        return Err(OidcSettingsError::Groups(files.len()));
    }
    let mut groups: Vec<GroupGrant> = Vec::new();
    for GroupFile { group, role, scope } in files {
        if groups.iter().any(|one| one.group == group) {
            return Err(OidcSettingsError::Twice(group));
        }
        let grant = match Grant::new(role, scope) {
            Ok(grant) => grant,
            Err(source) => return Err(OidcSettingsError::Grant { group, source }),
        };
        groups.push(GroupGrant { group, grant });
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn provider(text: &str) -> Result<ProviderSettings, OidcSettingsError> {
        toml::from_str::<OidcFile>(text).unwrap().provider()
    }

    const SHORT: &str = "issuer = \"https://login.example/realm\"\nclient_id = \"holdfast\"\n";

    #[test]
    fn two_lines_are_enough() {
        let found = provider(SHORT).unwrap();
        assert_eq!((found.name.as_str(), found.person_claim.as_str()), ("login.example", "email"));
        assert!(found.client_secret.is_none() && found.groups.is_empty());
    }

    #[test]
    fn groups_have_roles_and_scopes() {
        let found = provider(&format!(
            "{SHORT}[[group]]\ngroup = \"ops\"\nrole = \"operator\"\nscope = {{ kind = \"hosts\", labels = {{ site = \"a\" }} }}\n\
             [[group]]\ngroup = \"acme\"\nrole = \"customer\"\nscope = {{ kind = \"customer\", customer = \"acme\" }}\n"
        ))
        .unwrap();
        let texts: Vec<_> = found.groups.iter().map(|one| one.grant.to_string()).collect();
        assert_eq!(texts.len(), 2, "{texts:?}");
        let lone = format!("{SHORT}[[group]]\ngroup = \"acme\"\nrole = \"customer\"\n");
        assert!(matches!(provider(&lone), Err(OidcSettingsError::Grant { .. })));
        let twice = format!("{SHORT}{}", "[[group]]\ngroup = \"a\"\nrole = \"viewer\"\n".repeat(2));
        assert!(matches!(provider(&twice), Err(OidcSettingsError::Twice(_))));
    }

    #[test]
    fn an_issuer_in_the_clear_and_odd_words_are_refused() {
        for issuer in
            ["http://login.example", "https://login.example?x", "https://a:b@login.example", "login", ""]
        {
            let text = format!("issuer = {issuer:?}\nclient_id = \"h\"");
            assert!(matches!(provider(&text), Err(OidcSettingsError::Issuer(_))), "{issuer}");
        }
        assert!(provider("issuer = \"http://127.0.0.1:9\"\nclient_id = \"h\"").is_ok());
        for line in ["person_claim = \"\"", "name = \"\"", "scopes = [\"a b\"]"] {
            assert!(matches!(provider(&format!("{SHORT}{line}")), Err(OidcSettingsError::Word(_))), "{line}");
        }
        assert!(toml::from_str::<OidcFile>(&format!("{SHORT}secret = \"x\"")).is_err());
    }

    #[test]
    fn a_secret_is_in_a_file_that_not_everybody_reads() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let text = format!("{SHORT}client_secret_file = {path:?}\n");
        assert!(matches!(provider(&text), Err(OidcSettingsError::Secret(_))));
        for (content, mode) in [("s3cret\n", 0o644), ("\n", 0o600), ("s3cret\n", 0o600)] {
            std::fs::write(&path, content).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            match (provider(&text), mode, content) {
                (Err(OidcSettingsError::Secret(_)), 0o644, _)
                | (Err(OidcSettingsError::NoSecret(_)), _, "\n") => {}
                (Ok(found), 0o600, _) => assert_eq!(found.client_secret.unwrap().expose(), "s3cret"),
                (other, _, _) => panic!("{other:?}"),
            }
        }
        let ca = format!("{SHORT}ca_file = {path:?}\n");
        assert!(matches!(provider(&ca), Err(OidcSettingsError::Ca(_))));
    }
}
