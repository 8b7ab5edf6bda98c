//! The process that serves the simulated disk, and its client.
//!
//! In: a folder, and the change before which the power is lost. Out: whether it is lost, and what is found. The kernel
//! may wait for the disk while it holds the memory map of the process that uses it. So the disk is served by a process
//! of its own: this program, started again with [`WORD`]. It ends with its standard input.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};

use rustix::mount::{UnmountFlags, unmount};

use power_disk::disk::Disk;
use power_disk::fate::Fate;
use power_disk::mount::mount;

/// The argument that makes this program serve a disk.
pub const WORD: &str = "power-disk";

/// A served disk.
#[derive(Debug)]
pub struct Served {
    talk: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
    child: Mutex<Child>,
    path: PathBuf,
}

/// Whether the power is there, and how many changes and syncs there were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Power {
    /// Whether it is gone.
    pub cut: bool,
    /// Changes and syncs so far.
    pub changes: u64,
}

impl Served {
    /// Shows the contents of a folder in that folder, on a disk that loses its power before this change.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the harness starts itself, to serve the disk")]
    pub fn at(path: &Path, cut_at: u64) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg(WORD)
            .arg(path)
            .arg(cut_at.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let talk = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let served = Self { talk: Mutex::new(talk), child: Mutex::new(child), path: path.to_owned() };
        let answer = served.hear();
        assert_eq!(answer, "ready", "no disk could be mounted at {}: run this as root", path.display());
        served
    }

    fn hear(&self) -> String {
        let mut line = String::new();
        self.talk.lock().unwrap().1.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn ask(&self, question: &str) -> String {
        self.talk.lock().unwrap().0.write_all(format!("{question}\n").as_bytes()).unwrap();
        self.hear()
    }

    /// Whether the power is there.
    #[must_use]
    pub fn power(&self) -> Power {
        let answer = self.ask("power");
        let (state, changes) = answer.split_once(' ').unwrap();
        Power { cut: state == "cut", changes: changes.parse().unwrap() }
    }

    /// Whether the power is gone.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.power().cut
    }

    /// Writes into an empty folder what is found after the power came back.
    pub fn found(&self, fate: Fate, into: &Path) {
        assert_eq!(self.ask(&format!("found {fate} {}", into.display())), "done");
    }

    /// Unmounts the disk from its folder. A process with files open there keeps them until this is dropped.
    pub fn take_out(&self) {
        unmount(&self.path, UnmountFlags::DETACH).unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It is gone already where it was taken out.
        let _ = unmount(&self.path, UnmountFlags::DETACH);
        let mut child = self.child.lock().unwrap();
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Serves a disk until standard input ends. Returns why it could not.
///
/// # Errors
/// The kernel's error for the mount.
pub fn serve(path: &Path, cut_at: u64) -> std::io::Result<()> {
    let disk = Arc::new(Disk::holding(path, cut_at));
    let session = mount(path, Arc::clone(&disk))?;
    let mut out = std::io::stdout();
    writeln!(out, "ready")?;
    for line in std::io::stdin().lines() {
        let line = line?;
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("found", rest) => {
                let (fate, into) = rest.split_once(' ').unwrap();
                Fate::parse(fate).unwrap().found(&disk, Path::new(into));
                writeln!(out, "done")?;
            }
            _ => writeln!(out, "{} {}", if disk.is_cut() { "cut" } else { "on" }, disk.changes())?,
        }
    }
    drop(session);
    Ok(())
}
