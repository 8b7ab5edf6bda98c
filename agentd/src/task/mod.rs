//! The loops of the agent, one per file, and the only place that starts tasks.
//!
//! | module | loop |
//! | --- | --- |
//! | [`local_api`] | takes guests' connections |
//! | [`stop`] | how all of them learn that the agent is to stop |

pub mod local_api;
pub mod stop;
