//! Connections, envelope, request ids and bodies of a server.
//!
//! ```text
//! listener ─▶ [`Admission`] ─▶ TLS ─▶ requests ─▶ [`frame`] (ids, envelope, log) ─▶ the program's own layers and handlers
//! ```
//! | module | does |
//! | --- | --- |
//! | [`listener`] | accepts, shakes hands, serves, and stops, each within its time |
//! | [`frame`] | ids in, envelope and headers out, one log line a request |
//! | [`answer`] | what a handler says: data, a refusal, or a document of its own |
//! | [`body`] | a body of bounded size and time |
//! | [`turns`] | how many requests run at once, and how long one may take |

pub mod answer;
pub mod body;
pub mod frame;
pub mod listener;
pub mod turns;

pub use self::answer::{Answer, Refused, as_it_is, refused_code};
pub use self::frame::{Frame, Ids, RefusalLog, frame};
pub use self::listener::{Admission, CloseSignal, ConnectionSettings, Ends, Listening, Times, listen};
