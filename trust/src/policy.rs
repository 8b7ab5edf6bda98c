//! The signing policy: operators, delay and daily count per verb.
//!
//! In: TOML laid down by root next to the operators file. A verb that it does not name has [`Rule::first`], by which
//! one person alone changes who may sign only after a day ([`Policy::rule_for`]). What the policy does not say of
//! backups and growth is as in [`BackupLimits`] and [`GrowthLimits`]. The number of a policy never falls: an older one
//! is refused like an older document. Deliberately absent: who the operators are.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_protocol::id::OperatorName;
use holdfast_protocol::job::Verb;
use serde::Deserialize;

use crate::growth::{GrowthLimits, GrowthLimitsError};
use crate::limits::{BackupLimits, LimitsError};
use crate::operators::Operators;
use crate::restore_rule::{RestoreRule, UNUSED_ENDS_MAX_H};

/// Larger than any policy.
pub const BYTES_MAX: usize = 16 * 1024;

/// A destroying job waits this long, so that an operator can cancel it.
pub const DELAY_S: u32 = 600;

/// A change of who may sign waits this long, when one person makes it alone and another could have signed too.
pub const ALONE_DELAY_S: u32 = 24 * 3_600;

/// What may be destroyed in a day unless the policy says otherwise.
pub const PER_DAY: u32 = 10;

/// The rule for one verb.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// So many different operators must sign.
    pub signatures: u8,
    /// Seconds from its acceptance to its effect.
    pub delay_s: u32,
    /// So often within a day.
    pub per_day: u32,
    /// Who may sign; every operator in the operators file when none is named.
    pub signers: BTreeSet<OperatorName>,
}

impl Default for Rule {
    fn default() -> Self {
        Self { signatures: 1, delay_s: 0, per_day: 1_000, signers: BTreeSet::new() }
    }
}

impl Rule {
    /// The rule for a verb that no policy names: one signature; what destroys waits and is counted.
    #[must_use]
    pub fn first(verb: Verb) -> Self {
        match verb {
            Verb::DeleteBackup
            | Verb::DestroyGuest
            | Verb::DiscardCopy
            | Verb::PolicyUpdate
            | Verb::Rollback => Self { delay_s: DELAY_S, per_day: PER_DAY, ..Self::default() },
            // Nothing is lost at once, and a policy may have many guests.
            Verb::LoosenPolicy => Self { delay_s: DELAY_S, ..Self::default() },
            // Nothing is wiped, a detached storage can be attached again, an opened way closes by itself, and a token is
            // replaced by another.
            Verb::AttachStorage
            | Verb::BreakGlass
            | Verb::DetachStorage
            | Verb::RestoreHost
            | Verb::SetTunnelToken => Self { per_day: PER_DAY, ..Self::default() },
            Verb::AdoptGuest
            | Verb::AllowGrowth
            | Verb::ApproveRelease
            | Verb::BackupNow
            | Verb::Cancel
            | Verb::ReassignVolume
            | Verb::RebaseGuest
            | Verb::ReleaseBrake
            | Verb::Restore
            | Verb::RestoreTest
            | Verb::SwapGuest
            | Verb::WithdrawRestore => Self::default(),
        }
    }
}

/// Which way a job was accepted: what its end binds follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// By the rule itself: its delay is over before the job ends.
    Rule,
    /// By one person where two could have signed: it waits for [`ALONE_DELAY_S`], which is as long as a job may live,
    /// so its end binds only when it is taken.
    Alone,
}

/// Who signed, of those who could.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quorum {
    /// So many different operators signed.
    pub signed: usize,
    /// So many different operators hold a key that may sign now.
    pub able: usize,
}

/// The rules of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    pub version: u32,
    /// What documents may ask of backups without a signature.
    pub backups: BackupLimits,
    /// What documents may let guests grow by without a signature.
    pub growth: GrowthLimits,
    /// When an unused order to restore this host ends.
    pub restore: RestoreRule,
    rules: BTreeMap<Verb, Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    #[serde(default)]
    backups: BackupLimits,
    #[serde(default)]
    growth: GrowthLimits,
    #[serde(default)]
    restore: RestoreRule,
    #[serde(default)]
    verbs: BTreeMap<Verb, Rule>,
}

