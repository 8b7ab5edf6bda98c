//! Table layout: a header line, two spaces between columns, no frames.

use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table, presets};

use crate::screen::{Colour, Style};

/// What a cell says about its thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// As it should be.
    Good,
    /// Nothing to say.
    Plain,
    /// In progress, or worth a check.
    Look,
    /// A person must act.
    Bad,
}

/// A cell: its text and tone.
pub type Field = (String, Tone);

/// A field without a tone.
pub fn plain(text: impl ToString) -> Field {
    (text.to_string(), Tone::Plain)
}

/// Shown where a value is unknown.
pub const NOTHING: &str = "-";

/// Lays out rows under a header.
pub fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<Field>>, style: Style) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    match style.columns {
        Some(columns) => {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns);
        }
        None => {
            table.set_content_arrangement(ContentArrangement::Disabled);
        }
    }
    match style.colour {
        Colour::On => table.enforce_styling(),
        Colour::Off => table.force_no_tty(),
    };
    table.set_header(header.iter().map(|name| {
        let cell = Cell::new(name);
        if style.colour == Colour::On { cell.add_attribute(Attribute::Dim) } else { cell }
    }));
    for row in rows {
        table.add_row(row.into_iter().map(|(text, tone)| cell(&clean(&text), tone)));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n") + "\n"
}

fn cell(text: &str, tone: Tone) -> Cell {
    let cell = Cell::new(text);
    match tone {
        Tone::Good => cell.fg(Color::Green),
        Tone::Plain => cell,
        Tone::Look => cell.fg(Color::Yellow),
        Tone::Bad => cell.fg(Color::Red).add_attribute(Attribute::Bold),
    }
}

/// Text that came from a host must not move the cursor, start a colour, or be shown in another order than it is stored.
pub fn clean(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() {
                ' '
            } else if is_unseen(c) {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

/// Invisible characters that reorder or join those around them.
const fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Names and values, one a line.
pub fn list(pairs: &[(&str, String)]) -> String {
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    pairs.iter().map(|(name, value)| format!("{name:<width$}  {}\n", clean(value))).collect()
}
