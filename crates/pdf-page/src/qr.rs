//! QR codes as rows of dark and light modules.

use std::ops::Range;

use fast_qr::{ECL, QRBuilder};

/// The squares of a code.
pub struct Matrix {
    size: u16,
    rows: Vec<Vec<bool>>,
}

impl Matrix {
    /// The code of a text, of which 15 in a hundred may be spoilt. Nothing where it is too long for one.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        let code = QRBuilder::new(text).ecl(ECL::M).build().ok()?;
        let rows: Vec<Vec<bool>> =
            (0..code.size).map(|row| code[row].iter().map(|module| module.value()).collect()).collect();
        Some(Self { size: u16::try_from(code.size).ok()?, rows })
    }

    /// How many squares a side has.
    #[must_use]
    pub const fn size(&self) -> u16 {
        self.size
    }

    /// Dark squares side by side: the row from above, and from where to where.
    pub fn runs(&self) -> impl Iterator<Item = (u16, Range<u16>)> {
        (0_u16..).zip(&self.rows).flat_map(|(row, squares)| {
            let mut at = 0_u16;
            squares.chunk_by(|one, next| one == next).filter_map(move |run| {
                let start = at;
                at += u16::try_from(run.len()).ok()?;
                run.first().copied().unwrap_or_default().then_some((row, start..at))
            })
        })
    }
}
