//! `holdfast login` and `whoami`; a login is stored after the hub answered.

use std::io;
use std::path::{Path, PathBuf};

use holdfast_protocol::operator::WhoAmI;

use super::connect;
use crate::args::LoginArgs;
use crate::config::{self, Ca, ConfigError, Login, Schema};
use crate::error::CliError;
use crate::hub::HubError;
use crate::prompt;
use crate::render;
use crate::screen::Screen;

pub async fn login(args: LoginArgs, folder: &Path, screen: &Screen) -> Result<(), CliError> {
    let ca = match (args.ca_pin, args.ca_file) {
        (Some(pin), _) => Ca::Pin(pin),
        (None, Some(path)) => Ca::Pem(read(path)?),
        // clap demands one of them.
        (None, None) => return Err(HubError::Url { url: args.url }.into()),
    };
    let token = prompt::token(args.token_file.as_deref())?;
    let login = Login { schema: Schema::V1, url: args.url, ca, token };
    let who: WhoAmI = connect(&login, screen)?.get(&["v1", "whoami"]).await?;
    let path = config::store(folder, &login)?;
    screen.show(&who, |who, _| render::login::whoami(&login.url, who))?;
    screen.note(&format!("Kept in {}.", path.display()));
    Ok(())
}

fn read(path: PathBuf) -> Result<String, ConfigError> {
    use io::Read as _;
    let unread = |source| ConfigError::Io { verb: "read", path: path.clone(), source };
    let mut text = String::new();
    // A CA in PEM is under 4 KiB.
    std::fs::File::open(&path).map_err(unread)?.take(64 * 1024).read_to_string(&mut text).map_err(unread)?;
    Ok(text)
}
