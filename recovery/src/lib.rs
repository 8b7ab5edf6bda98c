//! The code on paper: what opens a customer's backup key when the box is gone.
//!
//! ```text
//! made on the box:   randomness ─▶ RecoveryCode ─▶ eleven words, shown once
//! typed years later: what a person typed ─▶ typed ─▶ RecoveryCode, or what is wrong and what was probably meant
//! on paper:          RecoveryCode + what it is for ─▶ sheet, as PDF and as text
//! both:              RecoveryCode + backup key ◀─▶ escrow file, which stock `age` opens as well
//! ```
//! A code is ten words of a public list (129 bits) and an eleventh that is computed from them, so that one wrong word and
//! any two words in each other's place are always told as a typing error, before anything slow runs. A code
//! lies in memory that is locked, kept out of core dumps and wiped; what a library or a page must hold of it for a moment is
//! wiped. Deliberately absent: clocks, files, the network, and the terminal that words are typed at.
//!
//! | module | what |
//! | --- | --- |
//! | [`code`] | the recovery code |
//! | [`checksum`] | the eleventh word |
//! | [`element`] | the arithmetic of the eleventh word |
//! | [`escrow`] | the file that a code opens |
//! | [`locked`] | memory that is not swapped, not dumped, and wiped |
//! | [`sheet`] | the sheet of paper |
//! | [`typed`] | what a person typed, forgivingly |
//! | [`meant`] | what was probably meant |
//! | [`word`] | the list |
#![forbid(unsafe_code)]

pub mod checksum;
pub mod code;
pub mod element;
pub mod escrow;
pub mod locked;
pub mod meant;
pub mod sheet;
pub mod typed;
pub mod word;

pub use code::RecoveryCode;
pub use locked::Locked;
