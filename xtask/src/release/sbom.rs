//! Bills of materials in CycloneDX 1.5.
//!
//! In: `cargo metadata` and `Cargo.lock`. Out: one JSON document for each program: the crates that are linked into it, with
//! version, licence and the hash of what was downloaded. The same sources give the same document. Features are those of
//! the whole workspace, so a document may list a crate that its program leaves out, and never lacks one. Deliberately absent:
//! what the system links (`Depends` of the packages has it).

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use holdfast_protocol::job::act::Sha256Text;
use serde::Deserialize;
use serde_json::{Value, json};

use super::graph::{Linked, Metadata, Package};
use super::manifest::second;
use crate::workspace::{cargo, triple};

/// What the documents are made from.
pub struct Sources {
    metadata: Metadata,
    /// SHA-256 of each downloaded crate, by name and version.
    checksums: BTreeMap<(String, String), String>,
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<LockedPackage>,
}

#[derive(Deserialize)]
struct LockedPackage {
    name: String,
    version: String,
    checksum: Option<String>,
}

impl Sources {
    /// Of a checkout.
    pub fn of(root: &Path) -> Result<Self> {
        let mut metadata = cargo();
        metadata.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &triple()?]);
        let said = metadata.output().context("cannot run cargo metadata")?;
        if !said.status.success() {
            bail!("cargo metadata ended with {}: {}", said.status, String::from_utf8_lossy(&said.stderr));
        }
        let lock = std::fs::read_to_string(root.join("Cargo.lock")).context("cannot read Cargo.lock")?;
        Self::parse(&said.stdout, &lock)
    }

    fn parse(metadata: &[u8], lock: &str) -> Result<Self> {
        let metadata = serde_json::from_slice(metadata).context("cargo metadata has another form")?;
        let lock: Lock = toml::from_str(lock).context("Cargo.lock has another form")?;
        let checksums = lock.package.into_iter().filter_map(|package| {
            let checksum = package.checksum?;
            Some(((package.name, package.version), checksum))
        });
        Ok(Self { metadata, checksums: checksums.collect() })
    }
}

