//! Style sheet, script and icon, named by their digest.
//!
//! The name changes with the bytes, so a browser may keep a file for ever.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};

/// A file that pages refer to.
pub struct Asset {
    name: &'static str,
    end: &'static str,
    /// Its media type.
    pub media: &'static str,
    pub bytes: &'static [u8],
    digest: LazyLock<String>,
}

/// The style sheet of all pages.
pub static STYLE: Asset = Asset {
    name: "style",
    end: "css",
    media: "text/css; charset=utf-8",
    bytes: include_bytes!("../assets/style.css"),
    digest: LazyLock::new(|| digest(include_bytes!("../assets/style.css"))),
};

/// The script of all pages. Each page works without it.
pub static SCRIPT: Asset = Asset {
    name: "page",
    end: "js",
    media: "text/javascript; charset=utf-8",
    bytes: include_bytes!("../assets/page.js"),
    digest: LazyLock::new(|| digest(include_bytes!("../assets/page.js"))),
};

/// Reads a page anew when the hub says that something changed.
pub static LIVE: Asset = Asset {
    name: "live",
    end: "js",
    media: "text/javascript; charset=utf-8",
    bytes: include_bytes!("../assets/live.js"),
    digest: LazyLock::new(|| digest(include_bytes!("../assets/live.js"))),
};

/// The sign of the browser's tab.
pub static ICON: Asset = Asset {
    name: "icon",
    end: "svg",
    media: "image/svg+xml",
    bytes: include_bytes!("../assets/icon.svg"),
    digest: LazyLock::new(|| digest(include_bytes!("../assets/icon.svg"))),
};

/// Sixteen hexadecimal digits of the SHA-256.
fn digest(bytes: &[u8]) -> String {
    let whole = hex::encode(Sha256::digest(bytes));
    whole.get(..16).unwrap_or_default().to_owned()
}

impl Asset {
    /// Its file name: `style-0123456789abcdef.css`.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}-{}.{}", self.name, *self.digest, self.end)
    }

    /// Where pages find it.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/assets/{}", self.file_name())
    }
}

/// The asset with this file name; none for one of another version.
#[must_use]
pub fn named(file: &str) -> Option<&'static Asset> {
    [&STYLE, &SCRIPT, &LIVE, &ICON].into_iter().find(|asset| asset.file_name() == file)
}
