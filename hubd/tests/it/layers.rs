//! The layers of the crate, by its imports.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Module → place; a module may import those of a higher place number, which are lower or further right.
fn places(table: &str) -> BTreeMap<String, usize> {
    let rows = table.lines().filter(|line| line.starts_with("//! | ") && line.contains("[`"));
    let names = rows.flat_map(|row| row.split("[`").skip(1).filter_map(|rest| rest.split('`').next()));
    names.enumerate().map(|(place, name)| (name.to_owned(), place)).collect()
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else {
            into.push(path);
        }
    }
}

#[test]
fn imports_go_downward_only() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let places = places(&std::fs::read_to_string(root.join("lib.rs")).unwrap());
    assert_eq!(places.len(), 15, "{places:?}");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let (mut seen, mut breaches) = (0, Vec::new());
    for file in files {
        let inner = file.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
        let module = inner.split(['/', '.']).next().unwrap();
        let Some(own) = places.get(module) else { continue };
        for rest in std::fs::read_to_string(&file).unwrap().split("crate::").skip(1) {
            let imported: String =
                rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            seen += 1;
            if places.get(&imported).is_none_or(|place| place < own) {
                breaches.push(format!("{inner}: crate::{imported}"));
            }
        }
    }
    assert!(seen > 50, "only {seen} imports were found");
    assert_eq!(breaches, Vec::<String>::new());
}
