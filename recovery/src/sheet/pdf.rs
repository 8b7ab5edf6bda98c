//! PDF file of the sheet: which pages it has.

use pdf_page::{Canvas, Matrix, file};
use zeroize::Zeroizing;

use super::Sheet;
use super::layout::{self, PageContent};
use super::text::{self, Page};

/// Why there is no sheet.
#[derive(Debug, thiserror::Error)]
pub enum DrawError {
    /// More than a QR code holds.
    #[error("the content of page {0:?} is too long for a QR code: print the sheet without it")]
    TooLong(&'static str),
    /// The key cannot be written.
    #[error("the key cannot be serialised: this is a bug of this program")]
    Key(#[source] holdfast_seal::OpenError),
    /// No memory for it.
    #[error("no memory could be allocated for the sheet")]
    Memory(#[source] std::io::Error),
}

impl Sheet<'_> {
    /// As a PDF file. It holds the words: it is wiped when it is dropped.
    pub fn to_pdf(&self) -> Result<Zeroizing<Vec<u8>>, DrawError> {
        let mut first = Canvas::new();
        layout::words(&mut first, self);
        let mut second = Canvas::new();
        layout::by_hand(&mut second, self);
        let mut pages = vec![first, second];
        if let Some(file) = self.wrapped {
            let text = file.to_text();
            let lines: Vec<&str> = text.lines().collect();
            pages.push(self.further(
                pages.len() + 1,
                &text::wrapped(self.record.context.code),
                text.trim_end(),
                &lines,
            )?);
        }
        if let Some(key) = self.bare {
            let json = key.to_json().map_err(DrawError::Key)?;
            pages.push(self.further(
                pages.len() + 1,
                &text::bare(),
                json.expose(),
                &key_lines(json.expose()),
            )?);
        }
        Ok(file(text::TITLE, &pages))
    }

    fn further(&self, number: usize, page: &Page, whole: &str, lines: &[&str]) -> Result<Canvas, DrawError> {
        let matrix = Matrix::of(whole).ok_or(DrawError::TooLong(page.title))?;
        let mut ink = Canvas::new();
        layout::further(&mut ink, self, number, page, &PageContent { matrix: &matrix, lines });
        Ok(ink)
    }
}

/// A key file in lines that a person can type, which together are the same JSON.
pub fn key_lines(json: &str) -> Vec<&str> {
    json.split_inclusive(',').collect()
}