/// The document of a program, as of a time in seconds since 1970.
pub fn document(sources: &Sources, name: &str, stamp: i64) -> Result<Value> {
    let (own, linked) = sources.metadata.linked(name)?;
    let mut parts: Vec<&Linked> = linked.values().filter(|one| one.package.id != own.id).collect();
    parts.sort_by_key(|one| (&one.package.name, &one.package.version));
    let purls: BTreeMap<&str, String> =
        linked.iter().map(|(id, one)| (id.as_str(), purl(&one.package))).collect();
    let components: Vec<Value> =
        parts.iter().map(|one| component("library", &one.package, &sources.checksums)).collect();
    let mut dependencies: Vec<Value> = linked
        .values()
        .map(|one| {
            let mut on: Vec<&String> = one.links.iter().filter_map(|id| purls.get(id.as_str())).collect();
            on.sort();
            json!({ "ref": purl(&one.package), "dependsOn": on })
        })
        .collect();
    dependencies.sort_by_key(|one| one.get("ref").and_then(Value::as_str).unwrap_or_default().to_owned());
    let content = serde_json::to_string(&components)?;
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": serial(&format!("{name}\n{stamp}\n{content}")),
        "version": 1,
        "metadata": {
            "timestamp": second(stamp)?.to_string(),
            "component": component("application", &own, &sources.checksums),
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

fn purl(package: &Package) -> String {
    // A '+' of a version would be read as a space.
    format!("pkg:cargo/{}@{}", package.name, package.version.replace('+', "%2B"))
}

fn component(kind: &str, package: &Package, checksums: &BTreeMap<(String, String), String>) -> Value {
    let purl = purl(package);
    // As crates wrote it before SPDX expressions.
    let licence = package.license.as_ref().map(|text| json!([{ "expression": text.replace('/', " OR ") }]));
    let checksum = checksums.get(&(package.name.clone(), package.version.clone()));
    let hash = checksum.map(|checksum| json!([{ "alg": "SHA-256", "content": checksum }]));
    let fields = [
        ("type", Some(json!(kind))),
        ("bom-ref", Some(json!(purl))),
        ("name", Some(json!(package.name))),
        ("version", Some(json!(package.version))),
        ("purl", Some(json!(purl))),
        ("licenses", licence),
        ("hashes", hash),
    ];
    let said = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(said.collect())
}

/// A UUID that the content decides (version 8: of its maker's own making).
fn serial(content: &str) -> String {
    let hash = Sha256Text::of(content.as_bytes());
    let digits = hash.as_str();
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    format!("urn:uuid:{}-{}-8{}-8{}-{}", part(0, 8), part(8, 12), part(12, 15), part(15, 18), part(18, 30))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = "version = 4\n[[package]]\nname = \"serde\"\nversion = \"1.0.1+x\"\nchecksum = \"ab\"\n\
                        [[package]]\nname = \"agentd\"\nversion = \"0.1.0\"\n";

    fn sources() -> Sources {
        let package = |id: &str, name: &str, version: &str, source: Option<&str>| json!({ "id": id, "name": name, "version": version, "license": "MIT/Apache-2.0", "source": source });
        let dep = |id: &str, kinds: &[Option<&str>]| {
            let kinds: Vec<Value> =
                kinds.iter().map(|kind| json!({ "kind": kind, "target": null })).collect();
            json!({ "name": id, "pkg": id, "dep_kinds": kinds })
        };
        let registry = Some("registry+https://github.com/rust-lang/crates.io-index");
        let metadata = json!({
            "packages": [
                package("a", "agentd", "0.1.0", None), package("p", "protocol", "0.1.0", None),
                package("s", "serde", "1.0.1+x", registry), package("t", "tempfile", "3.0.0", registry),
                package("c", "cc", "1.0.0", registry), package("h", "hubd", "0.1.0", None),
            ],
            "resolve": { "nodes": [
                { "id": "a", "deps": [dep("p", &[None]), dep("t", &[Some("dev")]), dep("c", &[Some("build")])] },
                { "id": "p", "deps": [dep("s", &[Some("build"), None])] },
                { "id": "s", "deps": [] }, { "id": "t", "deps": [] }, { "id": "c", "deps": [] }, { "id": "h", "deps": [] },
            ] },
        });
        Sources::parse(metadata.to_string().as_bytes(), LOCK).unwrap()
    }

    #[test]
    fn what_is_linked_is_listed_and_nothing_else() {
        let document = document(&sources(), "agentd", 1_764_547_200).unwrap();
        assert_eq!((&document["bomFormat"], &document["specVersion"]), (&json!("CycloneDX"), &json!("1.5")));
        assert_eq!(document["metadata"]["timestamp"], "2025-12-01T00:00:00Z");
        assert_eq!(document["metadata"]["component"]["purl"], "pkg:cargo/agentd@0.1.0");
        assert_eq!(
            document["components"],
            json!([
                { "type": "library", "bom-ref": "pkg:cargo/protocol@0.1.0", "name": "protocol", "version": "0.1.0",
                  "purl": "pkg:cargo/protocol@0.1.0", "licenses": [{ "expression": "MIT OR Apache-2.0" }] },
                { "type": "library", "bom-ref": "pkg:cargo/serde@1.0.1%2Bx", "name": "serde", "version": "1.0.1+x",
                  "purl": "pkg:cargo/serde@1.0.1%2Bx", "licenses": [{ "expression": "MIT OR Apache-2.0" }],
                  "hashes": [{ "alg": "SHA-256", "content": "ab" }] },
            ])
        );
        assert_eq!(
            document["dependencies"],
            json!([
                { "ref": "pkg:cargo/agentd@0.1.0", "dependsOn": ["pkg:cargo/protocol@0.1.0"] },
                { "ref": "pkg:cargo/protocol@0.1.0", "dependsOn": ["pkg:cargo/serde@1.0.1%2Bx"] },
                { "ref": "pkg:cargo/serde@1.0.1%2Bx", "dependsOn": [] },
            ])
        );
    }

    #[test]
    fn the_same_sources_give_the_same_document() {
        let make = |name, stamp| document(&sources(), name, stamp);
        let (one, again) = (make("agentd", 7).unwrap(), make("agentd", 7).unwrap());
        assert_eq!(one, again);
        let serial = one["serialNumber"].as_str().unwrap();
        let uuid = serial.strip_prefix("urn:uuid:").unwrap();
        assert_eq!(uuid.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        assert_ne!(make("hubd", 7).unwrap()["serialNumber"], one["serialNumber"]);
        assert!(make("no-such", 7).is_err());
    }

    /// Of this checkout: each crate of others has a licence and the hash of its download.
    #[test]
    fn each_program_has_its_document() {
        let sources = Sources::of(&crate::workspace::root()).unwrap();
        for name in crate::shipped::PROGRAMS {
            let document = document(&sources, name, 0).unwrap();
            let components = document["components"].as_array().unwrap();
            let others: Vec<_> = components.iter().filter(|one| one.get("hashes").is_some()).collect();
            assert!(others.len() >= 5, "{name}: {}", others.len());
            assert!(others.iter().all(|one| one.get("licenses").is_some()), "{name}");
            let names: Vec<&str> = components.iter().map(|one| one["name"].as_str().unwrap()).collect();
            assert!(!names.contains(&"insta"), "{name} has what only tests use");
            assert_eq!(names.contains(&"rusqlite"), ["agentd", "hubd"].contains(&name), "{name}");
        }
    }
}
