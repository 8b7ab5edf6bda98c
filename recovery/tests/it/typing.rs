//! Tests of typing errors: detected or accepted, exhaustively.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::collections::BTreeSet;

use holdfast_recovery::checksum::{DRAWN, PLACES};
use holdfast_recovery::code::ReadError;
use holdfast_recovery::parse::TypingError;
use holdfast_recovery::suggest::Repair;
use holdfast_recovery::word::{WORDS, Word};
use holdfast_recovery::{Locked, RecoveryCode};

use crate::fixtures::escrow;

const CODES: usize = 1000;

/// Numbers that are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        // A step of SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % u64::try_from(below).unwrap()).unwrap()
    }

    fn word(&mut self) -> Word {
        Word::numbered(u16::try_from(self.next(usize::from(WORDS))).unwrap()).unwrap()
    }

    fn code(&mut self) -> RecoveryCode {
        RecoveryCode::of(&[(); DRAWN].map(|()| self.word())).unwrap()
    }
}

fn words(code: &RecoveryCode) -> Vec<&'static str> {
    code.words().collect()
}

fn refusal(words: &[&str]) -> TypingError {
    match RecoveryCode::read(&words.join(" ")) {
        Err(ReadError::Typing(error)) => error,
        other => panic!("{other:?} for {words:?}"),
    }
}

fn repairs(words: &[&str]) -> Vec<Repair> {
    match refusal(words) {
        TypingError::Mismatch(mismatch) => mismatch.repairs(),
        other => panic!("{other:?} for {words:?}"),
    }
}

#[test]
fn any_two_swapped_words_are_detected_and_named() {
    let mut numbers = Numbers(1);
    for _ in 0..CODES {
        let code = words(&numbers.code());
        for one in 0..PLACES {
            for other in one + 1..PLACES {
                if code[one] == code[other] {
                    continue;
                }
                let mut typed = code.clone();
                typed.swap(one, other);
                if other > one + 1 && numbers.next(10) > 0 {
                    // Detected all the same; the repair is worked out for neighbours and a tenth of the others.
                    assert!(matches!(refusal(&typed), TypingError::Mismatch(_)));
                    continue;
                }
                let named = repairs(&typed).iter().any(|repair| match repair {
                    Repair::Swap(a, b) => (a.number(), b.number()) == (one + 1, other + 1),
                    Repair::Replace(..) => false,
                });
                assert!(named, "{} and {}", one + 1, other + 1);
            }
        }
    }
}

#[test]
fn any_single_wrong_word_is_detected() {
    let mut numbers = Numbers(2);
    for _ in 0..CODES {
        let code = words(&numbers.code());
        for at in 0..PLACES {
            for _ in 0..20 {
                let mut typed = code.clone();
                typed[at] = numbers.word().as_str();
                if typed[at] != code[at] {
                    assert!(matches!(refusal(&typed), TypingError::Mismatch(_)));
                }
            }
        }
    }
}

#[test]
fn every_wrong_word_is_detected_at_every_position() {
    let code = words(&Numbers(3).code());
    for at in 0..PLACES {
        let mut taken = 0;
        for word in Word::all() {
            let mut typed = code.clone();
            typed[at] = word.as_str();
            taken += usize::from(RecoveryCode::read(&typed.join(" ")).is_ok());
        }
        assert_eq!(taken, 1, "place {}", at + 1);
    }
}

#[test]
fn a_misread_word_is_suggested() {
    let mut numbers = Numbers(4);
    let mut guessed = 0;
    for _ in 0..CODES {
        let code = words(&numbers.code());
        let at = numbers.next(PLACES);
        let all: Vec<Word> = Word::all().collect();
        let Some(near) = all.iter().map(|word| word.as_str()).find(|word| {
            *word != code[at]
                && word.len() == code[at].len()
                && word.chars().zip(code[at].chars()).filter(|(a, b)| a != b).count() == 1
        }) else {
            continue;
        };
        let mut typed = code.clone();
        typed[at] = near;
        let right = repairs(&typed).iter().any(|repair| match repair {
            Repair::Replace(position, word) => (position.number(), word.as_str()) == (at + 1, code[at]),
            Repair::Swap(..) => false,
        });
        assert!(right, "{near} for {}", code[at]);
        guessed += 1;
    }
    assert!(guessed > CODES / 10, "{guessed} words have a neighbour");
}

