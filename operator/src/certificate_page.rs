//! Restore certificate as a printed page: one side of A4.
//!
//! What comes in: a verified certificate. What goes out: a PDF file. Deliberately absent: what its sentences say
//! (`certificate_text`), and verification: the page is for people, and only the JSON file can be verified.

use pdf_page::{Canvas, Font, GAP, HALF, INNER, LEFT, Point, RIGHT, Style, TOP, file};
use restore_certificate::verify::Proof;

use crate::certificate_text::{Fact, Facts, not_proved, proved, return_time, signatures};

const TITLE_TEXT: &str = "Restore certificate";

/// Where values begin, from the left of their names.
const VALUES: f32 = 62.0;

const BODY: Style = Style { font: Font::Text, size: 9.0, grey: 0.0 };
const SMALL: Style = Style { font: Font::Text, size: 8.0, grey: 0.35 };
const HEADING: Style = Style { font: Font::Strong, size: 11.5, grey: 0.0 };
const TITLE: Style = Style { font: Font::Strong, size: 27.0, grey: 0.0 };
const CODE: Style = Style { font: Font::Mono, size: 8.0, grey: 0.0 };
const FIGURE: Style = Style { font: Font::Strong, size: 20.0, grey: 0.0 };

/// Checks that are printed; the rest are in the JSON file.
const CHECKS_MAX: usize = 14;

/// Longer values are cut: they are whole in the JSON file.
const VALUE_CHARS_MAX: usize = 100;

/// Draws the page.
pub fn pdf(proof: &Proof) -> Vec<u8> {
    let mut ink = Canvas::new();
    draw(&mut ink, proof);
    file(TITLE_TEXT, &[ink]).to_vec()
}

/// Draws all of it. Returns how far from the lower edge it ends.
fn draw(ink: &mut Canvas, proof: &Proof) -> f32 {
    let document = &proof.document;
    let facts = Facts::of(document);
    ink.text(Style { font: Font::Strong, ..SMALL }, Point { x: LEFT, y: TOP }, "HOLDFAST");
    let issued = format!("Issued {} \u{b7} agentd {}", document.issued_at, document.agent_version);
    ink.text_up_to(SMALL, Point { x: RIGHT, y: TOP }, &issued);
    ink.text(TITLE, Point { x: LEFT - 1.5, y: TOP - 38.0 }, TITLE_TEXT);
    let subtitle = format!(
        "A backup of {} was restored and checked on {}.",
        document.guest.name, document.test.ended_at
    );
    ink.text_within(
        Style { size: 12.0, grey: 0.25, ..BODY },
        Point { x: LEFT, y: TOP - 57.0 },
        INNER,
        &subtitle,
    );
    let top = figures(ink, proof, TOP - 76.0);
    let (guest, test) = (facts.guest.as_slice(), facts.test.as_slice());
    let left = group(ink, "Guest and host", guest, Point { x: LEFT, y: top }, HALF);
    let right = group(ink, "Restore test", test, Point { x: LEFT + HALF + GAP, y: top }, HALF);
    let y = left.min(right) - 8.0;
    let y = group(ink, "Backup", &facts.backup, Point { x: LEFT, y }, INNER) - 8.0;
    let y = checks(ink, &facts, y) - 8.0;
    let y = sentences(ink, "What is proved", &proved(proof), y) - 6.0;
    let y = sentences(ink, "What is not proved", &not_proved(proof), y) - 8.0;
    let y = group(ink, "Signatures", &signatures(proof), Point { x: LEFT, y }, INNER) - 2.0;
    let offline = "Verify the JSON file of this certificate without a network: holdfast certificate verify FILE --hub-key KEY. \
                   The runbook of Holdfast shows the same with ssh-keygen alone. This page itself proves nothing.";
    ink.paragraph(SMALL, Point { x: LEFT, y }, INNER, offline)
}

