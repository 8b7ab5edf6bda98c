//! `holdfast-break-glass`: one named way into a host, on a signed order.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = std::env::args_os().skip(1).collect();
    holdfast_break_glass::command::run(arguments)
}