/// The sheet promises that a wrong word is named by its place. For a wrong word of the list only the file or the code
/// can do that.
#[test]
fn one_wrong_listed_word_is_named_by_position() {
    let mut numbers = Numbers(8);
    let code = numbers.code();
    let file = escrow().wrap(&code).unwrap();
    let right = words(&code);
    for at in [0, 4, PLACES - 1] {
        let mut typed = right.clone();
        while typed[at] == right[at] {
            typed[at] = numbers.word().as_str();
        }
        let TypingError::Mismatch(mismatch) = refusal(&typed) else { panic!("it is told") };
        assert_eq!(file.wrong_position(&mismatch).unwrap().number(), at + 1);
        assert_eq!(code.wrong_position(&mismatch).unwrap().number(), at + 1);
    }
    let mut typed = right.clone();
    typed.swap(2, 7);
    let TypingError::Mismatch(two) = refusal(&typed) else { panic!("it is told") };
    assert!(file.wrong_position(&two).is_none() && code.wrong_position(&two).is_none(), "two are wrong");
}

#[test]
fn harmless_differences_are_accepted() {
    let mut numbers = Numbers(5);
    for _ in 0..CODES {
        let code = words(&numbers.code());
        let lines: Vec<String> =
            code.iter().enumerate().map(|(at, word)| format!("{}. {word}", at + 1)).collect();
        let across: Vec<String> =
            (0..6).flat_map(|row| [row, row + 6]).filter_map(|at| lines.get(at).cloned()).collect();
        let spellings = [
            code.join(" "),
            code.join("-"),
            code.concat().replace('-', ""),
            format!("  {}\r\n\t", code.join("  ,  ")).to_uppercase(),
            lines.join("\n"),
            lines.join(" ").replace(". ", ") "),
            across.join("\n"),
            code.iter().map(|word| format!("{} {}", &word[..2], &word[2..])).collect::<Vec<_>>().join("\n"),
        ];
        let torn = spellings.len() - 1;
        for (at, typed) in spellings.iter().enumerate() {
            match RecoveryCode::read(typed) {
                Ok(read) => assert!(words(&read) == code, "{typed}"),
                // Both halves may be words, or the same letters be two words: then it is reported, never taken for
                // another.
                Err(ReadError::Typing(_))
                    if at == torn || code.iter().any(|word| word.replace('-', "") == "yoyo") => {}
                Err(error) => panic!("{error} for {typed}"),
            }
        }
    }
}

#[test]
fn a_word_with_a_dash_is_read_with_and_without() {
    for dashed in ["drop-down", "felt-tip", "t-shirt", "yo-yo"] {
        let mut drawn = [Word::spelt("abacus").unwrap(); DRAWN];
        drawn[3] = Word::spelt(dashed).unwrap();
        let code = RecoveryCode::of(&drawn).unwrap();
        let plain = words(&code).join(" ");
        for typed in [plain.clone(), plain.replace('-', " "), plain.replace(' ', "-")] {
            assert!(words(&RecoveryCode::read(&typed).unwrap()) == words(&code), "{typed}");
        }
    }
}

#[test]
fn an_unknown_word_is_named_by_position_with_suggestions() {
    let mut code = words(&Numbers(6).code());
    code[3] = "abakus";
    code[8] = "zyoology";
    let error = refusal(&code);
    assert_eq!(error.to_string(), "words 4 and 9 are not in the list of words: type them as on the sheet");
    assert!(!format!("{error:?} {error}").contains("abacus"), "no log shows it");
    let TypingError::Unknown(slips) = error else { panic!("{error}") };
    let suggestions: Vec<(usize, Option<&str>)> =
        slips.iter().map(|slip| (slip.position.number(), slip.suggestions().next())).collect();
    assert_eq!(suggestions, [(4, Some("abacus")), (9, Some("zoology"))]);
}

#[test]
fn too_few_too_many_and_far_too_many_are_counted() {
    let code = words(&Numbers(7).code());
    assert!(matches!(refusal(&code[..10]), TypingError::Count(10)));
    assert!(matches!(refusal(&[&code[..], &code[..1]].concat()), TypingError::Count(12)));
    assert!(matches!(refusal(&[]), TypingError::Count(0)));
    assert!(matches!(refusal(&[&"x ".repeat(500)]), TypingError::Count(500)));
    assert!(matches!(refusal(&[&"x".repeat(2000)]), TypingError::TooLong(2000)));
}

#[test]
fn codes_are_drawn_from_the_whole_list() {
    let made: Vec<RecoveryCode> = (0..100).map(|_| RecoveryCode::generate().unwrap()).collect();
    let drawn: BTreeSet<&str> = made.iter().flat_map(|code| code.words().take(DRAWN)).collect();
    // Of 1,000 draws from 7,776 some 62 come twice; 200 would be eighteen standard deviations off.
    assert!(drawn.len() > 800, "{} different words", drawn.len());
    assert!(drawn.iter().any(|word| *word < "c") && drawn.iter().any(|word| *word > "w"));
    for code in made {
        let passphrase: Locked = code.passphrase().unwrap();
        assert_eq!(passphrase.as_text(), words(&code).join(" "));
        assert!(words(&RecoveryCode::read(passphrase.as_text()).unwrap()) == words(&code));
        assert_eq!(format!("{code:?} {passphrase:?}"), "RecoveryCode(…) Locked(…)");
    }
}