/// Verdict and time of return, in large letters on grey.
fn figures(ink: &mut Canvas, proof: &Proof, top: f32) -> f32 {
    let height = 44.0;
    ink.fill(0.0, Point { x: LEFT, y: top - height }, 4.0, height);
    ink.fill(0.95, Point { x: LEFT + 4.0, y: top - height }, INNER - 4.0, height);
    let document = &proof.document;
    let passed = format!("{} of {} passed", document.test.checks.len(), document.test.checks.len());
    let columns = [
        ("Verdict", document.test.verdict.as_str().to_owned()),
        ("Checks", passed),
        ("Measured return", return_time(document)),
    ];
    let width = (INNER - 18.0) / 3.0;
    let mut x = LEFT + 18.0;
    for (name, value) in columns {
        ink.text(SMALL, Point { x, y: top - 13.0 }, name);
        ink.text_within(FIGURE, Point { x, y: top - 35.0 }, width - 10.0, &value);
        x += width;
    }
    top - height - 22.0
}

/// A heading, and names with their values. Returns where the next thing may be placed.
fn group(ink: &mut Canvas, title: &str, facts: &[Fact], at: Point, width: f32) -> f32 {
    ink.text(HEADING, at, title);
    let mut y = at.y - 16.0;
    for (name, value) in facts {
        ink.text(SMALL, Point { x: at.x, y }, name);
        let style = if is_code(name) { CODE } else { BODY };
        ink.text_within(style, Point { x: at.x + VALUES, y }, width - VALUES, &shortened(value));
        y -= 13.0;
    }
    y - 4.0
}

/// Values that are compared letter by letter.
fn is_code(name: &str) -> bool {
    ["Uid", "Host id", "Archive", "Encryption", "Host key", "Hub key", "Document"].contains(&name)
}

fn shortened(value: &str) -> String {
    if value.chars().count() <= VALUE_CHARS_MAX {
        return value.to_owned();
    }
    let kept: String = value.chars().take(VALUE_CHARS_MAX - 3).collect();
    format!("{kept}...")
}

/// The reason of the verdict, and the checks in two columns.
fn checks(ink: &mut Canvas, facts: &Facts, top: f32) -> f32 {
    ink.text(HEADING, Point { x: LEFT, y: top }, "Checks");
    let top = ink.paragraph(BODY, Point { x: LEFT, y: top - 15.0 }, INNER, &facts.reason) + 13.0;
    let checks = &facts.checks;
    let mut shown: Vec<String> = checks.iter().take(CHECKS_MAX).cloned().collect();
    if let Some(more) = checks.len().checked_sub(CHECKS_MAX).filter(|more| *more > 0) {
        shown.push(format!("and {more} more, in the JSON file"));
    }
    let rows = shown.len().div_ceil(2);
    let mut lowest = top - 16.0;
    for (column, lines) in shown.chunks(rows.max(1)).enumerate() {
        let x = if column == 0 { LEFT } else { LEFT + HALF + GAP };
        let mut y = top - 16.0;
        for line in lines {
            ink.fill(0.0, Point { x, y: y + 2.0 }, 3.0, 3.0);
            ink.text_within(BODY, Point { x: x + 9.0, y }, HALF - 9.0, line);
            y -= 12.5;
        }
        lowest = lowest.min(y);
    }
    lowest - 4.0
}

/// A heading, and sentences below each other.
fn sentences(ink: &mut Canvas, title: &str, sentences: &[String], top: f32) -> f32 {
    ink.text(HEADING, Point { x: LEFT, y: top }, title);
    let mut y = top - 15.0;
    for sentence in sentences {
        ink.fill(0.0, Point { x: LEFT, y: y + 2.0 }, 3.0, 3.0);
        y = ink.paragraph(BODY, Point { x: LEFT + 9.0, y }, INNER - 9.0, sentence);
    }
    y - 2.0
}

#[cfg(test)]
mod tests {
    use restore_certificate::verify::HubTrust;

    use super::*;
    use crate::render::samples;

    #[test]
    fn the_largest_certificate_fits_one_page() {
        let mut proof = samples::proof(HubTrust::NotCompared);
        assert!(draw(&mut Canvas::new(), &proof) > 40.0);
        let check = proof.document.test.checks.last().unwrap().clone();
        proof.document.test.checks.resize(51, check);
        proof.document.test.reason = "wide ".repeat(102);
        let lowest = draw(&mut Canvas::new(), &proof);
        assert!(lowest > 40.0, "{lowest}");
        assert!(pdf(&proof).starts_with(b"%PDF-"));
    }
}
