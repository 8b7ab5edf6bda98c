//! `agentd golden list`: images and their guests.
//!
//! Input: the manifests in the dump folder, and the running agent's report on approvals and guests. Without an agent
//! the manifests are shown alone. Output: a table or one document. Nothing is hashed here; the agent did that.

use std::collections::BTreeMap;

use comfy_table::{ContentArrangement, Table, presets};
use holdfast_protocol::id::GoldenVersion;
use holdfast_protocol::json::chain;
use holdfast_protocol::report::{GoldenReport, GuestReport, ImageStatus};
use jiff::Timestamp;
use serde::Serialize;

use super::{GoldenError, stored};
use crate::Output;
use crate::ago::ago;
use crate::port::admin_socket;
use crate::port::golden_dump::StoredImage;
use crate::settings::ConfigPath;

/// The arguments of `list`.
#[derive(Debug, clap::Args)]
pub(super) struct ListArguments {
    #[command(flatten)]
    config: ConfigPath,
    /// A table for people, or JSON (`holdfast.goldens/v1`) for programs.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// The document for programs.
#[derive(Debug, Serialize)]
struct Document<'a> {
    schema: &'static str,
    goldens: &'a [Row],
    /// None before one was built here.
    refresh: Option<Refresh>,
}

/// The age of the newest image built here, compared with the age that root set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Refresh {
    newest_days: i64,
    days_max: u32,
    due: bool,
}

impl Refresh {
    fn of(found: &[StoredImage], days_max: u32, now: Timestamp) -> Option<Self> {
        let newest = found.iter().max_by_key(|golden| golden.manifest.version.age_key())?;
        let newest_days = now.duration_since(newest.manifest.image_build().built_at?).as_hours() / 24;
        Some(Self { newest_days, days_max, due: newest_days >= i64::from(days_max) })
    }
}

/// One version.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Row {
    version: GoldenVersion,
    /// When it was built, where its manifest is stored here.
    made_at: Option<Timestamp>,
    sha256: Option<String>,
    size_bytes: Option<u64>,
    packages: Option<usize>,
    /// Its status by the running agent; none while no agent runs, or for a version whose archive is gone.
    status: Option<ImageStatus>,
    /// The guests that were made from it.
    guests: Vec<String>,
}

pub(super) fn run(arguments: &ListArguments) -> Result<(), GoldenError> {
    let (settings, dump, found) = stored(&arguments.config)?;
    let sections = match admin_socket::ask(&settings.state.dir) {
        Ok(status) => status.sections,
        Err(error) => {
            eprintln!("agentd: what is approved and which guests there are is not known: {}", chain(&error));
            holdfast_protocol::report::Sections::default()
        }
    };
    let reports = sections.host.map(|host| host.goldens).unwrap_or_default();
    let rows = rows(&found, &reports, &sections.guests.unwrap_or_default());
    let now = crate::now();
    let refresh = Refresh::of(&found, dump.refresh_days, now);
    match arguments.output {
        Output::Json => {
            crate::print_json(&Document { schema: "holdfast.goldens/v1", goldens: &rows, refresh });
        }
        Output::Table => print!("{}{}", page(&rows, now), due(refresh)),
    }
    Ok(())
}

/// One row for every version that is stored here, that the agent knows, or that a guest came from; newest first.
fn rows(found: &[StoredImage], reports: &[GoldenReport], guests: &[GuestReport]) -> Vec<Row> {
    let mut rows: BTreeMap<_, Row> = BTreeMap::new();
    let empty = |version: &GoldenVersion| Row {
        version: version.clone(),
        made_at: None,
        sha256: None,
        size_bytes: None,
        packages: None,
        status: None,
        guests: Vec::new(),
    };
    for StoredImage { manifest, .. } in found {
        let made_at = i64::try_from(manifest.build.made_at_s).ok();
        let row = Row {
            made_at: made_at.and_then(|seconds| Timestamp::from_second(seconds).ok()),
            sha256: Some(manifest.sha256.clone()),
            size_bytes: Some(manifest.size_bytes),
            packages: Some(manifest.packages.len()),
            ..empty(&manifest.version)
        };
        rows.insert(manifest.version.age_key(), row);
    }
    for report in reports {
        let row = rows.entry(report.version.age_key()).or_insert_with(|| empty(&report.version));
        row.status = Some(report.status);
        // The agent's hash has priority over that of a manifest.
        row.sha256 = report.sha256.clone().or(row.sha256.take());
    }
    for guest in guests {
        let Some(version) = &guest.golden else { continue };
        rows.entry(version.age_key()).or_insert_with(|| empty(version)).guests.push(guest.name.clone());
    }
    rows.into_values().rev().collect()
}

