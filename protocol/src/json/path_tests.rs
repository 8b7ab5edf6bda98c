//! Tests of the paths of mistakes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{JsonError, parse};

/// Refused after its reading, when the parser has no position for it.
#[derive(Deserialize)]
#[serde(try_from = "u8")]
struct Even;

impl TryFrom<u8> for Even {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        if number.is_multiple_of(2) { Ok(Self) } else { Err(format!("{number} is odd at line 1 column 1")) }
    }
}

#[derive(Deserialize)]
#[serde(try_from = "Vec<Even>")]
struct AtMostTwo;

impl TryFrom<Vec<Even>> for AtMostTwo {
    type Error = &'static str;

    fn try_from(all: Vec<Even>) -> Result<Self, Self::Error> {
        if all.len() <= 2 { Ok(Self) } else { Err("at most two") }
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
struct Digit(u8);

impl TryFrom<String> for Digit {
    type Error = std::num::ParseIntError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(dead_code, reason = "only its reading matters")]
enum Shape {
    Dot,
    Line { length: u8 },
    Pair(u8, u8),
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[expect(dead_code, reason = "only its reading matters")]
enum Tagged {
    One { size: u8 },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its reading matters")]
struct Node {
    n: Even,
    #[serde(default)]
    few: Option<AtMostTwo>,
    #[serde(default)]
    shape: Option<Shape>,
    #[serde(default)]
    tagged: Option<Tagged>,
    #[serde(default)]
    range: Option<[u8; 2]>,
    #[serde(default)]
    list: Vec<Self>,
    #[serde(default)]
    map: BTreeMap<Digit, Self>,
}

/// In both spellings: as one line, and with a line for each value.
fn refused_at(document: &Value) -> String {
    let path = |text: &str| match parse::<Node>("it", text.as_bytes(), 100_000) {
        Err(JsonError::Form { path, .. }) => path,
        Err(other) => panic!("{other}: {text}"),
        Ok(_) => panic!("accepted: {text}"),
    };
    let (short, long) = (path(&document.to_string()), path(&format!("{document:#}")));
    assert_eq!(short, long, "{document}");
    short
}

#[test]
fn each_kind_of_mistake_has_its_path() {
    let cases = [
        (json!(3), "."),
        (json!({}), "."),
        (json!({"n": 1}), "n"),
        (json!({"n": 256}), "n"),
        (json!({"n": "2"}), "n"),
        (json!({"n": [2]}), "n"),
        (json!({"n": {"n": 2}}), "n"),
        (json!({"n": null}), "n"),
        (json!({"n": 2, "other": 2}), "other"),
        (json!({"list": 1, "n": 2}), "list"),
        (json!({"list": [{"n": 2}, {}], "n": 2}), "list[1]"),
        (json!({"list": [{"n": 2}, {"n": 3}, {"n": 2}], "n": 2}), "list[1].n"),
        (json!({"list": [{"n": 2, "list": [{"n": 2}, 7]}], "n": 2}), "list[0].list[1]"),
        (json!({"map": {"7": {"n": 2}, "8": {"n": 1}}, "n": 2}), "map.8.n"),
        (json!({"map": {"7": {"n": 2}, "x": {"n": 2}}, "n": 2}), "map.x"),
        (json!({"few": [2, 4, 6], "n": 2}), "few"),
        (json!({"few": [2, 1, 6], "n": 2}), "few[1]"),
        (json!({"range": [1], "n": 2}), "range"),
        (json!({"range": [1, -1], "n": 2}), "range[1]"),
        (json!({"shape": "circle", "n": 2}), "shape"),
        (json!({"shape": {"circle": 1}, "n": 2}), "shape.circle"),
        (json!({"shape": {"line": {"length": true}}, "n": 2}), "shape.line.length"),
        (json!({"shape": {"line": {}}, "n": 2}), "shape.line"),
        (json!({"shape": {"pair": [1, []]}, "n": 2}), "shape.pair[1]"),
        (json!({"tagged": {"kind": "one", "size": "x"}, "n": 2}), "tagged"),
        (json!({"tagged": {"size": 1}, "n": 2}), "tagged"),
    ];
    for (document, path) in cases {
        assert_eq!(refused_at(&document), path, "{document}");
    }
}

/// Numbers from a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A good document, and the paths of all its nodes.
fn node(numbers: &mut Numbers, depth: u64, path: &str, paths: &mut Vec<String>) -> Value {
    paths.push(path.to_owned());
    let mut branch = |name: &str, paths: &mut Vec<String>| -> Vec<Value> {
        let count = if depth == 0 { 0 } else { numbers.below(4) };
        (0..count).map(|index| node(numbers, depth - 1, &format!("{path}/{name}/{index}"), paths)).collect()
    };
    let list = branch("list", paths);
    let map: BTreeMap<String, Value> =
        branch("map", paths).into_iter().enumerate().map(|(index, node)| (index.to_string(), node)).collect();
    json!({ "n": 2, "few": [4], "list": list, "map": map })
}

/// `/list/1/n` as `list[1].n`.
fn dotted(pointer: &str) -> String {
    let mut dotted = String::new();
    let mut is_index = false;
    for part in pointer.split('/').skip(1) {
        let separator = if dotted.is_empty() { "" } else { "." };
        if is_index { write!(dotted, "[{part}]") } else { write!(dotted, "{separator}{part}") }.unwrap();
        is_index = part == "list" || part == "few";
    }
    dotted
}

#[test]
fn a_wrong_value_is_found_wherever_it_is() {
    for seed in 0..60 {
        let mut numbers = Numbers(seed);
        let mut paths = Vec::new();
        let good = node(&mut numbers, 4, "", &mut paths);
        for (field, wrong) in
            [("n", json!(3)), ("n", json!("2")), ("few/0", json!(1)), ("shape", json!("circle"))]
        {
            let at = &paths[usize::try_from(numbers.below(paths.len() as u64)).unwrap()];
            let mut bad = good.clone();
            let (parent, name) =
                field.split_once('/').map_or((at.clone(), field), |_| (format!("{at}/few"), "0"));
            match bad.pointer_mut(&parent).unwrap() {
                Value::Object(fields) => drop(fields.insert(name.to_owned(), wrong)),
                Value::Array(items) => items[0] = wrong,
                other => panic!("{other}"),
            }
            assert_eq!(refused_at(&bad), dotted(&format!("{at}/{field}")), "seed {seed}");
        }
    }
}
