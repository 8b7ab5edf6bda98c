//! The crates that are linked into a program, from `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde::Deserialize;

/// What is read of `cargo metadata --format-version 1`.
#[derive(Debug, Deserialize)]
pub struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

/// A crate.
#[derive(Clone, Debug, Deserialize)]
pub struct Package {
    pub id: String,
    pub name: String,
    pub version: String,
    pub license: Option<String>,
    /// Where it comes from; none for our own.
    pub source: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Debug, Deserialize)]
struct DependencyKind {
    /// None for what is linked; `dev` and `build` else.
    kind: Option<String>,
}

/// A crate with those that it links directly.
#[derive(Clone, Debug)]
pub struct Linked {
    pub package: Package,
    /// Ids.
    pub links: BTreeSet<String>,
}

impl Metadata {
    /// The crate of a program and all that is linked into it, by id. What only tests and build scripts use is not.
    pub fn linked(&self, name: &str) -> Result<(Package, BTreeMap<String, Linked>)> {
        let packages: BTreeMap<&str, &Package> =
            self.packages.iter().map(|package| (package.id.as_str(), package)).collect();
        let nodes: BTreeMap<&str, &Node> =
            self.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
        let own = self.packages.iter().find(|package| package.name == name && package.source.is_none());
        let own = own.with_context(|| format!("the workspace has no program {name}"))?;
        let (mut found, mut todo) = (BTreeMap::new(), vec![own.id.as_str()]);
        while let Some(id) = todo.pop() {
            if found.contains_key(id) {
                continue;
            }
            let unknown = || format!("cargo metadata names {id} and does not describe it");
            let package = (*packages.get(id).with_context(unknown)?).clone();
            let node = nodes.get(id).with_context(unknown)?;
            let is_linked = |dep: &&Dependency| dep.dep_kinds.iter().any(|kind| kind.kind.is_none());
            let links: BTreeSet<String> =
                node.deps.iter().filter(is_linked).map(|dep| dep.pkg.clone()).collect();
            todo.extend(node.deps.iter().filter(is_linked).map(|dep| dep.pkg.as_str()));
            found.insert(id.to_owned(), Linked { package, links });
        }
        Ok((own.clone(), found))
    }
}
