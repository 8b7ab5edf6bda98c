//! `cargo xtask schemas`: writes the JSON Schemas of all wire documents to `docs/schema/`, or checks that they are fresh.

use std::path::Path;

use anyhow::{Context, Result, bail};

const FOLDER: &str = "docs/schema";

/// What to do with the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Write them.
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
        let text = format!("{}\n", serde_json::to_string_pretty(named.schema.as_value())?);
        let path = folder.join(&file);
        let fresh = std::fs::read_to_string(&path).is_ok_and(|old| old == text);
        if !fresh && mode == Mode::Write {
            std::fs::write(&path, text).with_context(|| format!("cannot write {FOLDER}/{file}"))?;
        } else if !fresh {
            stale.push(file.clone());
        }
        names.push(file);
    }
    for entry in std::fs::read_dir(&folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !names.contains(&name) {
            stale.push(format!("{name} (no such document any more: remove it)"));
        }
    }
    if stale.is_empty() {
        println!("schemas: {} documents in {FOLDER}", names.len());
        Ok(())
    } else {
        bail!("stale in {FOLDER}: {}; run `cargo xtask schemas`", stale.join(", "))
    }
}
