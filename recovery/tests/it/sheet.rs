//! Tests of the printed sheet, read back by stock programs.
//!
//! `pdftotext` reads its text, `pdftoppm` and `zbarimg` its QR codes; its commands are typed as printed.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::Path;
use std::process::Command;

use holdfast_protocol::escrow::by_hand::{self, GuestNumbers, OffSite, Step};
use holdfast_protocol::id::Vmid;
use holdfast_protocol::storage::Backend;
use holdfast_recovery::RecoveryCode;
use holdfast_recovery::escrow::{EscrowFile, Expected};
use holdfast_recovery::sheet::{Naming, Sheet, text};
use holdfast_recovery::word::WORD_LETTERS_MAX;
use holdfast_seal::backup_key::BackupKey;

use crate::fixtures::{code, context, escrow, guests, key, off_site, passphrase};
use crate::terminal::at_terminal;

/// Runs a program of Debian in a folder and gives what it printed.
fn run(folder: &Path, program: &str, arguments: &[&str]) -> String {
    #[expect(clippy::disallowed_methods, reason = "stock programs are the judges")]
    let output = Command::new(program).args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

struct Printed {
    folder: tempfile::TempDir,
    code: RecoveryCode,
    file: EscrowFile,
    pdf: Vec<u8>,
    plain: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Pages {
    Two,
    Four,
}

fn print(naming: Naming, pages: Pages) -> Printed {
    let (record, code, key) = (escrow().record(), code("abacus"), key(0));
    let (off_site, guests) = (off_site(), guests());
    let file = escrow().wrap(&code).unwrap();
    let four = pages == Pages::Four;
    let sheet = Sheet {
        record: &record,
        code: &code,
        naming,
        off_site: Some(&off_site),
        guests: &guests,
        wrapped: four.then_some(&file),
        bare: four.then_some(&key),
    };
    let pdf = sheet.to_pdf().unwrap().to_vec();
    let plain = sheet.to_text().unwrap().as_text().to_owned();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sheet.pdf"), &pdf).unwrap();
    Printed { folder, code, file, pdf, plain }
}

impl Printed {
    /// The text of a page, in the order in which it was drawn.
    fn text(&self, page: &str) -> String {
        run(self.folder.path(), "pdftotext", &["-raw", "-f", page, "-l", page, "sheet.pdf", "-"])
    }

    /// A picture of a page, as a printer or scanner would see it.
    fn picture(&self, page: &str) {
        let arguments = ["-r", "200", "-png", "-singlefile", "-f", page, "-l", page, "sheet.pdf", "page"];
        run(self.folder.path(), "pdftoppm", &arguments);
    }
}

/// Blanks and line ends are the layout's.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text and the commands of the manual steps, as they should be printed.
fn by_hand() -> Vec<Step> {
    by_hand::steps(Some(&off_site()), context().code, &guests())
}

fn sentences() -> Vec<String> {
    let steps = [text::steps_with(context().code), by_hand()].concat();
    let mut all: Vec<String> =
        steps.into_iter().flat_map(|step| [vec![step.says], step.commands].concat()).collect();
    all.extend(
        [text::TITLE, text::SUBTITLE, text::PURPOSE, text::TICK, text::ELEVENTH, text::FINGERPRINT]
            .map(str::to_owned),
    );
    all.extend(
        [text::WITH, text::WITHOUT, text::WITHOUT_SHORT, text::WARNING, text::WARNING_MORE]
            .map(str::to_owned),
    );
    all.extend([text::BACKUP_LOCATION, text::YEARLY].map(str::to_owned));
    all.extend(off_site().facts().into_iter().map(|(name, value)| format!("{name} {value}")));
    all
}

#[test]
fn everything_on_the_first_two_pages_is_read_back() {
    let printed = print(Naming::Named, Pages::Two);
    let text = printed.text("1") + &printed.text("2");
    let flat_text = flat(&text);
    for sentence in sentences() {
        assert!(flat_text.contains(&flat(&sentence)), "{sentence:?} is not in {flat_text}");
    }
    let words: Vec<&str> = printed.code.words().collect();
    let numbered: Vec<String> =
        words.iter().enumerate().map(|(at, word)| format!("{} {word}", at + 1)).collect();
    assert!(flat_text.contains(&numbered.join(" ")), "{flat_text}");
    let fingerprint = escrow().record().fingerprint;
    assert!(flat_text.replace(' ', "").contains(fingerprint.as_str()), "{flat_text}");
    for fact in ["Sheet number 2", "Date 2026-11-22", "Host box1", "Customer acme"] {
        assert!(flat_text.contains(fact), "{fact}");
    }
    for command in by_hand().into_iter().flat_map(|step| step.commands) {
        // How many blanks there are between two words, the reader of the page guesses.
        assert!(text.lines().any(|line| flat(line) == flat(&command)), "{command} is not on one line");
    }
    assert_eq!(
        run(printed.folder.path(), "pdfinfo", &["sheet.pdf"]).matches("595.28 x 841.89 pts (A4)").count(),
        1
    );
    let fonts = run(printed.folder.path(), "pdffonts", &["sheet.pdf"]);
    assert_eq!(fonts.matches(" yes no ").count(), 3, "all are embedded: {fonts}");
}

#[test]
fn words_copied_across_the_columns_are_read_in_order() {
    let printed = print(Naming::Named, Pages::Two);
    let laid_out = run(printed.folder.path(), "pdftotext", &["-layout", "sheet.pdf", "-"]);
    let begin = laid_out.find(text::TICK).unwrap() + text::TICK.len();
    let grid = &laid_out[begin..laid_out.find(text::WITH).unwrap()];
    let grid = grid.replace(text::ELEVENTH, "");
    // The sentence about the eleventh word is in the grid, and may take two lines of it.
    let words: Vec<&str> = printed.code.words().collect();
    let cells = grid.split_whitespace().filter(|cell| words.contains(cell) || cell.parse::<u8>().is_ok());
    let typed: Vec<&str> = cells.take(22).collect();
    let read = RecoveryCode::read(&typed.join(" ")).unwrap();
    assert_eq!(passphrase(&read), passphrase(&printed.code));
}

#[test]
fn the_text_sheet_equals_the_pdf_sheet() {
    let printed = print(Naming::Named, Pages::Four);
    let flat_text = flat(&printed.plain.replace("!!", " ")).replace(':', "");
    let caveats = [text::WRAPPED_CAVEAT, text::BARE_CAVEAT].map(str::to_owned);
    for sentence in sentences().into_iter().chain(caveats) {
        assert!(
            flat_text.contains(&flat(&sentence).replace(':', "")),
            "{sentence:?} is not in {}",
            printed.plain
        );
    }
    // A command is never broken into lines; the longest is the one that names the client's packages.
    assert!(printed.plain.lines().all(|line| line.chars().count() <= 150), "{}", printed.plain);
    assert!(printed.plain.contains(&printed.file.to_text()));
    let begin = printed.plain.find("  [ ] ").unwrap();
    let end = printed.plain.find(text::ELEVENTH).unwrap();
    let read = RecoveryCode::read(&printed.plain[begin..end]).unwrap();
    assert_eq!(passphrase(&read), passphrase(&printed.code));
}

#[test]
fn an_anonymous_sheet_has_no_names() {
    let printed = print(Naming::Anonymous, Pages::Four);
    let pages = ["1", "2", "3", "4"].map(|page| printed.text(page)).concat();
    let all = format!("{pages}{}", printed.plain);
    for name in
        ["box1", "acme", "018f3c1e", "Host", "Customer", "backup.example", "store1", "web-1", "20001", "off1"]
    {
        assert!(!all.contains(name), "{name}");
    }
    assert!(all.contains("abacus") && !String::from_utf8_lossy(&printed.pdf).contains("box1"));
}

#[test]
fn the_printed_commands_give_the_key_from_the_scanned_page() {
    let printed = print(Naming::Named, Pages::Four);
    let folder = printed.folder.path();
    let third = printed.text("3");
    assert!(flat(&third).contains(text::WRAPPED_CAVEAT), "{third}");
    assert!(third.contains(printed.file.to_text().trim_end()), "{third}");
    printed.picture("3");
    let scan = third.lines().find(|line| line.starts_with("zbarimg ")).unwrap().to_owned();
    let second = printed.text("2");
    let typed = ["umask ", "age ", "jq "].map(|program| {
        let line = second.lines().find(|line| line.starts_with(program));
        line.unwrap_or_else(|| panic!("{program} is not on the sheet: {second}")).to_owned()
    });
    let line = format!("{scan} 2>zbarimg.txt && {}", typed.join(" && "));
    let shown = at_terminal(folder, &line, &[("Enter passphrase: ", &passphrase(&printed.code))]);
    let scanned = EscrowFile::parse(&fs::read(folder.join("escrow-2.age")).unwrap()).unwrap();
    assert!(scanned == printed.file);
    let opened = scanned.open(&printed.code, Expected::Exactly(&escrow().record())).unwrap();
    let taken = BackupKey::parse(&fs::read(folder.join("key.json")).unwrap()).unwrap();
    assert_eq!(taken.to_json().unwrap().expose(), opened.key().to_json().unwrap().expose());
    assert!(shown.contains(key(0).fingerprint().as_str()), "{shown}");
}

#[test]
fn the_paper_key_is_read_back_by_eye_and_by_camera() {
    let printed = print(Naming::Named, Pages::Four);
    let text = printed.text("4");
    assert!(flat(&text).contains(text::BARE_CAVEAT), "{text}");
    let (begin, end) = (text.find('{').unwrap(), text.rfind('}').unwrap());
    let by_eye = BackupKey::parse(&text.as_bytes()[begin..=end]).unwrap();
    printed.picture("4");
    let by_camera =
        run(printed.folder.path(), "zbarimg", &["-q", "--raw", "-Sdisable", "-Sqrcode.enable", "page.png"]);
    let by_camera = BackupKey::parse(by_camera.as_bytes()).unwrap();
    for read in [by_eye, by_camera] {
        assert_eq!(read.to_json().unwrap().expose(), key(0).to_json().unwrap().expose());
    }
}

/// With the longest names and words, nothing leaves the page.
#[test]
fn the_widest_sheet_keeps_its_margins() {
    let (mut record, key) = (escrow().record(), key(0));
    record.context.host_name = "w".repeat(63).parse().unwrap();
    record.context.customer = "m".repeat(63).parse().unwrap();
    let code = code("abdominal");
    assert_eq!("abdominal".len(), WORD_LETTERS_MAX);
    let file = escrow().wrap(&code).unwrap();
    let backend: Backend =
        serde_json::from_value(serde_json::json!({ "pbs": { "server": vec!["s".repeat(50); 4].join("."),
        "datastore": "d".repeat(32), "namespace": vec!["n".repeat(31); 8].join("/"),
        "fingerprint": vec!["86"; 32].join(":"), "key": key.fingerprint() } }))
        .unwrap();
    let off_site = OffSite::of(&"t".repeat(32).parse().unwrap(), &backend, &record.context.customer).unwrap();
    let numbers = (0..20).map(|n| GuestNumbers {
        name: format!("{n}{}", "g".repeat(61)).parse().unwrap(),
        vmids: vec![Vmid::try_from(999_999_000 + n).unwrap(), Vmid::try_from(999_998_000 + n).unwrap()],
    });
    let guests: Vec<GuestNumbers> = numbers.collect();
    let sheet = Sheet {
        record: &record,
        code: &code,
        naming: Naming::Named,
        off_site: Some(&off_site),
        guests: &guests,
        wrapped: Some(&file),
        bare: Some(&key),
    };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sheet.pdf"), &*sheet.to_pdf().unwrap()).unwrap();
    let boxes = run(folder.path(), "pdftotext", &["-bbox", "sheet.pdf", "-"]);
    let edge = |line: &str, name: &str| -> f32 {
        let (_, after) = line.split_once(&format!("{name}=\"")).unwrap();
        after.split('"').next().unwrap().parse().unwrap()
    };
    let words: Vec<&str> = boxes.lines().filter(|line| line.contains("<word ")).collect();
    assert!(words.len() > 300 && boxes.contains(&"w".repeat(63)));
    for word in words {
        assert!(edge(word, "xMin") > 45.0 && edge(word, "xMax") < 550.0, "{word}");
        assert!(edge(word, "yMin") > 40.0 && edge(word, "yMax") < 802.0, "{word}");
    }
}
