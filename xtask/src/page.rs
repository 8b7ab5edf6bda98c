//! Pages of `docs/` that are written by section.

/// The text under a heading, such as `\n## The plan\n`, up to the next heading of its level.
pub fn section<'a>(page: &'a str, heading: &str) -> Option<&'a str> {
    let (_, after) = page.split_once(heading)?;
    Some(after.split_once("\n## ").map_or(after, |(body, _)| body))
}

/// The page with another text under a heading; a heading that is not there comes last.
pub fn with_section(page: &str, heading: &str, body: &str) -> String {
    let Some((before, after)) = page.split_once(heading) else {
        return format!("{}\n{heading}{body}", page.trim_end());
    };
    let rest = after.split_once("\n## ").map_or_else(String::new, |(_, rest)| format!("\n## {rest}"));
    format!("{before}{heading}{body}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Page\n\n## One\n\n| x |\n\n## Two\n\n| y |\n";

    #[test]
    fn a_section_ends_where_the_next_begins() {
        assert_eq!(section(PAGE, "\n## One\n"), Some("\n| x |\n"));
        assert_eq!(section(PAGE, "\n## Two\n"), Some("\n| y |\n"));
        assert_eq!(section(PAGE, "\n## Three\n"), None);
    }

    #[test]
    fn one_section_is_replaced_and_the_others_are_kept() {
        assert_eq!(
            with_section(PAGE, "\n## One\n", "\nnew\n"),
            "# Page\n\n## One\n\nnew\n\n## Two\n\n| y |\n"
        );
        let more = with_section(PAGE, "\n## Three\n", "\nnew\n");
        assert_eq!(section(&more, "\n## Two\n"), Some("\n| y |\n"));
        assert_eq!(section(&more, "\n## Three\n"), Some("\nnew\n"));
    }
}
