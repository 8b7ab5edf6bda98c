//! Recovery codes on paper, escrow files, and the printed sheet.
//!
//! ```text
//! made on the host:  randomness ─▶ RecoveryCode ─▶ eleven words, shown once
//! typed years later: typed text ─▶ parse ─▶ RecoveryCode, or the wrong words with suggestions
//! on paper:          RecoveryCode + what it is for ─▶ sheet, as PDF and as text
//! both:              RecoveryCode + backup key ◀─▶ escrow file, which stock `age` opens as well
//! ```
//! A code is ten words of a public list (129 bits) and an eleventh that is computed from them. So one wrong word and
//! any two swapped words are always detected as a typing error, before anything slow runs. A code is held in locked
//! memory that is kept out of core dumps and wiped; a copy that a library or a page needs for a moment is wiped too.
//! Deliberately absent: clocks, files, the network, and the terminal that words are typed at.
//!
//! | module | what |
//! | --- | --- |
//! | [`code`] | the recovery code |
//! | [`checksum`] | the check word |
//! | [`check_word`] | field arithmetic of the check word |
//! | [`escrow`] | the escrow file |
//! | [`locked`] | locked memory for secrets |
//! | [`sheet`] | the printed sheet |
//! | [`parse`] | parser of typed codes |
//! | [`suggest`] | suggestions for mistyped words |
//! | [`word`] | the list |
#![forbid(unsafe_code)]

pub mod check_word;
pub mod checksum;
pub mod code;
pub mod escrow;
pub mod locked;
pub mod parse;
pub mod sheet;
pub mod suggest;
pub mod word;

pub use code::RecoveryCode;
pub use locked::Locked;
