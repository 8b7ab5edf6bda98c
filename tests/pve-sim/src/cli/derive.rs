//! `pve-sim derive-calls`: writes the table of calls anew.
use std::path::Path;

use anyhow::Context as _;

/// Derives the two files.
pub fn run(schema: &Path, out: &Path) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(schema)
        .with_context(|| format!("the schema {} cannot be read", schema.display()))?;
    let derived = pve_sim::schema::derive::derive(&text)?;
    for (name, text) in [("calls.toml", derived.calls), ("params.toml", derived.params)] {
        let path = out.join(name);
        std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    Ok(())
}
