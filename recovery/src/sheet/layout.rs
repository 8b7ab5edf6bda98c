//! Page layout of the sheet.

use holdfast_protocol::escrow::by_hand::Step;

use pdf_page::{Canvas, Font, GAP, HALF, INNER, LEFT, Matrix, Point, RIGHT, Style, TOP, WIDTH};

use super::Sheet;
use super::text::{self, Page};

const ROWS: usize = 6;
const ROW: f32 = 29.0;

const BODY: Style = Style { font: Font::Text, size: 9.8, grey: 0.0 };
const SMALL: Style = Style { font: Font::Text, size: 8.0, grey: 0.35 };
const HEADING: Style = Style { font: Font::Strong, size: 11.5, grey: 0.0 };
const TITLE: Style = Style { font: Font::Strong, size: 27.0, grey: 0.0 };
const CAVEAT: Style = Style { font: Font::Strong, size: 16.0, grey: 0.0 };
const COMMAND: Style = Style { font: Font::Mono, size: 7.8, grey: 0.0 };
const WORD: Style = Style { font: Font::Mono, size: 18.0, grey: 0.0 };
const CODE: Style = Style { font: Font::Mono, size: 8.5, grey: 0.0 };

/// Above the title: the subject, and which page of how many. Returns where the next thing may be placed.
fn head(ink: &mut Canvas, sheet: &Sheet<'_>, page: usize, title: &str) -> f32 {
    ink.text(Style { font: Font::Strong, ..SMALL }, Point { x: LEFT, y: TOP }, "HOLDFAST");
    let number = format!("Sheet {} \u{b7} page {page} of {}", sheet.record.context.code, sheet.pages());
    ink.text_up_to(SMALL, Point { x: RIGHT, y: TOP }, &number);
    ink.text(TITLE, Point { x: LEFT - 1.5, y: TOP - 38.0 }, title);
    TOP - 38.0
}

/// The first page.
pub fn words(ink: &mut Canvas, sheet: &Sheet<'_>) {
    let y = head(ink, sheet, 1, text::TITLE);
    ink.text(Style { size: 12.0, grey: 0.25, ..BODY }, Point { x: LEFT, y: y - 19.0 }, text::SUBTITLE);
    let below_facts = facts(ink, sheet, y - 2.0);
    let below_purpose = ink.paragraph(BODY, Point { x: LEFT, y: y - 46.0 }, INNER * 0.6, text::PURPOSE);
    let y = grid(ink, sheet, below_facts.min(below_purpose) - 6.0);
    let y = y - 30.0;
    let with = &text::steps_with(sheet.record.context.code);
    let column = Column { at: Point { x: LEFT, y: y - 19.0 }, width: HALF, body: BODY };
    ink.text(HEADING, Point { x: LEFT, y }, text::WITH);
    let with = steps(ink, column, with);
    let x = LEFT + HALF + GAP;
    ink.text(HEADING, Point { x, y }, text::WITHOUT);
    let without = ink.paragraph(BODY, Point { x, y: y - 19.0 }, HALF, text::WITHOUT_SHORT);
    warning(ink, with.min(without) - 4.0);
}

/// The second page: where the backups are, and what is typed without Holdfast.
pub fn by_hand(ink: &mut Canvas, sheet: &Sheet<'_>) {
    let y = head(ink, sheet, 2, text::BY_HAND) - 22.0;
    let body = Style { size: 8.8, ..BODY };
    ink.text(HEADING, Point { x: LEFT, y }, text::BACKUP_LOCATION);
    let mut y = y - 16.0;
    match sheet.off_site() {
        Some(at) => {
            for (name, value) in at.facts() {
                ink.text(SMALL, Point { x: LEFT, y }, name);
                ink.text_within(COMMAND, Point { x: LEFT + 80.0, y }, INNER - 80.0, &value);
                y -= 12.0;
            }
        }
        None => y = ink.paragraph(body, Point { x: LEFT, y }, INNER, text::NO_LOCATION),
    }
    let column = Column { at: Point { x: LEFT, y: y - 10.0 }, width: INNER, body };
    let y = steps(ink, column, &text::steps_without(sheet));
    ink.paragraph(Style { size: 8.0, ..BODY }, Point { x: LEFT, y: y - 4.0 }, INNER, text::YEARLY);
}

/// Name and value, at the right.
fn facts(ink: &mut Canvas, sheet: &Sheet<'_>, top: f32) -> f32 {
    let x = LEFT + INNER * 0.66;
    let mut y = top;
    for (name, value) in sheet.facts() {
        ink.text(SMALL, Point { x, y }, name);
        ink.text_within(
            Style { font: Font::Strong, ..BODY },
            Point { x: x + 62.0, y },
            RIGHT - x - 62.0,
            &value,
        );
        y -= 15.0;
    }
    y -= 3.0;
    ink.text(SMALL, Point { x, y }, text::FINGERPRINT);
    for line in sheet.fingerprint() {
        y -= 11.0;
        ink.text(COMMAND, Point { x, y }, &line);
    }
    y - 22.0
}

