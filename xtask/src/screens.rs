//! `cargo xtask screens`: pictures of every page, in `docs/screens`.
//!
//! In: the pictures that the tests in the browser take. Out: the same with few colours, in the place of the former ones, and
//! the page that lists them. Deliberately absent: a judgement; a person looks at them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::ci;
use crate::workspace::{must, program, root};

/// All pictures together.
const BYTES_MAX: u64 = 9 * 1024 * 1024;

const HEAD: &str = "# Screens\n\n\
    The pages of a hub with a small fleet, as `cargo xtask screens` takes them with the tests in `hubd/tests/browser`: in \
    both themes, 360, 768 and 1440 px wide. A long page is cut off. The command needs `pngquant` of Debian.\n";

pub fn run() -> Result<()> {
    let taken = tempfile::tempdir().context("cannot make a folder for pictures")?;
    ci::browser_tests("and test(/^views::/)", &[("HOLDFAST_SCREENS", taken.path().as_os_str())])?;
    let kept = root().join("docs/screens");
    std::fs::create_dir_all(&kept).context("cannot make docs/screens")?;
    for name in pictures(&kept)? {
        std::fs::remove_file(kept.join(&name)).with_context(|| format!("cannot remove {name}"))?;
    }
    let names = pictures(taken.path())?;
    ensure!(!names.is_empty(), "no picture was taken: is Chromium installed?");
    let mut bytes = 0;
    for name in &names {
        let to = kept.join(name);
        let mut fewer = program("pngquant");
        fewer.args(["--strip", "--speed", "3", "--output"]).arg(&to).args(["48", "--"]);
        must(fewer.arg(taken.path().join(name))).context("pngquant of Debian makes the pictures small")?;
        bytes += std::fs::metadata(&to).with_context(|| format!("no {name}"))?.len();
    }
    ensure!(bytes <= BYTES_MAX, "{bytes} bytes of pictures; at most {BYTES_MAX} are kept: show fewer pages");
    std::fs::write(kept.join("README.md"), page(&names)).context("cannot write docs/screens/README.md")?;
    println!("{} pictures, {bytes} bytes: docs/screens", names.len());
    Ok(())
}

/// The names of the pictures in a folder, sorted.
fn pictures(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let name = entry.context("a folder of pictures")?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".png") {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// A row for each page, with the pictures by theme and width.
fn page(names: &[String]) -> String {
    let mut pages: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for name in names {
        let mut parts = name.trim_end_matches(".png").rsplitn(3, '-');
        if let (Some(width), Some(theme), Some(page)) = (parts.next(), parts.next(), parts.next()) {
            pages.entry(page).or_default().push((theme, width));
        }
    }
    let mut text = format!("{HEAD}\n| page | light | dark |\n| --- | --- | --- |\n");
    for (page, mut shown) in pages {
        shown.sort_by_key(|(_, width)| width.parse::<u32>().unwrap_or_default());
        let of = |wanted: &str| -> String {
            let links = shown.iter().filter(|(theme, _)| *theme == wanted);
            let link = |(theme, width): &(&str, &str)| format!("[{width}]({page}-{theme}-{width}.png)");
            links.map(link).collect::<Vec<_>>().join(" ")
        };
        let _ = writeln!(text, "| {page} | {} | {} |", of("light"), of("dark"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_a_row_with_its_pictures_from_narrow_to_wide() {
        let names = [
            "admin-hosts-one-dark-1440.png",
            "admin-hosts-one-dark-360.png",
            "admin-hosts-one-light-768.png",
        ];
        let text = page(&names.map(str::to_owned));
        assert!(text.ends_with(
            "| admin-hosts-one | [768](admin-hosts-one-light-768.png) | \
             [360](admin-hosts-one-dark-360.png) [1440](admin-hosts-one-dark-1440.png) |\n"
        ));
    }
}
