//! `cargo xtask book`: the pages of `docs/` as static HTML.
//!
//! In: `docs/SUMMARY.md`, in mdBook's form, and the pages that it lists. Out: one HTML page each in a folder, with the list
//! of all of them at its side. No script and nothing from elsewhere, so that it can be read on a machine without a network.
//! A link to a file that is not in the book leads to nothing offline, so it is printed as text. Deliberately absent: search.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

use crate::workspace::{root, target};

const SUMMARY: &str = "docs/SUMMARY.md";

const STYLE: &str = include_str!("book/style.css");

/// A page, as the summary lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chapter {
    pub title: String,
    /// From the root of the checkout.
    pub source: PathBuf,
}

impl Chapter {
    /// `docs/first-hour.md` is `first-hour.html`, and the first page of all is `index.html`.
    fn file(&self) -> String {
        if self.source == Path::new("README.md") {
            return "index.html".to_owned();
        }
        let stem = self.source.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
        format!("{stem}.html")
    }
}

/// Writes the book below `target`, and says where.
pub fn run() -> Result<()> {
    let folder = target().join("book");
    write(&folder)?;
    println!("{}", folder.join("index.html").display());
    Ok(())
}

/// Writes the book into a folder, which is made anew.
pub fn write(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    let chapters = chapters(&fs::read_to_string(root().join(SUMMARY)).context(SUMMARY)?)?;
    let files: BTreeMap<PathBuf, String> =
        chapters.iter().map(|chapter| (chapter.source.clone(), chapter.file())).collect();
    for chapter in &chapters {
        let path = root().join(&chapter.source);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let page = page(chapter, &text, &chapters, &files);
        fs::write(folder.join(chapter.file()), page)?;
    }
    fs::write(folder.join("style.css"), STYLE)?;
    Ok(())
}

/// The chapters of a summary: each line `- [Title](path)`.
pub fn chapters(summary: &str) -> Result<Vec<Chapter>> {
    let mut chapters = Vec::new();
    for line in summary.lines().filter_map(|line| line.strip_prefix("- ")) {
        let parts = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(')')?.split_once("]("));
        let Some((title, path)) = parts else { bail!("{SUMMARY} has a line that is no link: {line}") };
        chapters.push(Chapter { title: title.to_owned(), source: resolved(Path::new(SUMMARY), path) });
    }
    Ok(chapters)
}

/// Where a link of a page leads, from the root of the checkout.
pub fn resolved(page: &Path, link: &str) -> PathBuf {
    let mut path = page.parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::Normal(name) => path.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    path
}

fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH
}

fn page(chapter: &Chapter, text: &str, chapters: &[Chapter], files: &BTreeMap<PathBuf, String>) -> String {
    let mut list = String::new();
    for other in chapters {
        let here = if other == chapter { " class=\"here\"" } else { "" };
        // Writing into a String cannot fail.
        let _infallible =
            writeln!(list, "<li{here}><a href=\"{}\">{}</a></li>", other.file(), escaped(&other.title));
    }
    let mut body = String::new();
    html::push_html(&mut body, events(chapter, text, files).into_iter());
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title} — Holdfast</title>\n<link rel=\"stylesheet\" href=\"style.css\">\n</head>\n\
         <body>\n<nav><ol>\n{list}</ol></nav>\n<main>\n{body}</main>\n</body>\n</html>\n",
        title = escaped(&chapter.title),
    )
}

/// The page, with the names of headings as they are linked to, and links to other pages as they are in the book.
fn events<'a>(chapter: &Chapter, text: &'a str, files: &BTreeMap<PathBuf, String>) -> Vec<Event<'a>> {
    let mut events: Vec<Event<'a>> = Parser::new_ext(text, options()).collect();
    let mut dead = false;
    for place in 0..events.len() {
        let heading = heading_text(&events, place);
        let Some(event) = events.get_mut(place) else { break };
        match event {
            Event::Start(Tag::Heading { id, .. }) => *id = Some(CowStr::from(anchor(&heading))),
            Event::Start(Tag::Link { dest_url, .. }) if is_outside(dest_url) => {}
            Event::Start(Tag::Link { dest_url, .. }) => match in_book(chapter, dest_url, files) {
                Some(file) => *dest_url = CowStr::from(file),
                None => {
                    dead = true;
                    *event = Event::Html(CowStr::from("<span>"));
                }
            },
            Event::End(TagEnd::Link) if std::mem::take(&mut dead) => {
                *event = Event::Html(CowStr::from("</span>"));
            }
            _ => {}
        }
    }
    events
}

