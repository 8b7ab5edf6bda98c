//! The layer table of `ARCHITECTURE.md`, held against what `agentd`'s modules import.
//!
//! A module may import from lower layers, and in its own layer from those to its right in the table.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};

use super::{Breach, Source};

/// The heading above the table.
const HEADING: &str = "## agentd by layers";
const SOURCES: [&str; 2] = ["agentd/src/", "crates/agent-core/src/"];

/// Module → rank; a module may import those of lower rank.
pub struct Table {
    rank: BTreeMap<String, usize>,
    layers: usize,
}

impl Table {
    /// Reads the table.
    pub fn parse(architecture: &str) -> Result<Self> {
        let body = architecture
            .split(HEADING)
            .nth(1)
            .with_context(|| format!("ARCHITECTURE.md has no `{HEADING}`"))?;
        let mut rows: Vec<(usize, Vec<String>)> = Vec::new();
        for line in
            body.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'))
        {
            let mut cells = line.trim_matches('|').split('|').map(str::trim);
            let (Some(layer), Some(modules)) = (cells.next(), cells.next()) else { continue };
            let Ok(layer) = layer.parse::<usize>() else { continue };
            let modules = modules.split(" (").next().unwrap_or(modules);
            let names =
                modules.split('`').skip(1).step_by(2).map(|name| name.trim_end_matches('/').to_owned());
            rows.push((layer, names.collect()));
        }
        rows.sort();
        if rows.len() < 2 {
            bail!("the table under `{HEADING}` has fewer than two layers");
        }
        let layers = rows.len();
        let ordered = rows.into_iter().flat_map(|(_, names)| names.into_iter().rev());
        let rank = ordered.enumerate().map(|(rank, name)| (name, rank)).collect();
        Ok(Self { rank, layers })
    }

    /// How many layers there are.
    pub fn len(&self) -> usize {
        self.layers
    }
}

/// Checks every module of `agentd` and `agent-core`.
pub fn check(table: &Table, sources: &[Source]) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for source in sources {
        let Some(module) = module_of(&source.path) else { continue };
        let Some(own) = table.rank.get(module) else {
            breaches.push(Breach::new(
                &source.path,
                format!("`{module}` is in no layer: add it to the table in ARCHITECTURE.md"),
            ));
            continue;
        };
        for (line, imported) in imports(&source.text) {
            let place = format!("{}:{line}", source.path);
            match table.rank.get(&imported) {
                Some(rank) if *rank > *own => {
                    breaches.push(Breach::new(
                        place,
                        format!("`{module}` imports `{imported}`, which stands above it"),
                    ));
                }
                _ => {}
            }
        }
    }
    breaches
}

/// `agentd/src/task/reconcile/publish.rs` is of `task`; the crate's contents page is of none.
fn module_of(path: &str) -> Option<&str> {
    let inside = SOURCES.iter().find_map(|folder| path.strip_prefix(folder))?.strip_suffix(".rs")?;
    let top = inside.split('/').next()?;
    (top != "lib").then_some(top)
}

/// What follows `crate::`, with line numbers; groups are opened.
fn imports(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("crate::") {
        let before = text.get(..at).unwrap_or_default();
        if before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let line = before.matches('\n').count() + 1;
        let rest = text.get(at + "crate::".len()..).unwrap_or_default();
        match rest.strip_prefix('{') {
            Some(group) => found.extend(group_heads(group).into_iter().map(|name| (line, name))),
            None => found.push((line, word(rest))),
        }
    }
    found
}

/// The first words of a group's members, at its own depth.
fn group_heads(group: &str) -> Vec<String> {
    let (mut depth, mut heads, mut fresh) = (0_usize, Vec::new(), true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => fresh = true,
            c if fresh && (c.is_alphanumeric() || c == '_') => {
                heads.push(word(group.get(at..).unwrap_or_default()));
                fresh = false;
            }
            _ => {}
        }
    }
    heads
}

fn word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# A\n## agentd by layers\ntext\n\n| layer | modules |\n| --- | --- |\n| 1 | `plan/`, `gate/` |\n| 0 | `model/` |\n\nmore `x`\n";

    fn breaches(path: &str, text: &str) -> usize {
        let table = Table::parse(PAGE).unwrap();
        check(&table, &[Source { path: path.to_owned(), text: text.to_owned() }]).len()
    }

    #[test]
    fn imports_go_down_or_to_the_right() {
        assert_eq!(
            breaches("crates/agent-core/src/plan/a.rs", "use crate::model::X;\nuse crate::gate::{Y, Z};"),
            0
        );
        assert_eq!(breaches("crates/agent-core/src/gate/a.rs", "use crate::plan::X;"), 1);
        assert_eq!(breaches("crates/agent-core/src/model.rs", "fn f() { crate::plan::g() }"), 1);
        assert_eq!(
            breaches("crates/agent-core/src/model/a.rs", "use crate::{gate::{A, plan}, model::B};"),
            1
        );
        assert_eq!(
            breaches("crates/agent-core/src/plan/mod.rs", "use crate::plan::X; use other_crate::plan;"),
            0
        );
    }

    #[test]
    fn a_module_without_a_layer_is_refused() {
        assert_eq!(breaches("agentd/src/misc2.rs", ""), 1);
        assert_eq!(breaches("agentd/src/lib.rs", "pub mod plan;"), 0);
        assert_eq!(breaches("hubd/src/misc2.rs", ""), 0);
    }
}
