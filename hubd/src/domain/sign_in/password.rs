//! Rules for new passwords.
//!
//! After NIST SP 800-63B: a least length, no rules of composition, no forced changes, and a list of what is guessed first.
//! In: the password and the name of its operator. Out: yes, or which rule it breaks, never the password.

use holdfast_protocol::id::OperatorName;
use holdfast_protocol::sign_in::Password;

/// The least length, in characters.
pub const PASSWORD_CHARS_MIN: usize = 12;

/// What is guessed first, without the digits and signs that are put around it.
const COMMON: &[&str] = &[
    "abc",
    "abcd",
    "abcdef",
    "abcdefgh",
    "abcdefghijkl",
    "access",
    "admin",
    "adminadmin",
    "administrator",
    "adminpassword",
    "asdf",
    "asdfasdf",
    "asdfgh",
    "asdfghjkl",
    "azerty",
    "azertyuiop",
    "baseball",
    "batman",
    "changeit",
    "changeme",
    "changemeplease",
    "computer",
    "correcthorsebatterystaple",
    "default",
    "defaultpassword",
    "dragon",
    "flower",
    "football",
    "freedom",
    "geheim",
    "hallo",
    "hello",
    "helloworld",
    "holdfast",
    "holdfasthub",
    "hubadmin",
    "iloveyou",
    "ihateyou",
    "internet",
    "jesus",
    "jordan",
    "killer",
    "kennwort",
    "letmein",
    "letmeinplease",
    "liverpool",
    "login",
    "loginlogin",
    "lovely",
    "loveyou",
    "manager",
    "master",
    "michael",
    "mypassword",
    "monkey",
    "mustang",
    "ninja",
    "operator",
    "pass",
    "passpass",
    "passphrase",
    "passw0rd",
    "passwd",
    "password",
    "passwordpassword",
    "passwort",
    "princess",
    "proxmox",
    "proxmoxve",
    "p@ssword",
    "p@ssw0rd",
    "qazwsx",
    "qazwsxedc",
    "qqww",
    "querty",
    "qwer",
    "qwerqwer",
    "qwert",
    "qwerty",
    "qwertyqwerty",
    "qwertyuiop",
    "qwertyuiopasdf",
    "qwertz",
    "qwertzuiop",
    "rootroot",
    "root",
    "secret",
    "secretpassword",
    "server",
    "shadow",
    "starwars",
    "summer",
    "winter",
    "spring",
    "autumn",
    "sunshine",
    "superman",
    "superuser",
    "supersecret",
    "test",
    "testing",
    "testtest",
    "testpassword",
    "thisismypassword",
    "toor",
    "trustno",
    "user",
    "username",
    "verysecret",
    "welcome",
    "welcometo",
    "whatever",
    "zaqxsw",
    "zxcvbn",
    "zxcvbnm",
];

/// Why a password is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    #[error(
        "the password is shorter than {PASSWORD_CHARS_MIN} characters and was not set: take a longer one, such as four words"
    )]
    Short,
    #[error("the password is among those that are guessed first and was not set: take another one")]
    Common,
    #[error("the password repeats the operator's name and was not set: take another one")]
    Name,
    #[error("the password repeats one or two characters, or counts, and was not set: take another one")]
    Pattern,
}

/// Checks a new password.
///
/// # Errors
/// [`PasswordError`].
pub fn check(password: &Password, name: &OperatorName) -> Result<(), PasswordError> {
    let text = password.expose();
    if text.chars().count() < PASSWORD_CHARS_MIN {
        return Err(PasswordError::Short);
    }
    let lower = zeroize::Zeroizing::new(text.to_lowercase());
    if is_pattern(&lower) {
        return Err(PasswordError::Pattern);
    }
    let stem = lower.trim_matches(|c: char| !c.is_alphabetic());
    if COMMON.contains(&stem) || COMMON.contains(&lower.as_str()) {
        return Err(PasswordError::Common);
    }
    let name = name.as_str().to_lowercase();
    let rest = zeroize::Zeroizing::new(lower.replace(&name, ""));
    // What is left without the name must itself be more than an ornament.
    if lower.contains(&name) && name.len() > 1 && rest.chars().filter(|c| c.is_alphabetic()).count() < 6 {
        return Err(PasswordError::Name);
    }
    Ok(())
}

/// Few different characters, or each the next of the one before.
fn is_pattern(text: &str) -> bool {
    let different: std::collections::BTreeSet<char> = text.chars().collect();
    let codes: Vec<u32> = text.chars().map(u32::from).collect();
    let counts = |step: i64| {
        codes.windows(2).all(|pair| match pair {
            [one, next] => {
                let distance = i64::from(*next) - i64::from(*one);
                distance == step || distance == -9 * step
            }
            _ => true,
        })
    };
    different.len() <= 2 || counts(1) || counts(-1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> Result<(), PasswordError> {
        check(&Password::try_from(text.to_owned()).unwrap(), &"ada".parse().unwrap())
    }

    #[test]
    fn length_counts_and_composition_does_not() {
        for good in ["correct horse staple", "eeny meeny miny", "ärgerliche Ünze", "kq8 v2m x9w t4"] {
            assert_eq!(checked(good), Ok(()), "{good}");
        }
        assert_eq!(checked("elevenchars"), Err(PasswordError::Short));
        // Twelve bytes, six characters.
        assert_eq!(checked("öäüöäü"), Err(PasswordError::Short));
    }

    #[test]
    fn what_is_guessed_first_is_refused() {
        for common in ["Password2026!", "passwordpassword", "!!letmein12345", "QwertyUiop12", "holdfast2026"]
        {
            assert_eq!(checked(common), Err(PasswordError::Common), "{common}");
        }
        for pattern in ["aaaaaaaaaaaa", "abababababab", "123456789012", "0987654321098", "abcdefghijklmn"] {
            assert_eq!(checked(pattern), Err(PasswordError::Pattern), "{pattern}");
        }
        for name in ["ada-ada-ada-1", "Ada123456789"] {
            assert_eq!(checked(name), Err(PasswordError::Name), "{name}");
        }
        assert_eq!(checked("ada loves engines"), Ok(()));
    }
}
