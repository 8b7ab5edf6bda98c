//! Shipped rules and board, held to the tables of metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use holdfast_protocol::usage::UsageMetric;
use metrics::Metric;
use metrics::catalogue::{Kind, Source};

/// Every metric of a hub's page, with its labels.
fn served() -> BTreeMap<String, BTreeSet<&'static str>> {
    let mut all = BTreeMap::new();
    for metric in Metric::ALL.iter().filter(|metric| [Source::Host, Source::Hub].contains(&metric.source())) {
        let own = metric.labels().iter().copied();
        let labels: BTreeSet<&str> = own.chain(["host"]).collect();
        match metric.kind() {
            Kind::Counter | Kind::Gauge => {
                all.insert(metric.name().to_owned(), labels);
            }
            Kind::Histogram => {
                let bucket = labels.iter().copied().chain(["le"]).collect();
                all.insert(format!("{}_bucket", metric.name()), bucket);
                for ending in ["_sum", "_count"] {
                    all.insert(format!("{}{ending}", metric.name()), labels.clone());
                }
            }
        }
    }
    for metric in UsageMetric::ALL {
        let name = metric.spec().name;
        all.insert(format!("holdfast_host_{name}"), BTreeSet::from(["host"]));
        all.insert(format!("holdfast_guest_{name}"), BTreeSet::from(["host", "guest"]));
    }
    all
}

pub(crate) fn shipped(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// The metrics of ours that a text names, each with the labels that follow it in braces.
fn used(text: &str) -> Vec<(String, Vec<String>)> {
    let starts = text.match_indices("holdfast_").map(|(start, _)| &text[start..]);
    starts
        .map(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            let braces =
                after.strip_prefix('{').and_then(|inner| inner.split_once('}')).map_or("", |parts| parts.0);
            let labels = braces.split(',').filter_map(|one| one.split_once(['=', '!', '~'])).map(|one| one.0);
            (name.to_owned(), labels.map(|label| label.trim().to_owned()).collect())
        })
        .collect()
}

#[test]
fn rules_and_board_name_only_what_is_served() {
    let served = served();
    let mut count = 0;
    for file in
        ["prometheus/holdfast.rules.yml", "prometheus/holdfast.rules.test.yml", "grafana/holdfast.json"]
    {
        for (name, labels) in used(&shipped(file).replace("\\\"", "\"")) {
            let has = served.get(&name).unwrap_or_else(|| panic!("{file}: there is no metric {name}"));
            for label in labels {
                assert!(has.contains(label.as_str()), "{file}: {name} has no label {label}");
            }
            count += 1;
        }
    }
    assert!(count > 40, "only {count} uses were found");
}
