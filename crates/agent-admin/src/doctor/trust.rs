//! The check of the operators file and policy.
//!
//! Input: the settings, the files, and the texts that the running agent uses. Output: one check.

use holdfast_protocol::audit::hex;
use holdfast_protocol::json::chain;
use holdfast_protocol::report::TrustSection;
use holdfast_trust::{Operators, Policy};
use sha2::{Digest, Sha256};

use super::row::{Check, State};
use crate::port::admin_socket;
use crate::port::store::roster::RosterTexts;
use crate::port::trust_files;
use crate::settings::Settings;

const NAME: &str = "operators and policy";

/// Reads the files, and asks the running agent.
#[must_use]
pub fn files(settings: &Settings) -> Check {
    let (operators, policy) = (&settings.trust.operators, &settings.trust.policy);
    let said = admin_socket::ask(&settings.state.dir);
    let used = said.as_ref().ok().and_then(|status| status.sections.trust.as_ref());
    match trust_files::laid_down(operators, policy) {
        Ok(Some(texts)) => match (read(&texts), used) {
            (Err(why), _) => Check::new(State::Failed, NAME, why),
            (Ok(what), Some(used)) => compared(&texts, &what, used),
            (Ok(what), None) => {
                let why = said
                    .as_ref()
                    .err()
                    .map_or_else(|| "it says nothing of them".to_owned(), |why| chain(why));
                Check::new(
                    State::Unknown,
                    NAME,
                    format!("{what}; whether they are in use is not known: {why}"),
                )
            }
        },
        Ok(None) => no_one(used),
        Err(error) => {
            let mend = [operators, policy].into_iter().filter(|path| path.exists());
            let mend = mend.map(|path| format!("chown root:root {0}; chmod 0644 {0}", path.display()));
            Check { mend: mend.collect(), ..Check::new(State::Failed, NAME, chain(&error)) }
        }
    }
}

fn no_one(used: Option<&TrustSection>) -> Check {
    match used.and_then(|used| used.operators.as_ref()) {
        Some(sha) => Check::new(
            State::Good,
            NAME,
            format!("none lie here; those in use (sha256 {sha}) were signed for"),
        ),
        None => Check::new(State::Good, NAME, "none are laid down: nobody may sign for this box"),
    }
}

fn read(texts: &RosterTexts) -> Result<String, String> {
    let operators = Operators::parse(&texts.operators).map_err(|error| chain(&error))?;
    let version = match texts.policy.as_str() {
        "" => 0,
        text => Policy::parse(text, &operators).map_err(|error| chain(&error))?.version,
    };
    let keys = operators.holders().count();
    Ok(format!("{keys} keys, policy {version}"))
}

fn compared(texts: &RosterTexts, what: &str, used: &TrustSection) -> Check {
    let sha = |text: &str| hex(&Sha256::digest(text.as_bytes()));
    let policy = (!texts.policy.is_empty()).then(|| sha(&texts.policy));
    if used.operators == Some(sha(&texts.operators)) && used.policy == policy {
        return Check::new(State::Good, NAME, format!("{what}: in use, sha256 {}", sha(&texts.operators)));
    }
    let version = Operators::parse(&texts.operators)
        .ok()
        .and_then(|known| Policy::parse(&texts.policy, &known).ok())
        .map_or(0, |policy| policy.version);
    match &used.operators {
        Some(other) if used.policy_version >= version => {
            let text = format!(
                "a signed update (policy {}, operators {other}) came after those that lie here",
                used.policy_version
            );
            Check::new(State::Good, NAME, text)
        }
        _ => Check {
            mend: vec!["systemctl restart agentd".to_owned()],
            ..Check::new(State::Failed, NAME, format!("{what}: they lie here and are not in use"))
        },
    }
}

#[cfg(test)]
mod tests {
    use holdfast_protocol::job::HostEpoch;
    use holdfast_protocol::report::AuditHead;

    use super::*;

    const ALICE: &str =
        "alice ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c\n";

    fn used(operators: Option<&str>, policy: Option<&str>, policy_version: u32) -> TrustSection {
        let sha = |text: &str| hex(&Sha256::digest(text.as_bytes()));
        TrustSection {
            epoch: HostEpoch::new(1),
            operators: operators.map(sha),
            policy: policy.map(sha),
            policy_version,
            audit: AuditHead { number: 1, chain: String::new() },
        }
    }

    #[test]
    fn what_lies_there_is_held_against_what_is_in_use() {
        let texts = RosterTexts { operators: ALICE.to_owned(), policy: "version = 2\n".to_owned() };
        let what = read(&texts).unwrap();
        let judge = |section: &TrustSection| compared(&texts, &what, section).state;
        assert_eq!(judge(&used(Some(ALICE), Some("version = 2\n"), 2)), State::Good);
        assert_eq!(judge(&used(Some("bob"), Some("version = 3\n"), 3)), State::Good, "signed for since");
        assert_eq!(judge(&used(Some("bob"), Some("version = 1\n"), 1)), State::Failed);
        assert_eq!(judge(&used(None, None, 0)), State::Failed, "nothing is in use");
        assert!(read(&RosterTexts { operators: "nonsense".to_owned(), ..texts.clone() }).is_err());
        assert!(read(&RosterTexts { policy: "version = x".to_owned(), ..texts.clone() }).is_err());
    }
}
