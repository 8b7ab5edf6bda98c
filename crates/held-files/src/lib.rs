//! Files and folders held by descriptor, for programs run by root.
//!
//! | module | what |
//! | --- | --- |
//! | [`held_folder`] | a folder held by descriptor; nothing beneath it is reached through a link |
//! | [`atomic_file`] | small files that are there whole or not at all |
//! | [`root_text`] | a text that only root can have written |
//!
//! Deliberately absent: the rules of ownership; the caller passes the owner.
#![forbid(unsafe_code)]

pub mod atomic_file;
pub mod held_folder;
pub mod root_text;
