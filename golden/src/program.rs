//! External programs: mmdebstrap, ldd, busybox.
//!
//! Each runs to its end; the end of its output is put into the error.

use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};

/// How much of the end of a program's output is kept for people.
const WORDS_BYTES: usize = 2000;

/// A program by name or path.
pub fn program(name: impl AsRef<std::ffi::OsStr>) -> Command {
    #[expect(clippy::disallowed_methods, reason = "mmdebstrap, ldd and busybox make what is packed here")]
    Command::new(name)
}

/// Runs it to its end; nothing of what it says reaches our own output.
pub fn run_to_end(command: &mut Command) -> Result<Output> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {name}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let mut from = said.len().saturating_sub(WORDS_BYTES);
        while !said.is_char_boundary(from) {
            from += 1;
        }
        bail!("{name} ended with {}: {}", output.status, said.get(from..).unwrap_or_default().trim());
    }
    Ok(output)
}
