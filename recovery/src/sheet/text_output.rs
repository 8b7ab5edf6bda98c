//! Plain-text form of the sheet, for a terminal or a simple printer.

use std::io;

use holdfast_protocol::escrow::by_hand::Step;

use super::Sheet;
use super::pdf::{DrawError, key_lines};
use super::text;
use crate::locked::Locked;

/// All four pages have less.
const BYTES: usize = 32 * 1024;

const COLUMNS: usize = 78;
const ROWS: usize = 6;

impl Sheet<'_> {
    /// As plain text, in locked memory.
    pub fn to_text(&self) -> Result<Locked, DrawError> {
        let mut page = Page(Locked::with_capacity(BYTES).map_err(DrawError::Memory)?);
        self.first(&mut page).map_err(DrawError::Memory)?;
        self.second(&mut page).map_err(DrawError::Memory)?;
        if let Some(file) = self.wrapped {
            let text = file.to_text();
            let lines: Vec<&str> = text.lines().collect();
            page.further(&text::wrapped(self.record.context.code), &lines).map_err(DrawError::Memory)?;
        }
        if let Some(key) = self.bare {
            let json = key.to_json().map_err(DrawError::Key)?;
            page.further(&text::bare(), &key_lines(json.expose())).map_err(DrawError::Memory)?;
        }
        Ok(page.0)
    }

    fn first(&self, page: &mut Page) -> io::Result<()> {
        page.title(&format!("{} {}", text::TITLE, text::SUBTITLE), '=')?;
        for (name, value) in self.facts() {
            page.put(&[name, ": ", &value, "\n"])?;
        }
        page.put(&[text::FINGERPRINT, ":\n"])?;
        for line in self.fingerprint() {
            page.put(&["  ", &line, "\n"])?;
        }
        page.put(&["\n"])?;
        page.paragraph(["", ""], text::PURPOSE)?;
        page.put(&["\n"])?;
        page.paragraph(["", ""], text::TICK)?;
        page.put(&["\n"])?;
        self.grid(page)?;
        page.paragraph(["", ""], text::ELEVENTH)?;
        page.steps(text::WITH, &text::steps_with(self.record.context.code))?;
        page.put(&["\n"])?;
        page.title(text::WITHOUT, '-')?;
        page.paragraph(["", ""], text::WITHOUT_SHORT)?;
        page.put(&["\n"])?;
        page.paragraph(["!! "; 2], text::WARNING)?;
        page.paragraph(["!! "; 2], text::WARNING_MORE)
    }

    /// What is typed without Holdfast.
    fn second(&self, page: &mut Page) -> io::Result<()> {
        page.put(&["\n\u{c}\n"])?;
        page.title(text::BACKUP_LOCATION, '=')?;
        match self.off_site() {
            Some(at) => {
                for (name, value) in at.facts() {
                    page.put(&[name, ": ", &value, "\n"])?;
                }
            }
            None => page.paragraph(["", ""], text::NO_LOCATION)?,
        }
        page.steps(text::BY_HAND, &text::steps_without(self))?;
        page.put(&["\n"])?;
        page.paragraph(["", ""], text::YEARLY)
    }

    /// Two columns, each word with its number and room to tick.
    fn grid(&self, page: &mut Page) -> io::Result<()> {
        let words: Vec<&'static str> = self.code.words().collect();
        let cell = |at: usize| words.get(at).map(|word| (format!("{:>2}", at + 1), *word));
        for row in 0..ROWS {
            if let Some((number, word)) = cell(row) {
                page.put(&["  [ ] ", &number, ".  ", word])?;
                if let Some((other_number, other)) = cell(row + ROWS) {
                    page.put(&[
                        &" ".repeat(24_usize.saturating_sub(word.len())),
                        "[ ] ",
                        &other_number,
                        ".  ",
                        other,
                    ])?;
                }
            }
            page.put(&["\n"])?;
        }
        page.put(&["\n"])
    }
}

struct Page(Locked);

impl Page {
    fn put(&mut self, parts: &[&str]) -> io::Result<()> {
        parts.iter().try_for_each(|part| self.0.push(part.as_bytes()).map_err(io::Error::other))
    }

    fn title(&mut self, title: &str, mark: char) -> io::Result<()> {
        self.put(&[title, "\n", &mark.to_string().repeat(title.len()), "\n\n"])
    }

    /// Lines of [`COLUMNS`], each after a margin: one for the first, one for the others.
    fn paragraph(&mut self, [mut margin, others]: [&str; 2], text: &str) -> io::Result<()> {
        let mut column = 0;
        for word in text.split(' ') {
            if column > 0 && column + 1 + word.len() > COLUMNS {
                self.put(&["\n"])?;
                (column, margin) = (0, others);
            }
            let before = if column == 0 { margin } else { " " };
            self.put(&[before, word])?;
            column += before.len() + word.len();
        }
        self.put(&["\n"])
    }

    fn steps(&mut self, heading: &str, steps: &[Step]) -> io::Result<()> {
        self.put(&["\n"])?;
        self.title(heading, '-')?;
        for (number, step) in steps.iter().enumerate() {
            self.paragraph([&format!(" {}. ", number + 1), "    "], &step.says)?;
            for command in &step.commands {
                self.put(&["        ", command, "\n"])?;
            }
        }
        Ok(())
    }

    fn further(&mut self, page: &text::Page, lines: &[&str]) -> io::Result<()> {
        self.put(&["\n\u{c}\n"])?;
        self.title(page.title, '=')?;
        self.paragraph(["!! "; 2], page.caveat)?;
        self.put(&["\n"])?;
        self.paragraph(["", ""], &page.purpose)?;
        for command in &page.commands {
            self.put(&["        ", command, "\n"])?;
        }
        self.put(&["\n"])?;
        lines.iter().try_for_each(|line| self.put(&[line, "\n"]))
    }
}
