//! Bill of materials of an image: SPDX 2.3 as JSON.
//!
//! In: the manifest. Out: one document that other people's tools read. The same image gives the same bytes, so it
//! carries the date of the recipe and not the hour of the build. Deliberately absent: licences. Debian states them in
//! `copyright` files inside the image, and a guess would be worse than `NOASSERTION`.

use anyhow::{Result, anyhow};
use holdfast_protocol::golden::{GoldenManifest, GoldenPackage};
use serde::Serialize;

const NO_ASSERTION: &str = "NOASSERTION";
const DOCUMENT: &str = "SPDXRef-DOCUMENT";
const IMAGE: &str = "SPDXRef-Image";
const CONTROLLER: &str = "SPDXRef-Controller";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    spdx_version: &'static str,
    data_license: &'static str,
    #[serde(rename = "SPDXID")]
    spdx_id: &'static str,
    name: String,
    document_namespace: String,
    creation_info: CreationInfo,
    packages: Vec<Package>,
    relationships: Vec<Relationship>,
}

#[derive(Serialize)]
struct CreationInfo {
    created: String,
    creators: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Package {
    #[serde(rename = "SPDXID")]
    spdx_id: String,
    name: String,
    version_info: String,
    supplier: &'static str,
    download_location: &'static str,
    files_analyzed: bool,
    license_concluded: &'static str,
    license_declared: &'static str,
    copyright_text: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    checksums: Vec<Checksum>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    external_refs: Vec<ExternalRef>,
    primary_package_purpose: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Checksum {
    algorithm: &'static str,
    checksum_value: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExternalRef {
    reference_category: &'static str,
    reference_type: &'static str,
    reference_locator: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Relationship {
    spdx_element_id: &'static str,
    relationship_type: &'static str,
    related_spdx_element: String,
}

/// Writes it down.
pub fn text(manifest: &GoldenManifest) -> Result<String> {
    let suite = manifest.suite.as_deref().ok_or_else(|| anyhow!("a tiny image has no packages to list"))?;
    let created = jiff::Timestamp::from_second(i64::try_from(manifest.source_date_epoch)?)?;
    let image = Package {
        checksums: vec![sha256(&manifest.sha256)],
        ..package(IMAGE.to_owned(), "holdfast-golden", manifest.version.as_str(), "CONTAINER")
    };
    let controller = Package {
        checksums: vec![sha256(&manifest.guestd_sha256)],
        ..package(CONTROLLER.to_owned(), "guestd", &manifest.guestd_sha256, "APPLICATION")
    };
    let mut relationships =
        vec![related(DOCUMENT, "DESCRIBES", IMAGE), related(IMAGE, "CONTAINS", CONTROLLER)];
    let mut packages = vec![image, controller];
    for installed in &manifest.packages {
        let listed = of_debian(installed, suite);
        relationships.push(related(IMAGE, "CONTAINS", &listed.spdx_id));
        packages.push(listed);
    }
    let document = Document {
        spdx_version: "SPDX-2.3",
        data_license: "CC0-1.0",
        spdx_id: DOCUMENT,
        name: format!("holdfast-golden-{}", manifest.version),
        document_namespace: format!(
            "https://spdx.org/spdxdocs/holdfast-golden-{}-{}",
            manifest.version, manifest.sha256
        ),
        creation_info: CreationInfo {
            created: created.to_string(),
            creators: vec![format!("Tool: holdfast-golden-{}", env!("CARGO_PKG_VERSION"))],
        },
        packages,
        relationships,
    };
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn package(spdx_id: String, name: &str, version: &str, purpose: &'static str) -> Package {
    Package {
        spdx_id,
        name: name.to_owned(),
        version_info: version.to_owned(),
        supplier: NO_ASSERTION,
        download_location: NO_ASSERTION,
        files_analyzed: false,
        license_concluded: NO_ASSERTION,
        license_declared: NO_ASSERTION,
        copyright_text: NO_ASSERTION,
        checksums: Vec::new(),
        external_refs: Vec::new(),
        primary_package_purpose: purpose,
    }
}

fn of_debian(installed: &GoldenPackage, suite: &str) -> Package {
    let GoldenPackage { name, version, architecture } = installed;
    let locator =
        format!("pkg:deb/debian/{}@{}?arch={architecture}&distro={suite}", in_purl(name), in_purl(version));
    let id = format!("SPDXRef-deb-{}-{}", in_id(name), in_id(architecture));
    Package {
        supplier: "Organization: Debian",
        external_refs: vec![ExternalRef {
            reference_category: "PACKAGE-MANAGER",
            reference_type: "purl",
            reference_locator: locator,
        }],
        ..package(id, name, version, "LIBRARY")
    }
}

fn sha256(value: &str) -> Checksum {
    Checksum { algorithm: "SHA256", checksum_value: value.to_owned() }
}

fn related(from: &'static str, kind: &'static str, to: &str) -> Relationship {
    Relationship { spdx_element_id: from, relationship_type: kind, related_spdx_element: to.to_owned() }
}

/// An SPDX id has letters, digits, dots and dashes; a Debian name may have a plus, and no two become one by this.
fn in_id(text: &str) -> String {
    text.replace('+', ".plus.")
}

fn in_purl(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use holdfast_protocol::golden::{GoldenBuild, GoldenContents, GoldenManifestSchema};
    use serde_json::Value;

    use super::*;

    fn manifest() -> GoldenManifest {
        let package = |name: &str, version: &str| GoldenPackage {
            name: name.to_owned(),
            version: version.to_owned(),
            architecture: "amd64".to_owned(),
        };
        GoldenManifest {
            schema: GoldenManifestSchema::V1,
            version: "2026.11.1".parse().unwrap(),
            contents: GoldenContents::Complete,
            archive: "a.tar.zst".to_owned(),
            sha256: "ab".repeat(32),
            size_bytes: 1,
            recipe_sha256: "cd".repeat(32),
            guestd_sha256: "ef".repeat(32),
            sbom: None,
            suite: Some("trixie".to_owned()),
            source_date_epoch: 1_793_491_200,
            builder: String::new(),
            archives_as_of: None,
            received: None,
            build: GoldenBuild { made_at_s: 0, seconds: 1, entries: 1, content_bytes: 1 },
            packages: vec![package("libstdc++6", "14.2.0-19"), package("zlib1g", "1:1.3.1+really1.3.1-1")],
        }
    }

    /// What the SPDX 2.3 specification says must be there, and of which form.
    #[test]
    fn the_document_is_valid_spdx() {
        let document: Value = serde_json::from_str(&text(&manifest()).unwrap()).unwrap();
        for (field, form) in
            [("spdxVersion", "SPDX-2.3"), ("dataLicense", "CC0-1.0"), ("SPDXID", "SPDXRef-DOCUMENT")]
        {
            assert_eq!(document[field], form, "{field}");
        }
        assert!(!document["name"].as_str().unwrap().is_empty());
        let namespace = document["documentNamespace"].as_str().unwrap();
        assert!(namespace.starts_with("https://") && !namespace.contains('#'), "{namespace}");
        let creation = &document["creationInfo"];
        assert_eq!(creation["created"], "2026-11-01T00:00:00Z", "UTC, whole seconds");
        assert!(creation["creators"][0].as_str().unwrap().starts_with("Tool: "));
        let mut ids = BTreeSet::from(["SPDXRef-DOCUMENT".to_owned()]);
        for package in document["packages"].as_array().unwrap() {
            let id = package["SPDXID"].as_str().unwrap();
            let rest = id.strip_prefix("SPDXRef-").unwrap();
            let allowed = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
            assert!(!rest.is_empty() && rest.chars().all(allowed), "{id}");
            assert!(ids.insert(id.to_owned()), "{id} twice");
            for field in ["name", "versionInfo", "downloadLocation", "licenseConcluded", "copyrightText"] {
                assert!(!package[field].as_str().unwrap().is_empty(), "{id} {field}");
            }
            let supplier = package["supplier"].as_str().unwrap();
            assert!(supplier == "NOASSERTION" || supplier.starts_with("Organization: "), "{supplier}");
            assert_eq!(package["filesAnalyzed"], false, "then no verification code is asked for");
            for checksum in package["checksums"].as_array().into_iter().flatten() {
                assert_eq!(checksum["algorithm"], "SHA256");
                assert_eq!(checksum["checksumValue"].as_str().unwrap().len(), 64);
            }
        }
        assert_eq!(ids.len(), 5);
        let relationships = document["relationships"].as_array().unwrap();
        assert_eq!(relationships[0]["relationshipType"], "DESCRIBES");
        for one in relationships {
            for end in ["spdxElementId", "relatedSpdxElement"] {
                assert!(ids.contains(one[end].as_str().unwrap()), "{one}");
            }
        }
        assert_eq!(relationships.len(), 4, "every package stands in one");
        let locator = &document["packages"][3]["externalRefs"][0]["referenceLocator"];
        assert_eq!(locator, "pkg:deb/debian/zlib1g@1%3A1.3.1%2Breally1.3.1-1?arch=amd64&distro=trixie");
    }

    #[test]
    fn the_document_is_reproducible() {
        let mut later = manifest();
        later.build.made_at_s = 99;
        assert_eq!(text(&manifest()).unwrap(), text(&later).unwrap());
    }
}
