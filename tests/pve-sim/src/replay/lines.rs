//! Log lines and messages without what changes from run to run.
//!
//! In: a line. Out: its lasting form, or nothing when no client reads it (statistics of rsync, output of filesystem tools on a live disk,
//! complaints about programs that the recorder's machine lacked).
use regex::Regex;

/// The compiled rules.
#[derive(Debug)]
pub struct Lines {
    rules: Vec<(Regex, &'static str)>,
    dropped: Vec<Regex>,
}

/// A replacement: pattern and stand-in.
const RULES: &[(&str, &str)] = &[
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uuid>"),
    (r"UPID:\w+:[0-9A-F]{8,}:[0-9A-F]{8,}:[0-9A-F]{8}:", "UPID:<new>:"),
    (r"(BC:24:11|bc:24:11)(:[0-9A-Fa-f]{2}){3}", "<mac>"),
    (r"Total bytes (read|written): \d+ \([^)]*\)", "Total bytes $1: <n>"),
    (r"archive file size: \d+[KMG]?B", "archive file size: <n>"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "<time>"),
    (r"vzdump-lxc-(\d+)-\d{4}_\d\d_\d\d-\d\d_\d\d_\d\d", "vzdump-lxc-$1-<time>"),
    (r"\(\d\d:\d\d:\d\d\)", "(<span>)"),
    (r"guest is online again after (<1|\d+) seconds?", "guest is online again after <n> seconds"),
    (r"transferred [\d.]+[KMG]? ?(bytes|B)? in \d+s", "transferred <n> in <n>s"),
    (r"transferred [\d.]+[KMG]? bytes in \d+s", "transferred <n> in <n>s"),
    (r"/proc/\d+/root", "/proc/<pid>/root"),
    (r": \d+/(\d+) files \([\d.]+% non-contiguous\), \d+/(\d+) blocks", ": <n>/$1 files, <n>/$2 blocks"),
    (r"vzdumptmp\d+_", "vzdumptmp<pid>_"),
    (r"--backup-time \d+", "--backup-time <time>"),
    (r"--keyfd=\d+", "--keyfd=<n>"),
    (r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}", "<time>"),
    (
        r"had to backup [\d.]+ [KMG]?i?B of [\d.]+ [KMG]?i?B \(compressed [\d.]+ [KMG]?i?B\) in [\d.]+ s \(average [\d.]+ [KMG]?i?B/s\)",
        "had to backup <n>",
    ),
    (r"Uploaded backup catalog \([\d.]+ [KMG]?i?B\)", "Uploaded backup catalog (<n>)"),
    (r"Duration: [\d.]+s$", "Duration: <span>"),
    (r#"/\.copy-volume-1/[^"]*"#, "/.copy-volume-1/<file>"),
    (r"Perl\S* line \d+|\.pm line \d+", "<perl line>"),
];

/// What no client reads.
const DROPPED: &[&str] = &[
    r"^Number of ",
    r"^Total (file|transferred file) size",
    r"^Total bytes (sent|received)",
    r"^(Literal|Matched) data",
    r"^File list ",
    r"^sent [\d,]+ bytes",
    r"^total size is",
    r"^\s*$",
    r#"Can't exec "fuser""#,
    r"^resize2fs: Permission denied",
    r"^Filesystem at /dev/loop",
    r"^old_desc_blocks",
    r"^Failed to update the container's filesystem",
    r"^The filesystem on /dev/loop",
    r"^resize2fs 1\.",
    r"^failed to change apparmor",
    r"^Pass \d:",
    r"^e2fsck ",
    r"^The filesystem on ",
    r"^Resizing the filesystem on ",
    r"\d+/\d+ files",
    r"^INFO: notified via target",
    r"^trying to acquire lock",
    r"^ OK$",
    r"^lxc-checkpoint: ",
    // Of a group's chunks that the server had already: every upload is whole here.
    r"backup was done incrementally, reused ",
];

impl Lines {
    /// Compiles the rules.
    ///
    /// # Errors
    /// When a rule does not compile.
    pub fn new() -> Result<Self, regex::Error> {
        let rules = RULES
            .iter()
            .map(|(pattern, with)| Regex::new(pattern).map(|regex| (regex, *with)))
            .collect::<Result<_, _>>()?;
        let dropped = DROPPED.iter().map(|pattern| Regex::new(pattern)).collect::<Result<_, _>>()?;
        Ok(Self { rules, dropped })
    }

    /// A text without what changes.
    #[must_use]
    pub fn lasting(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for (regex, with) in &self.rules {
            out = regex.replace_all(&out, *with).into_owned();
        }
        sorted_options(&out)
    }

    /// A log without the parts that change from run to run and the lines that are not compared.
    #[must_use]
    pub fn log(&self, lines: &[String]) -> Vec<String> {
        let read = lines.iter().filter(|line| !self.dropped.iter().any(|regex| regex.is_match(line)));
        let mut lasting: Vec<String> = read.map(|line| self.lasting(line)).collect();
        // A program that reads a cut archive complains once or twice, as its reader's end comes.
        lasting.dedup_by(|a, b| a == b && a.contains("premature end"));
        lasting
    }
}

/// The real code prints the options of a backup job in the order of a hash.
fn sorted_options(line: &str) -> String {
    let Some((head, rest)) =
        line.split_once(" --").filter(|(head, _)| head.contains("starting new backup job"))
    else {
        return line.to_owned();
    };
    let mut options: Vec<&str> = rest.split(" --").collect();
    options.sort_unstable();
    format!("{head} --{}", options.join(" --"))
}