/// A link that stays as it is: to another site, or within the page.
pub fn is_outside(link: &str) -> bool {
    link.starts_with("http://") || link.starts_with("https://") || link.starts_with('#')
}

fn in_book(chapter: &Chapter, link: &str, files: &BTreeMap<PathBuf, String>) -> Option<String> {
    let (path, fragment) = link.split_once('#').map_or((link, None), |(path, name)| (path, Some(name)));
    let file = files.get(&resolved(&chapter.source, path))?;
    Some(fragment.map_or_else(|| file.clone(), |name| format!("{file}#{name}")))
}

/// The text of the heading that begins here.
fn heading_text(events: &[Event<'_>], from: usize) -> String {
    if !matches!(events.get(from), Some(Event::Start(Tag::Heading { .. }))) {
        return String::new();
    }
    let within =
        events.iter().skip(from).take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    within
        .filter_map(|event| match event {
            Event::Text(text) | Event::Code(text) => Some(text.as_ref()),
            _ => None,
        })
        .collect()
}

/// A heading's name in links: lower case, hyphens for spaces, no other signs.
pub fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// The names of all headings of a page.
pub fn anchors(text: &str) -> Vec<String> {
    let events: Vec<Event<'_>> = Parser::new_ext(text, options()).collect();
    let headings = (0..events.len()).map(|place| heading_text(&events, place));
    headings.filter(|heading| !heading.is_empty()).map(|heading| anchor(&heading)).collect()
}

/// The links of a page.
pub fn links(text: &str) -> Vec<String> {
    let link = |event| match event {
        Event::Start(Tag::Link { dest_url, .. }) => Some(dest_url.to_string()),
        _ => None,
    };
    Parser::new_ext(text, options()).filter_map(link).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> BTreeMap<PathBuf, String> {
        [("README.md", "index.html"), ("docs/runbook.md", "runbook.html")]
            .map(|(source, file)| (source.into(), file.to_owned()))
            .into()
    }

    #[test]
    fn a_summary_lists_its_chapters_from_the_root() {
        let found = chapters("# Summary\n\n- [One](../README.md)\n- [Two](runbook.md)\n").unwrap();
        let named: Vec<_> =
            found.iter().map(|one| (one.title.as_str(), one.source.to_str().unwrap())).collect();
        assert_eq!(named, [("One", "README.md"), ("Two", "docs/runbook.md")]);
        assert_eq!(found[0].file(), "index.html");
        assert!(chapters("- no link\n").is_err());
    }

    #[test]
    fn links_lead_within_the_book_or_nowhere() {
        let chapter = Chapter { title: "One".to_owned(), source: "README.md".into() };
        let text = "[a](docs/runbook.md#guests) [b](fuzz/) [c](https://example.org/)";
        let html = page(&chapter, text, &[], &files());
        assert!(html.contains("<a href=\"runbook.html#guests\">a</a>"), "{html}");
        assert!(html.contains("<span>b</span>"), "{html}");
        assert!(html.contains("<a href=\"https://example.org/\">c</a>"), "{html}");
    }

    #[test]
    fn headings_have_the_names_that_links_use() {
        assert_eq!(
            anchors("# On a real host\n\n## `agentd` and more: why?\n"),
            ["on-a-real-host", "agentd-and-more-why"]
        );
        let chapter = Chapter { title: "A & B".to_owned(), source: "docs/runbook.md".into() };
        let html = page(&chapter, "## Where to look\n", &[], &files());
        assert!(html.contains("<h2 id=\"where-to-look\">"), "{html}");
        assert!(html.contains("<title>A &amp; B — Holdfast</title>"), "{html}");
    }
}
