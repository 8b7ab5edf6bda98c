//! Fuzzed policies.

use std::collections::BTreeSet;

use holdfast_protocol::job::Verb;
use holdfast_trust::policy::Rule;
use holdfast_trust::{Operators, Policy};

use crate::signer::Signer;

/// One input.
///
/// # Panics
/// When a rule does not hold.
pub fn target(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let file =
        [Signer::new(1).line("alice"), Signer::new(2).line("alice"), Signer::new(3).line("bob")].join("\n");
    let operators = Operators::parse(&file).expect("a file");
    let policy = match Policy::parse(text, &operators) {
        Ok(policy) => policy,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let names: BTreeSet<_> = operators.holders().map(|(name, _)| name.clone()).collect();
    let table: toml::Table = text.parse().expect("it is TOML");
    assert_eq!(table.get("version").and_then(toml::Value::as_integer), Some(i64::from(policy.version)));
    let named = table.get("verbs").and_then(toml::Value::as_table);
    for verb in Verb::ALL {
        let rule = policy.rule(*verb);
        let operators = if rule.signers.is_empty() { names.len() } else { rule.signers.len() };
        assert!((1..=operators).contains(&usize::from(rule.signatures)), "{verb:?} {rule:?}");
        assert!(rule.signers.is_subset(&names));
        if named.is_none_or(|named| !named.contains_key(verb.as_str())) {
            assert_eq!(rule, Rule::first(*verb));
        }
    }
    assert_eq!(Policy::parse(text, &operators).expect("again"), policy);
}
