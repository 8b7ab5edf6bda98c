//! A macro for text newtypes with one constructor.
//!
//! In: a name, the message for text that does not fit, and the test. Out: the type, with one constructor that parsing
//! uses too. Deliberately absent: names and ids of things (`id`), which are also ordered, shown and read from a command
//! line.

/// Defines them: documentation, name, how many characters, the sentence of a refusal, and what else must hold.
macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident, $min:literal..=$max:literal, $rule:literal, $ok:expr;)*) => {$(
        $(#[$doc])*
        #[derive(
            Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash,
            serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(#[schemars(length(min = $min, max = $max))] String);

        impl $name {
            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = &'static str;
            fn try_from(text: String) -> Result<Self, &'static str> {
                let ok: fn(&str) -> bool = $ok;
                if ($min..=$max).contains(&text.chars().count()) && ok(&text) { Ok(Self(text)) } else { Err($rule) }
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> Self {
                text.0
            }
        }
    )*};
}

pub(crate) use texts;
