//! What is said to a person beside the answer. Nobody may be there to read it, since a terminal can be lost at any time: what is
//! under way goes on all the same.

/// Says a line, if it can be said.
macro_rules! aside {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($words)*);
    }};
}
