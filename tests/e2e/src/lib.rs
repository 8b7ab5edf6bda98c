//! A whole Holdfast of real programs on one machine.
//!
//! In: the built programs and an empty folder. Out: a running simulator, hub and agent, and the `holdfast` command
//! that talks to them. It links none of our crates: it sees what a user sees, command lines, files and JSON.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`programs`] | where the built programs are |
//! | [`place`] | in which namespace and as whom a program runs |
//! | [`child`] | one supervised process, its log, its end |
//! | [`wait`] | waiting for a state, with a bound |
//! | [`stage`] | the whole, step by step |
//! | [`document`] | the desired document of the story |
//! | [`booted_guest`] | programs run in a guest that was booted |
#![forbid(unsafe_code)]

pub mod booted_guest;
pub mod child;
pub mod document;
pub mod place;
pub mod programs;
pub mod stage;
pub mod wait;
