//! The shipped board, held to Grafana's schemas.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::schema::Schema;
use crate::shipped::shipped;

fn board() -> Value {
    serde_json::from_str(&shipped("grafana/holdfast.json")).unwrap()
}

/// Grafana itself is not in Debian: its schemas judge the board, and those of its panels and of its queries their parts.
#[test]
fn the_board_is_what_grafanas_schemas_allow() {
    let board = board();
    let [dashboard, stat, series, query] = [
        include_str!("grafana/dashboard.schema.json"),
        include_str!("grafana/stat.schema.json"),
        include_str!("grafana/timeseries.schema.json"),
        include_str!("grafana/prometheus.schema.json"),
    ]
    .map(Schema::new);
    assert_eq!(dashboard.faults("Dashboard", &board), Vec::<String>::new());
    for panel in board["panels"].as_array().unwrap() {
        let options = match panel["type"].as_str().unwrap() {
            "stat" => &stat,
            "timeseries" => &series,
            other => panic!("{other}: its schema is not here"),
        };
        assert_eq!(options.faults("Options", &panel["options"]), Vec::<String>::new(), "{}", panel["title"]);
        for target in panel["targets"].as_array().unwrap() {
            assert_eq!(query.faults("Dataquery", target), Vec::<String>::new(), "{}", panel["title"]);
        }
    }
}

#[test]
fn a_board_with_a_fault_is_refused() {
    let schema = Schema::new(include_str!("grafana/dashboard.schema.json"));
    let faulty = |pointer: &str, value: Value| {
        let mut board = board();
        *board.pointer_mut(pointer).unwrap() = value;
        schema.faults("Dashboard", &board)
    };
    for (pointer, value, fault) in [
        ("/title", json!(7), "/title: not of type string"),
        ("/panels/0/gridPos/w", json!(0), "/panels/0: not exactly one of the alternatives"),
        (
            "/panels/0",
            json!({ "type": "stat", "tittle": "x" }),
            "/panels/0: not exactly one of the alternatives",
        ),
        ("/templating/list/0/type", json!("choice"), "/templating/list/0/type: not one of the values"),
        ("/time", json!({ "from": "now-1h" }), "/time: `to` is missing"),
    ] {
        assert_eq!(faulty(pointer, value), [fault]);
    }
}

/// What no schema says: the variables that queries use, ids that differ, and a grid without holes over one another.
#[test]
fn the_panels_lie_side_by_side_and_have_their_own_ids() {
    let board = board();
    let variables: BTreeSet<&str> = board["templating"]["list"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(variables, BTreeSet::from(["datasource", "guest", "host"]));
    let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
    for panel in board["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{title}: its id is another's");
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{title}");
        assert!(!panel["targets"].as_array().unwrap().is_empty(), "{title}");
        let at = |field: &str| panel["gridPos"][field].as_u64().unwrap();
        assert!(at("x") + at("w") <= 24, "{title} is beyond the 24 columns");
        for x in at("x")..at("x") + at("w") {
            for y in at("y")..at("y") + at("h") {
                assert!(cells.insert((x, y)), "{title} lies over another");
            }
        }
    }
}
