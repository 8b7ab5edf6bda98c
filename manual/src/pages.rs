//! Man pages of a program and its visible commands.

use std::fmt;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::Man;

/// A section of the manual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Commands that anybody may run.
    User,
    /// Daemons, and commands of the administrator.
    Administration,
}

impl Section {
    const fn number(self) -> &'static str {
        match self {
            Self::User => "1",
            Self::Administration => "8",
        }
    }
}

/// A page that could not be written.
#[derive(Debug)]
pub struct PagesError {
    path: PathBuf,
    source: std::io::Error,
}

impl fmt::Display for PagesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the page {} cannot be written: give a folder that you may write to", self.path.display())
    }
}

impl std::error::Error for PagesError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Writes the pages of a command and of all below it, and gives their names.
///
/// # Errors
/// [`PagesError`], with the pages before it written.
pub fn write_pages(
    command: &mut Command,
    section: Section,
    folder: &Path,
) -> Result<Vec<String>, PagesError> {
    command.build();
    let mut written = Vec::new();
    page(command, section, folder, &mut written)?;
    Ok(written)
}

fn page(
    command: &Command,
    section: Section,
    folder: &Path,
    written: &mut Vec<String>,
) -> Result<(), PagesError> {
    // `build` gave each command the name that its whole path makes: `agentd-audit-verify`.
    let title = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let name = format!("{title}.{}", section.number());
    let path = folder.join(&name);
    let failed = |source| PagesError { path: path.clone(), source };
    let mut text = Vec::new();
    let man = Man::new(command.clone().disable_help_subcommand(true)).section(section.number());
    man.render(&mut text).map_err(failed)?;
    std::fs::write(&path, text).map_err(failed)?;
    written.push(name);
    let visible =
        command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help");
    visible.into_iter().try_for_each(|below| page(below, section, folder, written))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> Command {
        let verify = Command::new("verify").about("Hold it to its hashes");
        let audit = Command::new("audit").about("The chain").subcommand(verify);
        let secret = Command::new("secret").about("Not shown").hide(true);
        Command::new("prog").about("Does things").version("1.2").subcommand(audit).subcommand(secret)
    }

    #[test]
    fn each_visible_command_has_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let written = write_pages(&mut program(), Section::Administration, folder.path()).unwrap();
        assert_eq!(written, ["prog.8", "prog-audit.8", "prog-audit-verify.8"]);
        let page = std::fs::read_to_string(folder.path().join("prog-audit-verify.8")).unwrap();
        assert!(page.contains("Hold it to its hashes"), "{page}");
        assert!(
            page.contains(".TH prog\\-audit\\-verify 8") || page.contains(".TH prog-audit-verify 8"),
            "{page}"
        );
    }

    #[test]
    fn a_missing_folder_is_named() {
        let nowhere = tempfile::tempdir().unwrap().path().join("gone");
        let error = write_pages(&mut program(), Section::User, &nowhere).unwrap_err();
        assert!(error.to_string().contains("gone/prog.1"), "{error}");
    }
}
