//! The table of calls and the checker of parameters.
pub mod check;
pub mod derive;
pub mod format;
pub mod property;
pub mod table;
