//! The codes and commands of the runbook, and the commands of remedies.
//!
//! In: `docs/runbook.md`, the table of conditions, and the help of `holdfast` as its snapshot has it. Out: one breach per code
//! of the programs that no row begins with, per row of another code, per code with two rows, and per command of `holdfast`
//! that does not exist.

use std::collections::BTreeSet;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::condition::ConditionCode;

use super::{Breach, Source};

const PAGE: &str = "docs/runbook.md";
const HELP: &str = "operator/src/snapshots/holdfast__args__tests__the_help_of_every_command.snap";

/// Checks the page.
pub fn check(sources: &[Source]) -> Vec<Breach> {
    let text =
        |path: &str| sources.iter().find(|source| source.path == path).map(|source| source.text.as_str());
    let (Some(page), Some(help)) = (text(PAGE), text(HELP)) else {
        return vec![Breach::new(PAGE, format!("the page, or {HELP}, is missing"))];
    };
    let mut breaches = codes(page);
    for (line, text) in (1..).zip(page.lines()) {
        breaches.extend(commands(&format!("{PAGE}:{line}"), text, help));
    }
    for spec in ConditionCode::table() {
        breaches.extend(commands(&format!("the remedy of {}", spec.code), spec.remedy, help));
    }
    breaches
}

fn codes(page: &str) -> Vec<Breach> {
    let known: BTreeSet<&str> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    let mut rows = BTreeSet::new();
    let mut breaches = Vec::new();
    for (line, text) in (1..).zip(page.lines()) {
        let Some(code) = text.strip_prefix("| `").and_then(|rest| rest.split('`').next()) else { continue };
        let place = format!("{PAGE}:{line}");
        if !known.contains(code) {
            breaches.push(Breach::new(place, format!("no program prints `{code}`: take the row away")));
        } else if !rows.insert(code) {
            breaches.push(Breach::new(place, format!("`{code}` has two rows: keep one")));
        }
    }
    let missing = known.difference(&rows);
    breaches.extend(missing.map(|code| Breach::new(PAGE, format!("`{code}` has no row: add one"))));
    breaches
}

fn commands(place: &str, text: &str, help: &str) -> Vec<Breach> {
    let known: BTreeSet<&str> = help.lines().filter_map(|line| line.strip_prefix("# holdfast ")).collect();
    // What is in backticks is every second part.
    let quoted = text.split('`').skip(1).step_by(2).filter_map(|part| part.strip_prefix("holdfast "));
    let is_unknown = |command: &&str| {
        let is_word = |word: &&str| word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-');
        let words: Vec<&str> =
            command.split(' ').take_while(is_word).take_while(|word| !word.starts_with('-')).collect();
        !known.contains(words.join(" ").as_str())
    };
    let breach = |command| Breach::new(place, format!("there is no command `holdfast {command}`"));
    quoted.filter(is_unknown).map(breach).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP_TEXT: &str = "# holdfast\n# holdfast host\n# holdfast host show\n# holdfast sign\n";

    #[test]
    fn missing_unknown_and_doubled_codes_are_breaches() {
        let page: String =
            ErrorCode::ALL.iter().skip(1).map(|code| format!("| `{}` | x |\n", code.as_str())).collect();
        let page = page + "| `NO_SUCH` | x |\n| `BUSY` | x |\n";
        let says: Vec<String> = codes(&page).into_iter().map(|breach| breach.says).collect();
        assert_eq!(says.len(), 3, "{says:?}");
        assert!(says.iter().any(|says| says.contains("NO_SUCH")));
        assert!(says.iter().any(|says| says.contains("`BUSY` has two rows")));
        let first = ErrorCode::ALL.first().unwrap().as_str();
        assert!(says.iter().any(|says| says.contains(first) && says.contains("no row")));
    }

    #[test]
    fn a_command_that_does_not_exist_is_a_breach() {
        let page = "Begin with `holdfast host show HOST`, `agentd status`, `holdfast sign --also`, `holdfast host shew`.";
        let says: Vec<String> =
            commands("a page", page, HELP_TEXT).into_iter().map(|breach| breach.says).collect();
        assert_eq!(says, ["there is no command `holdfast host shew`"]);
    }
}