/// Why a policy is not taken.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error("the policy is {0} bytes long; at most {BYTES_MAX} are accepted")]
    Size(usize),
    /// Not a policy.
    #[error("this is not a policy")]
    Form(#[source] toml::de::Error),
    /// Limits of backups that mean nothing.
    #[error("the policy's limits of backups are refused: {0}")]
    Limits(#[from] LimitsError),
    /// Limits of growth that mean nothing.
    #[error("the policy's limits of growth are refused: {0}")]
    Growth(#[from] GrowthLimitsError),
    /// No signature would be needed.
    #[error("the policy lets {verb} happen without a signature: at least 1 is needed", verb = .0.as_str())]
    NoSignature(Verb),
    /// More signatures than there are operators who may give them.
    #[error(
        "{verb} needs {needed} signatures, and {operators} operators may give one: nothing could ever pass",
        verb = .verb.as_str()
    )]
    OutOfReach { verb: Verb, needed: u8, operators: usize },
    /// An unused order would end only after years.
    #[error(
        "an unused order to restore a host is over after at most {UNUSED_ENDS_MAX_H} hours, and the policy says {0}"
    )]
    UnusedEnds(u16),
    /// A signer who is not in the operators file.
    #[error("{name} may sign {verb} by the policy and is not in the operators file", verb = .verb.as_str())]
    Stranger { verb: Verb, name: OperatorName },
}

impl Policy {
    /// The policy of a host on which none was laid down.
    #[must_use]
    pub const fn first() -> Self {
        Self {
            version: 0,
            backups: BackupLimits::FIRST,
            growth: GrowthLimits::FIRST,
            restore: RestoreRule::FIRST,
            rules: BTreeMap::new(),
        }
    }

    /// Reads a policy for these operators, whole or not at all.
    ///
    /// # Errors
    /// [`PolicyError`].
    pub fn parse(text: &str, operators: &Operators) -> Result<Self, PolicyError> {
        let file = read(text)?;
        if file.restore.unused_ends_h > UNUSED_ENDS_MAX_H {
            return Err(PolicyError::UnusedEnds(file.restore.unused_ends_h));
        }
        let names: BTreeSet<&OperatorName> = operators.holders().map(|(name, _)| name).collect();
        for (&verb, rule) in &file.verbs {
            if rule.signatures == 0 {
                return Err(PolicyError::NoSignature(verb));
            }
            if let Some(name) = rule.signers.iter().find(|name| !names.contains(name)) {
                return Err(PolicyError::Stranger { verb, name: name.clone() });
            }
            let operators = if rule.signers.is_empty() { names.len() } else { rule.signers.len() };
            if usize::from(rule.signatures) > operators {
                return Err(PolicyError::OutOfReach { verb, needed: rule.signatures, operators });
            }
        }
        let (backups, growth) = (file.backups, file.growth);
        Ok(Self { version: file.version, backups, growth, restore: file.restore, rules: file.verbs })
    }

    /// What a policy says of backups, with any operators. An empty text is the policy of a host without one.
    ///
    /// # Errors
    /// [`PolicyError`].
    pub fn backups_of(text: &str) -> Result<BackupLimits, PolicyError> {
        if text.is_empty() { Ok(BackupLimits::FIRST) } else { Ok(read(text)?.backups) }
    }

    /// What a policy says of growth, with any operators. An empty text is the policy of a host without one.
    ///
    /// # Errors
    /// [`PolicyError`].
    pub fn growth_of(text: &str) -> Result<GrowthLimits, PolicyError> {
        if text.is_empty() { Ok(GrowthLimits::FIRST) } else { Ok(read(text)?.growth) }
    }

    /// The rule for a verb.
    #[must_use]
    pub fn rule(&self, verb: Verb) -> Rule {
        self.rules.get(&verb).cloned().unwrap_or_else(|| Rule::first(verb))
    }

    /// The rule for a job by who signed it. A change of who may sign, which the policy does not name, waits longer when
    /// one person signed alone and another could have signed too: time for the other to cancel it.
    #[must_use]
    pub fn rule_for(&self, verb: Verb, quorum: Quorum) -> (Rule, Lane) {
        let rule = self.rule(verb);
        let alone = verb == Verb::PolicyUpdate
            && !self.rules.contains_key(&verb)
            && quorum.able >= 2
            && quorum.signed < 2;
        if alone { (Rule { delay_s: ALONE_DELAY_S, ..rule }, Lane::Alone) } else { (rule, Lane::Rule) }
    }
}

fn read(text: &str) -> Result<File, PolicyError> {
    if text.len() > BYTES_MAX {
        return Err(PolicyError::Size(text.len()));
    }
    let file: File = toml::from_str(text).map_err(PolicyError::Form)?;
    file.backups.check()?;
    file.growth.check()?;
    Ok(file)
}
