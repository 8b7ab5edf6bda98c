//! Notes on standard error, which may be lost.
//!
//! A terminal can go away at any time; work continues without it.

/// Says a line, if it can be said.
macro_rules! note_line {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($words)*);
    }};
}
