//! Files and folders held by descriptor, for programs run by root.
//!
//! | module | what |
//! | --- | --- |
//! | [`held_folder`] | a folder held by descriptor; nothing beneath it is reached through a link |
//! | [`atomic_file`] | small files that are there whole or not at all |
//!
//! Deliberately absent: who may own what; the caller says that.
#![forbid(unsafe_code)]

pub mod atomic_file;
pub mod held_folder;