/// The words in two columns, each with a box to tick.
fn grid(ink: &mut Canvas, sheet: &Sheet<'_>, top: f32) -> f32 {
    ink.text(SMALL, Point { x: LEFT, y: top }, text::TICK);
    let rows = f32::from(u8::try_from(ROWS).unwrap_or_default());
    let (top, height) = (top - 9.0, rows * ROW + 16.0);
    ink.frame(1.4, Point { x: LEFT, y: top - height }, INNER, height);
    let position = |at: usize| {
        let column = if at < ROWS { 0.0 } else { HALF + GAP };
        let row = f32::from(u8::try_from(at % ROWS).unwrap_or_default());
        Point { x: LEFT + 16.0 + column, y: top - 8.0 - (row + 1.0) * ROW + 8.0 }
    };
    for (at, word) in sheet.code.words().enumerate() {
        let Point { x, y } = position(at);
        ink.frame(0.8, Point { x, y: y - 1.5 }, 13.0, 13.0);
        let number = Style { font: Font::Text, size: 10.0, grey: 0.35 };
        ink.text_up_to(number, Point { x: x + 36.0, y: y + 1.0 }, &(at + 1).to_string());
        ink.text(WORD, Point { x: x + 46.0, y }, word);
    }
    let Point { x, y } = position(2 * ROWS - 1);
    ink.paragraph(SMALL, Point { x, y: y + 6.0 }, HALF - 24.0, text::ELEVENTH);
    top - height
}

/// Where steps are placed.
#[derive(Clone, Copy)]
struct Column {
    at: Point,
    width: f32,
    body: Style,
}

/// What to do, step by step.
fn steps(ink: &mut Canvas, column: Column, steps: &[Step]) -> f32 {
    let Column { at, width, body } = column;
    let mut y = at.y;
    for (number, step) in steps.iter().enumerate() {
        ink.text(Style { font: Font::Strong, ..body }, Point { x: at.x, y }, &(number + 1).to_string());
        let x = at.x + 15.0;
        y = ink.paragraph(body, Point { x, y }, width - 15.0, &step.says);
        y = commands(ink, Point { x, y }, width - 15.0, &step.commands);
        y -= body.size * 0.4;
    }
    y
}

/// Lines to type, on grey.
fn commands(ink: &mut Canvas, at: Point, width: f32, commands: &[String]) -> f32 {
    let mut y = at.y;
    for command in commands {
        ink.fill(0.93, Point { x: at.x - 3.0, y: y - 4.5 }, width + 3.0, 14.5);
        ink.text_within(COMMAND, Point { x: at.x + 1.0, y }, width - 4.0, command);
        y -= 14.5;
    }
    y
}

fn warning(ink: &mut Canvas, top: f32) {
    let inside = Style { size: 9.5, ..BODY };
    let (x, width) = (LEFT + 14.0, INNER - 28.0);
    let height = 84.0;
    ink.fill(0.0, Point { x: LEFT, y: top - height }, 4.0, height);
    ink.fill(0.95, Point { x: LEFT + 4.0, y: top - height }, INNER - 4.0, height);
    let y = ink.paragraph(Style { size: 12.0, ..HEADING }, Point { x, y: top - 20.0 }, width, text::WARNING);
    ink.paragraph(inside, Point { x, y: y - 2.0 }, width, text::WARNING_MORE);
}

/// What a further page carries: a QR code of all of it, and its lines.
pub struct PageContent<'a> {
    pub matrix: &'a Matrix,
    pub lines: &'a [&'a str],
}

/// A further page: its caveat in large letters, a QR code, and the same as text.
pub fn further(ink: &mut Canvas, sheet: &Sheet<'_>, number: usize, page: &Page, load: &PageContent<'_>) {
    let y = head(ink, sheet, number, page.title);
    let top = y - 18.0;
    let y = ink.paragraph(CAVEAT, Point { x: LEFT + 14.0, y: top - 15.0 }, INNER - 14.0, page.caveat);
    let bottom = y + 11.0;
    ink.fill(0.0, Point { x: LEFT, y: bottom }, 4.0, top - bottom);
    let y = ink.paragraph(BODY, Point { x: LEFT, y: bottom - 22.0 }, INNER, &page.purpose);
    let mut y = commands(ink, Point { x: LEFT + 3.0, y: y - 2.0 }, INNER - 3.0, &page.commands);
    let side = 320.0;
    y -= side + 14.0;
    ink.qr(Point { x: (WIDTH - side) / 2.0, y }, side, load.matrix);
    y -= 28.0;
    let width = |style: Style, line: &&str| style.font.width(style.size, line);
    let widest = load.lines.iter().map(|line| width(CODE, line)).fold(0.0, f32::max);
    // All lines in one size, so that they align.
    let size = CODE.size * (INNER / widest).min(1.0);
    let x = (WIDTH - widest.min(INNER)) / 2.0;
    for line in load.lines {
        ink.text(Style { size, ..CODE }, Point { x, y }, line);
        y -= 10.8;
    }
}
