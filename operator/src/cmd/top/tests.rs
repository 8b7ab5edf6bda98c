//! The live view on a screen of a test, and as text.

use holdfast_protocol::operation::OperationStatus;
use insta::assert_snapshot;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::draw::draw;
use super::picture::{GuestLine, Pane, Picture, View, WorkLine};
use super::text;
use crate::render::alert_tests::incidents;
use crate::render::samples::{guests, hosts, now, operation};
use crate::screen::{Colour, Style};

fn picture() -> Picture {
    let hosts = hosts();
    let host = hosts[0].name.clone();
    let guests = guests().into_iter().map(|guest| GuestLine { host: host.clone(), guest }).collect();
    let work = vec![WorkLine { host, operation: operation(OperationStatus::Running) }];
    Picture::of(now(), (incidents(), hosts), (guests, work), 2)
}

fn screen(picture: &Picture, view: &View, (columns, rows): (u16, u16)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| draw(frame, picture, view, now())).unwrap();
    terminal.backend().to_string()
}

#[test]
fn the_view_is_drawn() {
    let view = View { problem: Some("the hub cannot be reached".to_owned()), ..View::default() };
    assert_snapshot!("top", screen(&picture(), &view, (140, 40)));
    let scrolled = View { pane: Pane::Alerts, above: 2, problem: None };
    assert_snapshot!("top_small", screen(&picture(), &scrolled, (80, 20)));
}

#[test]
fn no_size_of_a_terminal_breaks_it() {
    let empty = Picture::of(now(), (Vec::new(), Vec::new()), (Vec::new(), Vec::new()), 0);
    for picture in [picture(), empty] {
        for size in [(1, 1), (3, 2), (10, 5), (400, 3), (20, 100)] {
            for above in [0, 1, usize::MAX] {
                screen(&picture, &View { above, ..View::default() }, size);
            }
        }
    }
}

#[test]
fn the_view_is_text_where_there_is_no_terminal() {
    let plain = Style { colour: Colour::Off, columns: None };
    assert_snapshot!("top_text", text::page(&picture(), plain));
}

#[test]
fn keys_walk_through_the_lists() {
    let mut view = View::default();
    view.up();
    view.down();
    view.down();
    assert_eq!((view.pane, view.above), (Pane::Alerts, 2));
    view.next();
    assert_eq!((view.pane, view.above), (Pane::Hosts, 0));
    for _ in 0..3 {
        view.next();
    }
    assert_eq!(view.pane, Pane::Alerts);
}
