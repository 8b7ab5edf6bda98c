//! A4 pages as PDF: fonts, drawing, the file.
//!
//! ```text
//! Canvas (text, boxes, QR codes) for each page ─▶ file() ─▶ one PDF file with its fonts embedded
//! ```
//! The recovery sheet and the restore certificate are drawn with it. The words of a recovery code pass through here, so
//! what is drawn is in buffers of fixed size that are wiped. Deliberately absent: layout, and what a page says.
#![forbid(unsafe_code)]

mod canvas;
mod file;
mod fonts;
mod qr;

pub use canvas::{Canvas, Point, Style};
pub use file::file;
pub use fonts::Font;
pub use qr::Matrix;

/// A4, in points.
pub const WIDTH: f32 = 595.28;
/// A4, in points.
pub const HEIGHT: f32 = 841.89;

/// Where what is printed begins, from the left edge.
pub const LEFT: f32 = 51.0;
/// Where it ends.
pub const RIGHT: f32 = WIDTH - LEFT;
/// How wide it is.
pub const INNER: f32 = RIGHT - LEFT;
/// Where its first line is, from the lower edge.
pub const TOP: f32 = HEIGHT - 54.0;
/// Between two columns.
pub const GAP: f32 = 22.0;
/// The width of one of two columns.
pub const HALF: f32 = (INNER - GAP) / 2.0;