fn page(rows: &[Row], now: Timestamp) -> String {
    if rows.is_empty() {
        return "There is no golden image on this box: `agentd golden build` makes one.\n".to_owned();
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["VERSION", "BUILT", "SIZE", "SHA-256", "STATUS", "GUESTS"]);
    for row in rows {
        let or_nothing = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        table.add_row([
            row.version.to_string(),
            or_nothing(row.made_at.map(|at| ago(at, now))),
            or_nothing(row.size_bytes.map(|bytes| format!("{} MB", bytes / 1_000_000))),
            or_nothing(
                row.sha256.as_ref().and_then(|sha256| sha256.get(..12)).map(|start| format!("{start}…")),
            ),
            or_nothing(row.status.map(|status| word(status).to_owned())),
            if row.guests.is_empty() { "-".to_owned() } else { row.guests.join(", ") },
        ]);
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n") + "\n"
}

fn due(refresh: Option<Refresh>) -> String {
    match refresh {
        Some(Refresh { newest_days, days_max, due: true }) => format!(
            "The newest is {newest_days} days old, and {days_max} are the most (refresh_days): `agentd golden build`.\n"
        ),
        _ => String::new(),
    }
}

const fn word(status: ImageStatus) -> &'static str {
    match status {
        ImageStatus::Approved => "approved",
        ImageStatus::Waiting => "waits for a signature",
        ImageStatus::Unread => "cannot be read",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(version: &str, status: ImageStatus) -> GoldenReport {
        GoldenReport {
            version: version.parse().unwrap(),
            sha256: Some("cd".repeat(32)),
            status,
            rootfs_bytes: None,
            build: None,
        }
    }

    fn guest(name: &str, golden: &str) -> GuestReport {
        let guest =
            serde_json::json!({ "name": name, "status": "managed", "run": "running", "golden": golden });
        serde_json::from_value(guest).unwrap()
    }

    #[test]
    fn every_version_is_shown_with_its_guests_the_newest_first() {
        let manifest = serde_json::json!({
            "schema": "holdfast.golden-manifest/v1", "version": "2026.11.10", "contents": "complete",
            "archive": "a", "sha256": "ab".repeat(32), "size_bytes": 151_000_000,
            "recipe_sha256": "", "guestd_sha256": "", "source_date_epoch": 1,
            "build": { "made_at_s": 1_795_305_600, "seconds": 1, "entries": 1, "content_bytes": 1 }, "packages": [],
        });
        let manifest = serde_json::from_value(manifest).unwrap();
        let found = [StoredImage { manifest, file: "golden-2026.11.10.json".into(), archive: "a".into() }];
        let after = |days: i64| Timestamp::from_second(1_795_305_600 + days * 86_400).unwrap();
        let reported = |days| due(Refresh::of(&found, 30, after(days)));
        assert_eq!((reported(29), reported(-3)), (String::new(), String::new()));
        assert!(reported(30).contains("30 days old") && reported(31).contains("golden build"));
        let reports =
            [report("2026.11.9", ImageStatus::Approved), report("2026.11.10", ImageStatus::Waiting)];
        let guests = [guest("web", "2026.11.9"), guest("mail", "2026.09.1"), guest("wiki", "2026.11.9")];
        let rows = rows(&found, &reports, &guests);
        let versions: Vec<&str> = rows.iter().map(|row| row.version.as_str()).collect();
        assert_eq!(versions, ["2026.11.10", "2026.11.9", "2026.09.1"]);
        assert_eq!(rows[0].sha256.as_deref(), Some("cd".repeat(32).as_str()), "hashed, not said");
        assert_eq!(
            (rows[1].guests.as_slice(), rows[2].status),
            (&["web".to_owned(), "wiki".to_owned()][..], None)
        );
        let page = page(&rows, "2026-11-25T00:00:00Z".parse().unwrap());
        assert!(page.contains("waits for a signature") && page.contains("151 MB"), "{page}");
        assert!(page.lines().nth(2).unwrap().contains("web, wiki"), "{page}");
    }
}
