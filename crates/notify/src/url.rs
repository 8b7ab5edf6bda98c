//! URLs of receivers, plain and secret.

use std::fmt;

use holdfast_protocol::secret::Secret;
use serde::{Deserialize, Serialize};
use url::{Host, Url};

/// The most bytes of a URL. A Power Automate URL has more than 255.
pub const URL_BYTES_MAX: usize = 2048;

/// Why a URL is refused. The URL itself is not in it, because it may hold a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error("the URL cannot be read")]
    Syntax,
    #[error("the URL has more than {URL_BYTES_MAX} bytes")]
    TooLong,
    #[error("the URL must begin with https://; http:// is allowed to this machine alone")]
    Scheme,
    #[error("the URL names a user or a password: write the token into its own field")]
    UserInfo,
    #[error("the URL has a part after `#`, which is never sent")]
    Fragment,
    #[error("the URL of a server has a part after `?`: give its address alone")]
    Query,
}

fn check(text: &str) -> Result<Url, UrlError> {
    if text.len() > URL_BYTES_MAX {
        return Err(UrlError::TooLong);
    }
    let url = Url::parse(text).map_err(|_| UrlError::Syntax)?;
    match (url.scheme(), url.host()) {
        ("https", Some(_)) => {}
        ("http", Some(host)) if is_this_machine(&host) => {}
        _ => return Err(UrlError::Scheme),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(UrlError::UserInfo);
    }
    if url.fragment().is_some() {
        return Err(UrlError::Fragment);
    }
    Ok(url)
}

/// Whether a host is this machine without any lookup.
pub(crate) fn is_this_machine(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

/// The address of a server, with the path that it is served under.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServerUrl(Url);

impl ServerUrl {
    /// The URL of a path below it. Each segment is escaped, so that none can reach another path.
    #[must_use]
    pub fn path(&self, segments: &[&str]) -> Url {
        let mut url = self.0.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }

    /// The server's root, with a `/` at its end.
    #[must_use]
    pub fn root(&self) -> Url {
        self.path(&[""])
    }
}

impl TryFrom<String> for ServerUrl {
    type Error = UrlError;
    fn try_from(text: String) -> Result<Self, UrlError> {
        let url = check(&text)?;
        if url.query().is_some() { Err(UrlError::Query) } else { Ok(Self(url)) }
    }
}

impl From<ServerUrl> for String {
    fn from(url: ServerUrl) -> Self {
        url.0.into()
    }
}

/// A URL that is itself the permission to send: anyone who has it can post.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "Secret", into = "Secret")]
pub struct SecretUrl(Secret);

impl SecretUrl {
    /// The text, exactly as it was given. Signatures in a query break when it is written anew.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose()
    }
}

impl TryFrom<Secret> for SecretUrl {
    type Error = UrlError;
    fn try_from(text: Secret) -> Result<Self, UrlError> {
        check(text.expose()).map(|_| Self(text))
    }
}

impl From<Url> for SecretUrl {
    fn from(url: Url) -> Self {
        Self(Secret::new(url.into()))
    }
}

impl From<SecretUrl> for Secret {
    fn from(url: SecretUrl) -> Self {
        url.0
    }
}

impl fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretUrl(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_urls_say_why_and_not_what() {
        let long = format!("https://a.example/{}", "a".repeat(URL_BYTES_MAX));
        for (text, why) in [
            ("hunter2", UrlError::Syntax),
            ("https://", UrlError::Syntax),
            (long.as_str(), UrlError::TooLong),
            ("http://ntfy.example/hunter2", UrlError::Scheme),
            ("http://192.168.0.1/hunter2", UrlError::Scheme),
            ("http://localhost.example/hunter2", UrlError::Scheme),
            ("ftp://127.0.0.1/hunter2", UrlError::Scheme),
            ("https://a:hunter2@ntfy.example/", UrlError::UserInfo),
            ("https://hunter2@ntfy.example/", UrlError::UserInfo),
            ("https://ntfy.example/#hunter2", UrlError::Fragment),
        ] {
            assert_eq!(ServerUrl::try_from(text.to_owned()), Err(why), "{text}");
            let error = SecretUrl::try_from(Secret::new(text.to_owned())).unwrap_err();
            assert_eq!(error, why, "{text}");
            assert!(!format!("{error:?} {error}").contains("hunter2"));
        }
        let query = ServerUrl::try_from("https://ntfy.example/?auth=hunter2".to_owned());
        assert_eq!(query, Err(UrlError::Query));
    }

    #[test]
    fn plain_http_goes_to_this_machine_alone() {
        for good in
            ["https://ntfy.example", "http://127.0.0.1:80", "http://[::1]:8080/ntfy", "http://localhost"]
        {
            ServerUrl::try_from(good.to_owned()).unwrap();
        }
    }

    #[test]
    fn segments_stay_below_the_path_of_the_server() {
        for base in ["https://a.example/chat", "https://a.example/chat/"] {
            let server = ServerUrl::try_from(base.to_owned()).unwrap();
            assert_eq!(server.root().as_str(), "https://a.example/chat/");
            assert_eq!(
                server.path(&["r", "!a/b:c.d", "ü"]).as_str(),
                "https://a.example/chat/r/!a%2Fb:c.d/%C3%BC"
            );
        }
    }
}
