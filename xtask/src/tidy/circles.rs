//! Circles of imports between the files of a crate.
//!
//! In: the sources. Out: circles of more than three files, and more than five circles of two in the whole tree. Imports
//! are read as text: `crate::` and `super::` paths outside of tests. What a macro writes is not seen.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::LazyLock;

use regex::Regex;

use super::{Breach, Source};

/// A circle of more files than this is a knot.
const FILES_MAX: usize = 3;

/// In the whole tree there are no more circles of two files than these.
const PAIRS_MAX: usize = 5;

type Graph = BTreeMap<String, BTreeSet<String>>;

/// The files of every crate, without its tests.
fn crates(sources: &[Source]) -> BTreeMap<&str, BTreeMap<String, &str>> {
    let mut crates: BTreeMap<&str, BTreeMap<String, &str>> = BTreeMap::new();
    for source in sources {
        let Some((root, inner)) = source.path.split_once("/src/") else { continue };
        let is_test = inner.split('/').any(|part| part == "tests" || part == "tests.rs");
        if let Some(inner) = inner.strip_suffix(".rs").filter(|_| !is_test) {
            crates.entry(root).or_default().insert(module(inner), &source.text);
        }
    }
    crates
}

/// The graph of imports in figures: a row for each crate, and one for all.
pub fn table(sources: &[Source]) -> String {
    let mut rows = String::from(
        "| crate | files | imports | floors | in circles | largest circle | circles of two |\n| --- | --- | --- | --- | --- | --- | --- |\n",
    );
    let mut all = [0; 6];
    for (root, files) in crates(sources) {
        let graph = graph(&files);
        let circles = circles(&graph);
        let figures = [
            files.len(),
            graph.values().map(BTreeSet::len).sum(),
            floors(&graph, &circles),
            circles.iter().map(BTreeSet::len).sum(),
            circles.iter().map(BTreeSet::len).max().unwrap_or(0),
            circles.iter().filter(|circle| circle.len() == 2).count(),
        ];
        for (place, (sum, figure)) in all.iter_mut().zip(figures).enumerate() {
            // Of floors and circles the highest and the largest count, not their sum.
            *sum = if matches!(place, 2 | 4) { figure.max(*sum) } else { *sum + figure };
        }
        rows.push_str(&row(root, figures));
    }
    rows + &row("all", all)
}

fn row(name: &str, figures: [usize; 6]) -> String {
    let cells: Vec<String> = figures.iter().map(usize::to_string).collect();
    format!("| `{name}` | {} |\n", cells.join(" | "))
}

/// The longest way down, each circle taken as one file.
fn floors(graph: &Graph, circles: &[BTreeSet<String>]) -> usize {
    let name = |file: &str| -> String {
        let circle = circles.iter().find(|circle| circle.contains(file));
        circle.and_then(|circle| circle.first()).map_or_else(|| file.to_owned(), Clone::clone)
    };
    let mut below: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, to) in graph {
        let own = name(file);
        let others = to.iter().map(|to| name(to)).filter(|to| *to != own);
        below.entry(own.clone()).or_default().extend(others);
    }
    fn depth(of: &str, below: &Graph, known: &mut BTreeMap<String, usize>) -> usize {
        if let Some(depth) = known.get(of) {
            return *depth;
        }
        let under = below.get(of).into_iter().flatten().map(|to| depth(to, below, known)).max();
        let found = under.unwrap_or(0) + 1;
        known.insert(of.to_owned(), found);
        found
    }
    let mut known = BTreeMap::new();
    below.keys().map(|file| depth(file, &below, &mut known)).max().unwrap_or(0)
}

/// Checks every crate.
pub fn check(sources: &[Source]) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let mut pairs = Vec::new();
    for (root, files) in crates(sources) {
        for circle in circles(&graph(&files)) {
            let named = circle.iter().cloned().collect::<Vec<_>>().join(", ");
            match circle.len() {
                2 => pairs.push(format!("{root}: {named}")),
                files if files <= FILES_MAX => {}
                _ => breaches
                    .push(Breach::new(root, format!("these files import each other in a circle: {named}"))),
            }
        }
    }
    if pairs.len() > PAIRS_MAX {
        let says = format!(
            "{} pairs of files import each other, {PAIRS_MAX} may: {}",
            pairs.len(),
            pairs.join("; ")
        );
        breaches.push(Breach::new("the tree", says));
    }
    breaches
}

/// `plan/mod` is `plan`, `lib` is the root.
fn module(inner: &str) -> String {
    let name = inner.strip_suffix("/mod").unwrap_or(inner).replace('/', "::");
    if matches!(name.as_str(), "lib" | "main") { String::new() } else { name }
}

