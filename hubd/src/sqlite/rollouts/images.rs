//! Golden images of rollouts, as they are offered to hosts.

use holdfast_protocol::id::HostId;
use holdfast_protocol::release::VersionNumber;
use holdfast_protocol::release::stored::OfferedImage;
use holdfast_protocol::report::GoldenReport;
use jiff::Timestamp;
use rusqlite::{Row, params};

use super::rows::{digest_of, json_or_default, reported_images, stage, version};
use crate::domain::rollout::image::ImageReport;
use crate::domain::rollout::progress::Contact;
use crate::domain::rollout::times::AllowedTimes;
use crate::domain::rollout::{HostPlace, offered};
use crate::sqlite::columns::{Id, Time};
use crate::sqlite::writer::Tx;

struct Candidate {
    rollout: u32,
    host: i64,
    version: VersionNumber,
    images: Vec<GoldenReport>,
}

/// The newest image that rollouts offer to a host now. One that it reports is kept as taken, so that it is not brought
/// again when a person removes it.
pub(in crate::sqlite) fn offered_image(
    tx: &Tx<'_>,
    host: HostId,
    now: Timestamp,
) -> rusqlite::Result<Option<OfferedImage>> {
    let mut offers: Vec<OfferedImage> = Vec::new();
    for candidate in candidates(tx, host, now)? {
        let Some(sha256) = digest_of(tx, candidate.version)? else { continue };
        let report = ImageReport { contact: Contact::Heard, images: candidate.images, conditions: &[] };
        if report.has(&sha256) {
            let sql = "UPDATE rollout_hosts SET taken_at = ?3 WHERE rollout = ?1 AND host = ?2";
            tx.prepare_cached(sql)?.execute(params![candidate.rollout, candidate.host, Time(now)])?;
        } else {
            offers.push(OfferedImage { release: candidate.version, sha256 });
        }
    }
    Ok(offers.into_iter().max_by_key(|offer| offer.release))
}

fn candidates(tx: &Tx<'_>, host: HostId, now: Timestamp) -> rusqlite::Result<Vec<Candidate>> {
    let sql = "SELECT rollouts.number AS number, hosts.number AS of_number, rollouts.version AS version, state, reason,
                   rollouts.wave AS wave, opened_at, settled_at, held_at, times, fallback, rolls_back,
                   rollout_hosts.wave AS of_host, offered_at, update_windows, reports.host_text AS host_text
               FROM hosts JOIN rollout_hosts ON rollout_hosts.host = hosts.number
               JOIN rollouts ON rollouts.number = rollout_hosts.rollout
               LEFT JOIN reports ON reports.host = hosts.number
               WHERE hosts.id = ?1 AND rollouts.subject = 'golden' AND taken_at IS NULL";
    let read = |row: &Row<'_>| {
        let (times, windows) = (json_or_default(row, "times")?, json_or_default(row, "update_windows")?);
        let allowed = AllowedTimes::at(&times, &windows, now);
        let place = HostPlace {
            wave: row.get::<_, u32>("of_host")? as usize,
            offered_at: row.get::<_, Option<Time>>("offered_at")?.map(|time| time.0),
            allowed: &allowed,
        };
        let Some(version) = offered(&stage(row)?, place, version(row)?, now) else { return Ok(None) };
        let (rollout, host) = (row.get("number")?, row.get("of_number")?);
        Ok(Some(Candidate { rollout, host, version, images: reported_images(row)? }))
    };
    let mut select = tx.prepare_cached(sql)?;
    let found = select.query_map([Id(host.uuid())], read)?.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(found.into_iter().flatten().collect())
}
