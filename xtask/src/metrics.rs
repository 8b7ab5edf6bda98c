//! The page of all metrics (`docs/metrics.md`), from their tables.

use std::fmt::Write as _;

use ::metrics::catalogue::{Metric, Source};
use holdfast_protocol::usage::{MetricScope, UsageMetric};

pub const PAGE: &str = "docs/metrics.md";

const HEAD: &str = "# Metrics

In Prometheus' text format, from three places:

- **The hub** at `/metrics`, for a token (`holdfast token create prometheus --role viewer`): itself, all hosts, and the reports of the first 200 hosts by name. `/metrics?host=NAME` is one host alone. A host that is silent has no line of its report, and its use goes after four minutes. Every line of a host has the label `host`. The hub's package has a configuration of Prometheus, rules with tests, and a board for Grafana, in `/usr/share/holdfast-hub/`.
- **The agent** by `agentd metrics`, and at a port of the loopback where `[metrics]` in `agent.toml` names one: its host alone, without the label `host`. Who may log in on the host reads the names of guests there.
- **The guest agent** in `/run/holdfast/holdfast.prom`, for the textfile collector of node_exporter (`--collector.textfile.directory=/run/holdfast`).

Only what was observed has a line: what is unknown is absent, never 0. This page is written by `cargo xtask schemas` from the tables of metrics.
";

/// The page.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    let parts = [
        ("Hosts and guests, by agent and hub", Source::Host),
        ("The hub alone", Source::Hub),
        ("The agent alone", Source::Agent),
        ("The guest agent", Source::Guest),
    ];
    for (title, source) in parts {
        let metrics = Metric::ALL.iter().filter(|metric| metric.source() == source);
        let rows = metrics.map(|metric| {
            let kind = metric.kind().as_str();
            format!("| `{}` | {kind} | {} | {} |", metric.name(), metric.labels().join(", "), metric.help())
        });
        table(&mut page, title, rows);
    }
    let of_use = |scope: MetricScope, prefix: &'static str, label: &'static str| {
        let has = UsageMetric::ALL.iter().filter(move |metric| {
            let own = metric.spec().scope;
            own == scope || own == MetricScope::Both
        });
        has.map(move |metric| {
            let spec = metric.spec();
            format!("| `{prefix}{}` | gauge | {label} | {} |", spec.name, spec.meaning)
        })
    };
    table(&mut page, "Use of hosts, by the minute", of_use(MetricScope::Host, "holdfast_host_", ""));
    table(&mut page, "Use of guests, by the minute", of_use(MetricScope::Guest, "holdfast_guest_", "guest"));
    page
}

fn table(page: &mut String, title: &str, rows: impl Iterator<Item = String>) {
    // Writing into a string cannot fail.
    let _infallible =
        write!(page, "\n## {title}\n\n| metric | kind | labels | meaning |\n| --- | --- | --- | --- |\n");
    for row in rows {
        let _infallible = writeln!(page, "{row}");
    }
}
