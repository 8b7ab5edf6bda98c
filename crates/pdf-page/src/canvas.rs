//! PDF drawing operators of one page.
//!
//! Lengths are points, from the lower left corner.
//!
//! The words of a code pass through here, so it is a buffer of fixed size that is wiped, and not the library's.

use std::io::Write as _;

use zeroize::Zeroizing;

use crate::fonts::{Font, latin};
use crate::qr::Matrix;

/// A page with the largest QR code has less.
const BYTES: usize = 512 * 1024;

/// A place on the page.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// From the left.
    pub x: f32,
    pub y: f32,
}

/// How a text looks.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub font: Font,
    pub size: f32,
    /// From 0, black, to 1, white.
    pub grey: f32,
}

/// What is drawn on one page.
pub struct Canvas(Zeroizing<Vec<u8>>);

impl Default for Canvas {
    fn default() -> Self {
        Self::new()
    }
}

impl Canvas {
    /// A blank one.
    #[must_use]
    pub fn new() -> Self {
        Self(Zeroizing::new(Vec::with_capacity(BYTES)))
    }

    /// What was drawn.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn put(&mut self, arguments: std::fmt::Arguments<'_>) {
        // A vector takes whatever it is given.
        let _ = self.0.write_fmt(arguments);
    }

    /// A text on one line.
    pub fn text(&mut self, style: Style, at: Point, text: &str) {
        self.put(format_args!(
            "{} g BT /{} {} Tf {:.2} {:.2} Td (",
            style.grey,
            style.font.key(),
            style.size,
            at.x,
            at.y
        ));
        for byte in latin(text) {
            if matches!(byte, b'(' | b')' | b'\\') {
                self.0.push(b'\\');
            }
            self.0.push(byte);
        }
        self.put(format_args!(") Tj ET\n"));
    }

    /// A text on one line, smaller where it would be wider than there is room.
    pub fn text_within(&mut self, style: Style, at: Point, room: f32, text: &str) {
        let size = style.size * (room / style.font.width(style.size, text)).min(1.0);
        self.text(Style { size, ..style }, at, text);
    }

    /// A text that ends at a place.
    pub fn text_up_to(&mut self, style: Style, at: Point, text: &str) {
        let x = at.x - style.font.width(style.size, text);
        self.text(style, Point { x, ..at }, text);
    }

    /// A text on as many lines as it needs within a width. Returns where the next line would be.
    pub fn paragraph(&mut self, style: Style, at: Point, width: f32, text: &str) -> f32 {
        let leading = style.size * 1.38;
        let mut y = at.y;
        let mut line = String::new();
        for word in text.split(' ') {
            let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
            if style.font.width(style.size, &longer) > width && !line.is_empty() {
                self.text(style, Point { y, ..at }, &line);
                y -= leading;
                word.clone_into(&mut line);
            } else {
                line = longer;
            }
        }
        self.text(style, Point { y, ..at }, &line);
        y - leading
    }

    /// A filled box, from its lower left corner.
    pub fn fill(&mut self, grey: f32, at: Point, width: f32, height: f32) {
        self.put(format_args!("{grey} g {:.2} {:.2} {width:.2} {height:.2} re f\n", at.x, at.y));
    }

    /// The outline of a box, from its lower left corner.
    pub fn frame(&mut self, pen: f32, at: Point, width: f32, height: f32) {
        self.put(format_args!("0 G {pen} w {:.2} {:.2} {width:.2} {height:.2} re S\n", at.x, at.y));
    }

    /// A QR code, from its lower left corner.
    pub fn qr(&mut self, at: Point, side: f32, matrix: &Matrix) {
        let module = side / f32::from(matrix.size());
        self.put(format_args!("q 0 g {module:.4} 0 0 {module:.4} {:.2} {:.2} cm\n", at.x, at.y));
        for (row, dark) in matrix.runs() {
            self.put(format_args!(
                "{} {} {} 1 re ",
                dark.start,
                matrix.size() - 1 - row,
                dark.end - dark.start
            ));
        }
        self.put(format_args!("f Q\n"));
    }
}
