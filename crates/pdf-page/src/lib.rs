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
