//! Links between pages: each file and heading that they name exists.
//!
//! In: `README.md`, `ARCHITECTURE.md`, `CHANGELOG.md` and the pages of `docs/`. Out: one breach per link that leads nowhere, and
//! per page of `docs/` that the book's summary does not list. ADRs are read, and need not be in the book.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Breach, Source};
use crate::book;

const SUMMARY: &str = "docs/SUMMARY.md";

/// Checks the pages; `exists` returns whether a path from the root exists.
pub fn check(sources: &[Source], exists: impl Fn(&Path) -> bool) -> Vec<Breach> {
    let is_page = |source: &&Source| {
        let path = source.path.as_str();
        path.ends_with(".md") && (path.starts_with("docs/") || !path.contains('/'))
    };
    let pages: Vec<&Source> = sources.iter().filter(is_page).collect();
    let mut breaches = Vec::new();
    for page in &pages {
        for link in book::links(&page.text).into_iter().filter(|link| !link.contains("://")) {
            let (path, name) = link.split_once('#').unwrap_or((&link, ""));
            let to = if path.is_empty() {
                PathBuf::from(&page.path)
            } else {
                book::resolved(Path::new(&page.path), path)
            };
            let target = pages.iter().find(|other| Path::new(&other.path) == to);
            let says = match target {
                None if !exists(&to) => format!("the link {link} leads to no file"),
                Some(other)
                    if !name.is_empty() && !book::anchors(&other.text).iter().any(|one| one == name) =>
                {
                    format!("the link {link} leads to no heading")
                }
                None | Some(_) => continue,
            };
            breaches.push(Breach::new(&page.path, says));
        }
    }
    breaches.extend(unlisted(&pages));
    breaches
}

fn unlisted(pages: &[&Source]) -> Vec<Breach> {
    let Some(summary) = pages.iter().find(|page| page.path == SUMMARY) else { return Vec::new() };
    let chapters = match book::chapters(&summary.text) {
        Ok(chapters) => chapters,
        Err(error) => return vec![Breach::new(SUMMARY, error.to_string())],
    };
    let listed: BTreeSet<&Path> = chapters.iter().map(|chapter| chapter.source.as_path()).collect();
    let own = pages.iter().filter(|page| {
        let inside = page.path.strip_prefix("docs/");
        inside.is_some_and(|name| !name.contains('/')) && page.path != SUMMARY
    });
    let missing = own.filter(|page| !listed.contains(Path::new(&page.path)));
    missing.map(|page| Breach::new(&page.path, format!("{SUMMARY} does not list it"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let sources = [
            source(
                "README.md",
                "[a](docs/a.md) [b](docs/b.md) [c](docs/a.md#two) [d](docs/a.md#one) [e](fuzz/)",
            ),
            source("docs/a.md", "# One\n\n[up](../README.md) [same](#one)\n"),
            source("docs/SUMMARY.md", "- [A](a.md)\n"),
        ];
        let found = check(&sources, |path| path == Path::new("fuzz"));
        let says: Vec<&str> = found.iter().map(|breach| breach.says.as_str()).collect();
        assert_eq!(
            says,
            ["the link docs/b.md leads to no file", "the link docs/a.md#two leads to no heading"]
        );
    }

    #[test]
    fn every_page_is_in_the_book() {
        let sources = [
            source("docs/a.md", "# A\n"),
            source("docs/adr/0001.md", "# 1\n"),
            source("docs/SUMMARY.md", "# Summary\n"),
        ];
        let found = check(&sources, |_| true);
        assert_eq!(found.len(), 1, "{:?}", found.iter().map(|breach| &breach.says).collect::<Vec<_>>());
    }
}
