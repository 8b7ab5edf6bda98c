//! The program `hubd`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use holdfast_manual::Section;
use logging::{Form, Service};

fn main() -> ExitCode {
    let arguments = match holdfast_manual::parse::<hubd::cli::Arguments>(Section::Administration) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    logging::start(Service::Hubd, logging::filter_of("HOLDFAST_LOG"), Form::ByPlace);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: the system gives no threads: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(hubd::cli::run(arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
