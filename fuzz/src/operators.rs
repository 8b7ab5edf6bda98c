//! Fuzzed operators files.

use std::collections::BTreeSet;

use holdfast_trust::operators::{OperatorsError, SigningRight};
use holdfast_trust::signature::Namespace;
use holdfast_trust::{OperatorKey, Operators};
use jiff::Timestamp;

/// One input.
///
/// # Panics
/// When a rule does not hold.
pub fn target(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let operators = match Operators::parse(text) {
        Ok(operators) => operators,
        Err(OperatorsError::Line { line, .. }) => {
            return assert!(line >= 1 && line <= text.lines().count(), "line {line} is none");
        }
        Err(_) => return,
    };
    let holders: Vec<_> =
        operators.holders().map(|(name, print)| (name.as_str().to_owned(), print)).collect();
    assert_eq!(holders.len(), lines().count(), "a line is lost or made up");
    let keys: BTreeSet<&String> = holders.iter().map(|(_, print)| print).collect();
    assert_eq!(keys.len(), holders.len(), "a key stands twice");
    assert!((1..=holders.len()).contains(&operators.operators()));
    for (line, (name, print)) in lines().zip(&holders) {
        assert_eq!(line.split_whitespace().next(), Some(name.as_str()), "another name than its line's");
        one(&operators, line, name, print);
    }
    let again = text.lines().map(|line| format!("  {line}\r\n")).collect::<String>();
    if again.len() <= holdfast_trust::operators::BYTES_MAX {
        assert_eq!(Operators::parse(&again).expect("with other spaces"), operators);
        let twice = format!("{text}\n{}", lines().next_back().unwrap_or_default());
        assert!(Operators::parse(&twice).is_err(), "a key twice");
    }
}

/// The key of a line is its holder's, within its time and for its purpose.
fn one(operators: &Operators, line: &str, name: &str, print: &str) {
    let words: Vec<&str> = line.split_whitespace().collect();
    // Text within quotes is not a key.
    let unquoted: String = line.split('"').step_by(2).collect();
    let key = unquoted.split_whitespace().collect::<Vec<_>>().windows(2).find_map(|pair| match pair {
        [
            kind @ ("ssh-ed25519" | "sk-ssh-ed25519@openssh.com" | "sk-ecdsa-sha2-nistp256@openssh.com"),
            key,
        ] => OperatorKey::from_openssh(&format!("{kind} {key}")).ok(),
        _ => None,
    });
    let key = key.expect("a line holds a key");
    assert_eq!(key.fingerprint(), print);
    let bound = line.contains("valid-") || line.contains("namespaces");
    for at in [Timestamp::MIN, Timestamp::UNIX_EPOCH, Timestamp::MAX] {
        match operators.right(&key, Namespace::Job, at) {
            SigningRight::May(who) => assert_eq!(who.as_str(), name),
            SigningRight::MayNot(who) => assert!(who.as_str() == name && bound, "nothing bounds it"),
            SigningRight::Unknown => panic!("a key that is listed is unknown"),
        }
    }
    // Text after the key is a comment, whatever it says.
    if words.get(1) == Some(&"namespaces=\"git\"") {
        let status = operators.right(&key, Namespace::Job, Timestamp::UNIX_EPOCH);
        assert!(matches!(status, SigningRight::MayNot(_)), "a key for something else may sign jobs");
    }
}
