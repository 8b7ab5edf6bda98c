//! What a person may type for a recovery code.

use holdfast_recovery::RecoveryCode;
use holdfast_recovery::code::ReadError;
use holdfast_recovery::parse::{TYPED_BYTES_MAX, TypingError};

/// One input: what was typed.
///
/// # Panics
/// When a rule does not hold.
pub fn target(data: &[u8]) {
    let Ok(typed) = std::str::from_utf8(data) else { return };
    match RecoveryCode::read(typed) {
        Ok(code) => one_code(typed, &code),
        Err(ReadError::Typing(TypingError::Mismatch(mismatch))) => assert!(mismatch.repairs().len() <= 3),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn one_code(typed: &str, code: &RecoveryCode) {
    assert!(typed.len() <= TYPED_BYTES_MAX);
    let words: Vec<&str> = code.words().collect();
    let letters = |text: &str| {
        text.chars().filter(|c| c.is_alphabetic()).flat_map(char::to_lowercase).collect::<String>()
    };
    let mut typed: Vec<char> = letters(typed).chars().collect();
    let mut read: Vec<char> = letters(&words.concat()).chars().collect();
    (typed.sort_unstable(), read.sort_unstable());
    assert_eq!(typed, read, "letters were put in or left out");
    let passphrase = code.passphrase().expect("memory");
    assert_eq!(passphrase.as_text(), words.join(" "));
    assert!(RecoveryCode::read(passphrase.as_text()).is_ok_and(|again| again.words().eq(code.words())));
    for one in 0..words.len() {
        for other in one + 1..words.len() {
            let mut swapped = words.clone();
            swapped.swap(one, other);
            let taken = RecoveryCode::read(&swapped.join(" ")).is_ok();
            assert_eq!(taken, words[one] == words[other], "{} and {}", one + 1, other + 1);
        }
    }
}
