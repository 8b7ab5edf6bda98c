//! All cases of all stories.
//!
//! | module | what |
//! | --- | --- |
//! | [`case`] | one case: its name, its run, its verdict |
//! | [`plan`] | which cases there are, and running them on all cores |
//! | [`table`] | the printed table |

pub mod case;
pub mod plan;
mod power_loss;
pub mod table;
