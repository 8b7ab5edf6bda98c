//! `cargo xtask schemas`: generated documents of wire, conditions and limits.
//!
//! Out: the JSON Schemas of all wire documents in `docs/schema/`, the OpenAPI documents of hub and local API,
//! `docs/authorization.md`, `docs/conditions.md`, `docs/metrics.md` and `docs/limits.md`; or whether they are fresh.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::{authorization, conditions, limits, metrics};

const FOLDER: &str = "docs/schema";
const LOCAL_API: &str = "docs/local-api.openapi.json";
const HUB_API: &str = "docs/hub-api.openapi.json";

/// What to do with the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Write,
    /// Compare them, and fail where one differs.
    Check,
}

/// Writes or checks every schema; a file of no schema is stale too.
pub fn run(root: &Path, mode: Mode) -> Result<()> {
    let folder = root.join(FOLDER);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {FOLDER}"))?;
    let mut stale = Vec::new();
    let mut names = Vec::new();
    for named in holdfast_protocol::schema::all() {
        let file = format!("{}.schema.json", named.name);
        stale.extend(keep(root, &format!("{FOLDER}/{file}"), named.schema.as_value(), mode)?);
        names.push(file);
    }
    stale.extend(keep(root, HUB_API, &holdfast_protocol::hub::openapi::document(), mode)?);
    stale.extend(keep(root, LOCAL_API, &holdfast_protocol::local::openapi::document(), mode)?);
    stale.extend(keep_text(root, authorization::PAGE, &authorization::page()?, mode)?);
    stale.extend(keep_text(root, conditions::PAGE, &conditions::page(), mode)?);
    stale.extend(keep_text(root, metrics::PAGE, &metrics::page(), mode)?);
    stale.extend(keep_text(root, limits::PAGE, &limits::page(root)?, mode)?);
    for entry in std::fs::read_dir(&folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !names.contains(&name) {
            stale.push(format!("{FOLDER}/{name} (no such document any more: remove it)"));
        }
    }
    if stale.is_empty() {
        println!(
            "schemas: {} documents in {FOLDER}, {HUB_API}, {LOCAL_API}, {}, {}, {} and {}",
            names.len(),
            authorization::PAGE,
            conditions::PAGE,
            metrics::PAGE,
            limits::PAGE
        );
        Ok(())
    } else {
        bail!("stale: {}; run `cargo xtask schemas`", stale.join(", "))
    }
}

/// Writes one document where the mode requires it and it is stale; otherwise returns its name where it is stale.
fn keep(root: &Path, file: &str, document: &serde_json::Value, mode: Mode) -> Result<Option<String>> {
    keep_text(root, file, &format!("{}\n", serde_json::to_string_pretty(document)?), mode)
}

fn keep_text(root: &Path, file: &str, text: &str, mode: Mode) -> Result<Option<String>> {
    let path = root.join(file);
    if std::fs::read_to_string(&path).is_ok_and(|old| old == text) {
        return Ok(None);
    }
    if mode == Mode::Check {
        return Ok(Some(file.to_owned()));
    }
    std::fs::write(&path, text).with_context(|| format!("cannot write {file}"))?;
    Ok(None)
}
