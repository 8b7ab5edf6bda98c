//! What a call accepts: the table of calls and the checker that refuses everything else with the real texts.
pub mod check;
pub mod derive;
pub mod format;
pub mod property;
pub mod table;
