//! The newest restore certificate of a guest, to be read and saved.

use holdfast_protocol::restore_certificate::RestoreCertificate;
use holdfast_protocol::time_text::{bytes, span};

use crate::RenderError;
use crate::frame::Frame;
use crate::sheet::{Command, Link, Part, Sheet};
use crate::table::Cell;
use crate::words::{Tone, Word};

/// # Errors
/// [`RenderError`].
pub fn render(
    frame: &Frame,
    page: &str,
    certificate: &RestoreCertificate,
    hub_key: &str,
) -> Result<String, RenderError> {
    let (backup, test) = (&certificate.backup, &certificate.test);
    let mut sheet = Sheet::new(format!("Restore certificate of {}", certificate.guest.name));
    sheet.up = Some(Link::new(page, certificate.guest.name.as_str()));
    sheet.state = Some(Word::new("restored and checked", Tone::Good));
    sheet.lead = Some(test.reason.clone());
    sheet.facts = vec![
        ("Tested", Cell::when(frame.when(test.ended_at.at()))),
        ("Backup of", Cell::when(frame.when(backup.taken_at.at()))),
        ("Size", Cell::text(bytes(backup.bytes))),
        ("Tier", Cell::or_dash(backup.tier)),
        ("Back within", Cell::or_dash(test.return_s().map(span))),
        ("Checks passed", Cell::number(test.checks.len())),
        ("Host", Cell::text(&certificate.host.name)),
        ("Guest", Cell::code(certificate.guest.uid)),
    ];
    let mut part = Part::new("file", "The certificate as a file");
    part.facts.push(("Save it", Cell::link(format!("{page}/restore-certificate/file"), "certificate.json")));
    part.note = Some("It can be checked anywhere and by anyone, without this hub:".to_owned());
    part.commands.push(Command::plain("holdfast certificate verify certificate.json".to_owned()));
    sheet.parts.push(part);
    let mut part = Part::new("key", "The hub's key for certificates");
    part.note = Some("Keep it with the certificates: they are checked against it.".to_owned());
    part.text = Some(hub_key.to_owned());
    sheet.parts.push(part);
    sheet.render(frame)
}