/// Which file imports which, without the crate's root.
fn graph(files: &BTreeMap<String, &str>) -> Graph {
    let known = |mut path: &str| loop {
        if path.is_empty() || files.contains_key(path) {
            return path.to_owned();
        }
        path = path.rsplit_once("::").map_or("", |(parent, _)| parent);
    };
    let mut graph = Graph::new();
    for (name, text) in files {
        let paths = imports(name, text);
        let to = paths.iter().map(|path| known(path)).filter(|to| !to.is_empty() && to != name);
        graph.insert(name.clone(), to.collect());
    }
    graph
}

/// The paths that a file names, from the crate's root.
fn imports(name: &str, text: &str) -> BTreeSet<String> {
    #[expect(clippy::unwrap_used, reason = "a pattern of ours")]
    static COMMENT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"//[^\n]*").unwrap());
    #[expect(clippy::unwrap_used, reason = "a pattern of ours")]
    static PATH: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"\b(crate|super)::((?:[a-z_0-9]+::)*)(?:\{([^}]*)\}|([a-z_0-9]+))").unwrap()
    });
    let text = COMMENT.replace_all(text, "");
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let parent = name.rsplit_once("::").map_or("", |(parent, _)| parent);
    let mut found = BTreeSet::new();
    for path in PATH.captures_iter(text) {
        let base = if &path[1] == "crate" { "" } else { parent };
        let stem: Vec<&str> =
            base.split("::").chain(path[2].split("::")).filter(|part| !part.is_empty()).collect();
        let leaves = path.get(3).or_else(|| path.get(4)).map_or("", |leaves| leaves.as_str());
        for leaf in leaves.split(',') {
            let leaf = leaf.trim().split("::").take_while(|part| part.starts_with(char::is_lowercase));
            found.insert(stem.iter().copied().chain(leaf).collect::<Vec<_>>().join("::"));
        }
    }
    found
}

fn reached<'a>(graph: &'a Graph, from: &'a str) -> BTreeSet<&'a str> {
    let (mut seen, mut next) = (BTreeSet::new(), VecDeque::from([from]));
    while let Some(one) = next.pop_front() {
        for to in graph.get(one).into_iter().flatten() {
            if seen.insert(to.as_str()) {
                next.push_back(to);
            }
        }
    }
    seen
}

/// Sets of files of which each is reached from each.
fn circles(graph: &Graph) -> Vec<BTreeSet<String>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|one| (one.as_str(), reached(graph, one))).collect();
    let mut done: BTreeSet<&str> = BTreeSet::new();
    let mut found = Vec::new();
    for (one, to) in &reach {
        if done.contains(one) || !to.contains(one) {
            continue;
        }
        let circle: BTreeSet<&str> = to
            .iter()
            .copied()
            .filter(|other| reach.get(other).is_some_and(|back| back.contains(one)))
            .collect();
        done.extend(&circle);
        if circle.len() > 1 {
            found.push(circle.into_iter().map(str::to_owned).collect());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_circle_of_four_is_a_breach_and_one_of_three_is_none() {
        let four = [
            source("a/src/one.rs", "use super::two::Two;"),
            source("a/src/two.rs", "use crate::{three, other::Thing};"),
            source("a/src/three/mod.rs", "use super::four;"),
            source("a/src/four.rs", "fn f() { crate::one::call() }"),
        ];
        assert!(check(&four)[0].says.contains("four, one, three, two"), "{:?}", check(&four));
        assert!(check(&four[..3]).is_empty());
        let three = [
            source("a/src/one.rs", "use super::two::Two;"),
            source("a/src/two.rs", "use super::three::Three; // use super::four::Four;"),
            source(
                "a/src/three.rs",
                "use super::one::One;\n#[cfg(test)]\nmod tests { use crate::four::Four; }",
            ),
            source("a/src/four.rs", "use super::one::One;"),
        ];
        assert!(check(&three).is_empty(), "{:?}", check(&three));
    }

    #[test]
    fn pairs_are_counted_over_the_whole_tree() {
        let pair = |n: usize| {
            [
                source(&format!("crate{n}/src/one.rs"), "use super::two::Two;"),
                source(&format!("crate{n}/src/two.rs"), "use super::one::{self, One};"),
            ]
        };
        let pairs = |count: usize| check(&(0..count).flat_map(pair).collect::<Vec<_>>()).len();
        assert_eq!((pairs(PAIRS_MAX), pairs(PAIRS_MAX + 1)), (0, 1));
    }
}
