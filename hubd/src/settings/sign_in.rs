//! The settings of sign-in.
//!
//! In: `[sign_in]` of `hub.toml`. Out: rules within their bounds.

use jiff::SignedDuration;
use serde::Deserialize;

use crate::domain::sign_in::{SecondFactorRule, SignInRules};

/// Shorter would end sessions under people's hands: use is written down once a minute.
const IDLE_MINUTES_MIN: u32 = 5;

/// A week. Longer is what tokens are for.
const ABSOLUTE_HOURS_MAX: u32 = 168;

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SignInFile {
    idle_minutes: Option<u32>,
    absolute_hours: Option<u32>,
    second_factor: Option<SecondFactorWord>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SecondFactorWord {
    Admins,
    Optional,
}

/// Why the settings of sign-in are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignInSettingsError {
    #[error("sign_in.absolute_hours is {0}: set 1 to {ABSOLUTE_HOURS_MAX}")]
    Absolute(u32),
    #[error(
        "sign_in.idle_minutes is {0}: set {IDLE_MINUTES_MIN} or more, and not more than absolute_hours are"
    )]
    Idle(u32),
}

impl SignInFile {
    pub(super) fn rules(self) -> Result<SignInRules, SignInSettingsError> {
        let usual = SignInRules::default();
        let absolute = match self.absolute_hours {
            None => usual.absolute,
            Some(hours @ 1..=ABSOLUTE_HOURS_MAX) => SignedDuration::from_hours(hours.into()),
            Some(hours) => return Err(SignInSettingsError::Absolute(hours)),
        };
        let idle = match self.idle_minutes {
            None => usual.idle,
            Some(minutes) => {
                let idle = SignedDuration::from_mins(minutes.into());
                if minutes < IDLE_MINUTES_MIN || idle > absolute {
                    return Err(SignInSettingsError::Idle(minutes));
                }
                idle
            }
        };
        let second_factor = match self.second_factor {
            None => usual.second_factor,
            Some(SecondFactorWord::Admins) => SecondFactorRule::Admins,
            Some(SecondFactorWord::Optional) => SecondFactorRule::Optional,
        };
        Ok(SignInRules { idle, absolute, second_factor })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Result<SignInRules, SignInSettingsError> {
        toml::from_str::<SignInFile>(text).unwrap().rules()
    }

    #[test]
    fn settings_have_bounds() {
        assert_eq!(rules(""), Ok(SignInRules::default()));
        let set = rules("idle_minutes = 60\nabsolute_hours = 1\nsecond_factor = \"optional\"").unwrap();
        assert_eq!((set.idle, set.absolute), (SignedDuration::from_hours(1), SignedDuration::from_hours(1)));
        assert_eq!(set.second_factor, SecondFactorRule::Optional);
        for (text, refused) in [
            ("idle_minutes = 4", SignInSettingsError::Idle(4)),
            ("idle_minutes = 61\nabsolute_hours = 1", SignInSettingsError::Idle(61)),
            ("absolute_hours = 0", SignInSettingsError::Absolute(0)),
            ("absolute_hours = 169", SignInSettingsError::Absolute(169)),
        ] {
            assert_eq!(rules(text), Err(refused), "{text}");
        }
        assert!(toml::from_str::<SignInFile>("second_factor = \"never\"").is_err());
    }
}
