//! One picture as plain tables.

use super::lists::list;
use super::picture::{Pane, Picture};
use crate::render::table;
use crate::screen::Style;

pub fn page(picture: &Picture, style: Style) -> String {
    let mut text = format!("{}\n", picture.summary());
    for pane in [Pane::Alerts, Pane::Hosts, Pane::Guests, Pane::Work] {
        let list = list(picture, pane, picture.at);
        text.push_str(&format!("\n{}\n", list.title));
        if list.rows.is_empty() {
            text.push_str(&format!("{}\n", list.empty));
        } else {
            text.push_str(&table(list.header, list.rows, style));
        }
    }
    text
}
