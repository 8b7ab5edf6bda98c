//! The look of a page: theme and way back.
//!
//! In: what a browser sends. Out: a theme for the root element, and a path of this hub. Deliberately absent: the cookie's
//! header and the redirect, which the hub writes.

/// The cookie in which a browser keeps its theme.
pub const THEME_COOKIE: &str = "__Host-holdfast-theme";

/// Which colours a page has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// Those that the device prefers.
    #[default]
    System,
    Light,
    Dark,
}

impl Theme {
    pub const ALL: [Self; 3] = [Self::System, Self::Light, Self::Dark];

    /// As forms, the cookie and the style sheet name it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    #[must_use]
    pub fn named(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|theme| theme.as_str() == text)
    }

    /// What the browser may paint before it has the style sheet.
    pub(crate) const fn scheme(self) -> &'static str {
        match self {
            Self::System => "light dark",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// The attribute of the root element; none where the device decides.
    pub(crate) const fn fixed(self) -> Option<&'static str> {
        match self {
            Self::System => None,
            Self::Light | Self::Dark => Some(self.scheme()),
        }
    }
}

/// As long as an address of ours gets.
const PATH_MAX: usize = 2_000;

/// Path and query of a page of this hub. A browser that is sent there stays on this hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalPath(String);

impl LocalPath {
    /// None for what a browser could read as an address of another server.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
        let is_local = text.starts_with('/') && !text.starts_with("//");
        (is_plain && is_local && text.len() <= PATH_MAX).then(|| Self(text.to_owned()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for LocalPath {
    fn default() -> Self {
        Self("/".to_owned())
    }
}

/// How a browser wants its pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    pub theme: Theme,
    /// Where the form of the theme comes back to.
    pub back: LocalPath,
}

/// One button of the form.
pub(crate) struct Choice {
    pub name: &'static str,
    pub is_current: bool,
}

impl Look {
    pub(crate) fn choices(&self) -> [Choice; 3] {
        Theme::ALL.map(|theme| Choice { name: theme.as_str(), is_current: theme == self.theme })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_leads_to_another_server() {
        for there in
            ["//evil.example", "/\\evil.example", "https://evil.example", "", "evil", "/a b", "/\r\nx"]
        {
            assert_eq!(LocalPath::parse(there), None, "{there}");
        }
        assert_eq!(LocalPath::parse(&format!("/{}", "x".repeat(PATH_MAX))), None);
        for here in ["/", "/hosts?filter=%40state-late", "/hosts/box7/guests/a//b"] {
            assert_eq!(LocalPath::parse(here).unwrap().as_str(), here);
        }
    }

    #[test]
    fn a_theme_is_read_by_the_name_it_is_written_with() {
        for theme in Theme::ALL {
            assert_eq!(Theme::named(theme.as_str()), Some(theme));
        }
        assert_eq!(Theme::named("Dark"), None);
    }
}
