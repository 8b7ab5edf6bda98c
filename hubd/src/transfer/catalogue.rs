//! Tables and columns as a database's catalogue names them.
//!
//! In: tables in any order. Out: the order in which their rows can be written, and what differs between two databases.
//! Deliberately absent: where the catalogue is, which is the engine's.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::EngineError;

/// Tables that are not carried over, and why. A table that is neither exported nor named here fails a test.
pub const LEFT_OUT: [(&str, &str); 3] = [
    ("hub_leases", "who has a duty is one of the hubs that run"),
    ("hub_schema", "the number of the schema is the engine's own"),
    ("sqlite_sequence", "its numbers are in the trailer of the file"),
];

/// The one row of such a table is made with the table, and an import puts another in its place.
const SINGLETON_KEY: &str = "one";

/// What a column holds. There is no other type in the hub's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnKind {
    Integer,
    Text,
    Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    pub name: String,
    pub kind: ColumnKind,
}

/// A table: its columns by name, so that their order in the database does not matter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    /// Columns of the primary key, in its order.
    pub key: Vec<String>,
    /// Tables whose rows must be there first.
    #[serde(skip)]
    pub refers_to: BTreeSet<String>,
}

impl Table {
    /// Its columns, quoted, for a statement.
    #[must_use]
    pub fn column_list(&self) -> String {
        let quoted: Vec<String> = self.columns.iter().map(|column| quoted(&column.name)).collect();
        quoted.join(", ")
    }

    /// All rows in their order. Only columns of no key can be null, and engines differ in where those sort.
    #[must_use]
    pub fn select(&self) -> String {
        let order: Vec<String> = if self.key.is_empty() {
            self.columns.iter().map(|column| format!("{} NULLS FIRST", quoted(&column.name))).collect()
        } else {
            self.key.iter().map(|column| quoted(column)).collect()
        };
        format!("SELECT {} FROM {} ORDER BY {}", self.column_list(), quoted(&self.name), order.join(", "))
    }

    /// Whether it holds one row from the start.
    #[must_use]
    pub fn is_singleton(&self) -> bool {
        self.key == [SINGLETON_KEY]
    }
}

/// A name in a statement.
#[must_use]
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[must_use]
pub fn is_left_out(name: &str) -> bool {
    LEFT_OUT.iter().any(|(left_out, _)| *left_out == name)
}

/// Tables that are carried over, each behind those that it refers to; else by name.
///
/// # Errors
/// [`EngineError::Circle`].
pub fn ordered(tables: Vec<Table>) -> Result<Vec<Table>, EngineError> {
    let mut waiting: Vec<Table> = tables.into_iter().filter(|table| !is_left_out(&table.name)).collect();
    waiting.sort_by(|one, other| one.name.cmp(&other.name));
    let (mut order, mut written) = (Vec::with_capacity(waiting.len()), BTreeSet::new());
    while !waiting.is_empty() {
        let is_ready = |table: &Table| {
            table.refers_to.iter().all(|other| *other == table.name || written.contains(other))
        };
        let Some(at) = waiting.iter().position(is_ready) else {
            let names: Vec<String> = waiting.into_iter().map(|table| table.name).collect();
            return Err(EngineError::Circle(names.join(", ")));
        };
        let table = waiting.remove(at);
        written.insert(table.name.clone());
        order.push(table);
    }
    Ok(order)
}

/// What first differs between the tables of a file and those of a database: none where rows fit.
#[must_use]
pub fn difference(file: &[Table], database: &[Table]) -> Option<String> {
    let names =
        |tables: &[Table]| -> BTreeSet<String> { tables.iter().map(|table| table.name.clone()).collect() };
    let (of_file, of_database) = (names(file), names(database));
    if let Some(name) = of_file.symmetric_difference(&of_database).next() {
        let place = if of_file.contains(name) { "the file" } else { "the database" };
        return Some(format!("only {place} has table {name}"));
    }
    for (one, other) in file.iter().zip(database) {
        if one.name != other.name {
            return Some(format!("table {} is in the place of {}", one.name, other.name));
        }
        if one.columns != other.columns || one.key != other.key {
            return Some(format!("table {} has other columns in the file", one.name));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str, refers_to: &[&str]) -> Table {
        Table {
            name: name.to_owned(),
            columns: vec![Column { name: "a".to_owned(), kind: ColumnKind::Integer }],
            key: Vec::new(),
            refers_to: refers_to.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn a_table_comes_behind_what_it_refers_to() {
        let tables = vec![table("a", &["c"]), table("b", &["b"]), table("c", &["d"]), table("d", &[])];
        let names = |tables: Vec<Table>| tables.into_iter().map(|table| table.name).collect::<Vec<_>>();
        assert_eq!(names(ordered(tables).unwrap()), ["b", "d", "c", "a"]);
        assert_eq!(names(ordered(vec![table("hub_schema", &[]), table("x", &[])]).unwrap()), ["x"]);
        let circle = ordered(vec![table("a", &["b"]), table("b", &["a"])]).unwrap_err();
        assert!(circle.to_string().contains("a, b"), "{circle}");
    }

    #[test]
    fn a_table_or_column_that_differs_is_named() {
        let (one, other) = (vec![table("a", &[])], vec![table("a", &["x"])]);
        assert_eq!(difference(&one, &other), None, "what it refers to is not compared");
        let mut wider = one.clone();
        wider[0].columns.push(Column { name: "b".to_owned(), kind: ColumnKind::Text });
        assert_eq!(difference(&wider, &one).unwrap(), "table a has other columns in the file");
        let more = vec![table("a", &[]), table("b", &[])];
        assert_eq!(difference(&one, &more).unwrap(), "only the database has table b");
        assert_eq!(difference(&more, &one).unwrap(), "only the file has table b");
    }
}
