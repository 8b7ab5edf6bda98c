//! The picture on a whole screen.

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Table};

use super::lists::{List, list};
use super::picture::{Pane, Picture, View};
use crate::render::{Field, Tone, age, clean};

/// A column is no wider, save the last.
const COLUMN_MAX: usize = 28;

pub fn draw(frame: &mut Frame<'_>, picture: &Picture, view: &View, now: Timestamp) {
    let lists =
        [Pane::Alerts, Pane::Hosts, Pane::Guests, Pane::Work].map(|pane| (pane, list(picture, pane, now)));
    let [top, body, bottom] =
        Layout::vertical([Constraint::Length(1), Constraint::Fill(1), Constraint::Length(1)])
            .areas(frame.area());
    frame.render_widget(Paragraph::new(head(picture, view, now)), top);
    let heights = lists.each_ref().map(|(_, list)| height(list));
    let areas: [Rect; 4] = Layout::vertical(heights).areas(body);
    for ((pane, list), area) in lists.into_iter().zip(areas) {
        pane_in(frame, area, (pane, list), view);
    }
    let keys = "q quit   r look now   tab next list   ↑↓ scroll";
    frame.render_widget(Paragraph::new(keys).style(Style::new().add_modifier(Modifier::DIM)), bottom);
}

/// As many lines as the list has, with its frame and heading; the screen is shared in that proportion.
fn height(list: &List) -> Constraint {
    let lines = u16::try_from(list.rows.len().max(1)).unwrap_or(u16::MAX);
    Constraint::Fill(lines.saturating_add(3).min(40))
}

fn head(picture: &Picture, view: &View, now: Timestamp) -> Line<'static> {
    let asked = format!("holdfast top   {}   asked {} ago", picture.summary(), age(picture.at, now));
    match &view.problem {
        None => Line::from(asked),
        Some(problem) => {
            let problem = Span::styled(format!("   {}", clean(problem)), tone(Tone::Bad));
            Line::from(vec![Span::raw(asked), problem])
        }
    }
}

fn pane_in(frame: &mut Frame<'_>, area: Rect, (pane, list): (Pane, List), view: &View) {
    let is_chosen = view.pane == pane;
    let room = usize::from(area.height.saturating_sub(3));
    let most_above = list.rows.len().saturating_sub(room);
    let above = if is_chosen { view.above.min(most_above) } else { 0 };
    let below = list.rows.len().saturating_sub(above.saturating_add(room));
    let more = match (above, below) {
        (0, 0) => String::new(),
        (above, below) => format!(" ({above} above, {below} below)"),
    };
    let border = if is_chosen { Style::new().add_modifier(Modifier::BOLD) } else { Style::new() };
    let block =
        Block::new().borders(Borders::TOP).border_style(border).title(format!(" {}{more} ", list.title));
    if list.rows.is_empty() {
        frame.render_widget(Paragraph::new(list.empty).block(block), area);
        return;
    }
    let widths = widths(&list);
    let header = Row::new(list.header.iter().copied()).style(Style::new().add_modifier(Modifier::DIM));
    let rows = list.rows.iter().skip(above).map(|row| Row::new(row.iter().map(cell)));
    frame.render_widget(Table::new(rows, widths).header(header).block(block), area);
}

/// Each column as wide as its widest text, within a bound; the last takes what is left.
fn widths(list: &List) -> Vec<Constraint> {
    let last = list.header.len().saturating_sub(1);
    let width = |place: usize, heading: &str| {
        let texts = list.rows.iter().filter_map(|row| Some(row.get(place)?.0.chars().count()));
        let widest = texts.chain([heading.chars().count()]).max().unwrap_or(0).min(COLUMN_MAX);
        if place == last {
            Constraint::Fill(1)
        } else {
            Constraint::Length(u16::try_from(widest).unwrap_or(0))
        }
    };
    list.header.iter().enumerate().map(|(place, heading)| width(place, heading)).collect()
}

/// The text comes from hosts, and must not move the cursor.
fn cell((text, shade): &Field) -> Cell<'static> {
    Cell::from(clean(text)).style(tone(*shade))
}

const fn tone(tone: Tone) -> Style {
    match tone {
        Tone::Plain => Style::new(),
        Tone::Good => Style::new().fg(Color::Green),
        Tone::Look => Style::new().fg(Color::Yellow),
        Tone::Bad => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
    }
}
