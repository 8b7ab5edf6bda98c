//! Embedded fonts and their metrics.
//!
//! All printed text is Latin-1, so each letter is one byte and readers need no table to turn it back into text.

use std::sync::LazyLock;

use ttf_parser::Face as FontFile;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Font {
    Text,
    Strong,
    /// For words, commands and keys: no two letters look alike.
    Mono,
}

/// The first and last byte that has a letter.
pub const CODES: std::ops::RangeInclusive<u8> = 32..=255;

/// What a font file says. Lengths are in thousandths of the size.
pub struct Metrics {
    pub name: &'static str,
    /// The whole font file.
    pub file: &'static [u8],
    /// How wide each letter is, from the first of [`CODES`] on.
    pub widths: Vec<f32>,
    /// The box that each letter fits in.
    pub bounds: [f32; 4],
    /// Above the line.
    pub ascent: f32,
    pub descent: f32,
    /// Of a capital letter.
    pub cap_height: f32,
}

static ALL: LazyLock<[Metrics; 3]> = LazyLock::new(|| {
    [
        Metrics::read("IBMPlexSans", include_bytes!("../data/fonts/IBMPlexSans-Regular.ttf")),
        Metrics::read("IBMPlexSans-SemiBold", include_bytes!("../data/fonts/IBMPlexSans-SemiBold.ttf")),
        Metrics::read("IBMPlexMono-Medium", include_bytes!("../data/fonts/IBMPlexMono-Medium.ttf")),
    ]
});

impl Font {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Text, Self::Strong, Self::Mono];

    /// Its name within a page.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Text => "T",
            Self::Strong => "S",
            Self::Mono => "M",
        }
    }

    /// What is to be known of it.
    pub fn metrics(self) -> &'static Metrics {
        let [text, strong, mono] = &*ALL;
        match self {
            Self::Text => text,
            Self::Strong => strong,
            Self::Mono => mono,
        }
    }

    /// How wide a text is at a size.
    pub fn width(self, size: f32, text: &str) -> f32 {
        let widths = &self.metrics().widths;
        let width = |byte: u8| widths.get(usize::from(byte.saturating_sub(*CODES.start()))).copied();
        latin(text).filter_map(width).sum::<f32>() * size / 1000.0
    }
}

/// A text in Latin-1. What is not in it becomes a question mark.
pub fn latin(text: &str) -> impl Iterator<Item = u8> {
    text.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap_or(b'?'))
}

impl Metrics {
    /// The files are part of this program, so one that cannot be read shows in the tests.
    fn read(name: &'static str, file: &'static [u8]) -> Self {
        let none = Self {
            name,
            file,
            widths: Vec::new(),
            bounds: [0.0; 4],
            ascent: 0.0,
            descent: 0.0,
            cap_height: 0.0,
        };
        let Ok(font) = FontFile::parse(file, 0) else { return none };
        let scaled = |length: i16| f32::from(length) * 1000.0 / f32::from(font.units_per_em());
        let advance = |code: u8| {
            let glyph = font.glyph_index(char::from(code))?;
            i16::try_from(font.glyph_hor_advance(glyph)?).ok()
        };
        let bounds = font.global_bounding_box();
        Self {
            widths: CODES.map(|code| scaled(advance(code).unwrap_or_default())).collect(),
            bounds: [bounds.x_min, bounds.y_min, bounds.x_max, bounds.y_max].map(scaled),
            ascent: scaled(font.ascender()),
            descent: scaled(font.descender()),
            cap_height: scaled(font.capital_height().unwrap_or_default()),
            ..none
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_font_has_every_letter() {
        for font in Font::ALL {
            let metrics = font.metrics();
            assert!(metrics.ascent > 500.0 && metrics.descent < 0.0 && metrics.cap_height > 500.0);
            for letter in (' '..='~').chain(['·']) {
                assert!(font.width(10.0, &letter.to_string()) > 1.0, "{letter:?} of {}", metrics.name);
            }
        }
        assert!((Font::Mono.width(10.0, "il1|") - Font::Mono.width(10.0, "WM@O")).abs() < 0.01);
    }
}
