//! The pages of a person's own password and authenticator.

use askama::Template;
use holdfast_protocol::secret::Secret;
use holdfast_protocol::sign_in::{RecoveryCodes, SessionKind, SessionView, SignInState, TotpOffer};

use crate::RenderError;
use crate::frame::{Frame, When};

/// What the page is made of.
pub struct Account<'a> {
    /// What is set up so far.
    pub state: SignInState,
    /// What the session may do.
    pub kind: SessionKind,
    /// The person's open sessions, the newest first.
    pub sessions: &'a [SessionView],
    /// Why the last change was refused.
    pub problem: Option<&'a str>,
    /// What was changed just now.
    pub done: Option<&'a str>,
}

struct SessionRow {
    id: String,
    used: When,
    ends: When,
    address: String,
    user_agent: String,
}

#[derive(Template)]
#[template(path = "account.html")]
struct AccountPage<'a> {
    frame: &'a Frame,
    is_setup: bool,
    password_set: Option<When>,
    authenticator_since: Option<When>,
    recovery_codes: u32,
    sessions: Vec<SessionRow>,
    problem: Option<&'a str>,
    done: Option<&'a str>,
}

/// # Errors
/// [`RenderError`].
pub fn render(frame: &Frame, account: &Account<'_>) -> Result<String, RenderError> {
    let row = |session: &SessionView| SessionRow {
        id: session.id.to_string(),
        used: frame.when(session.used_at),
        ends: frame.when(session.ends_at),
        address: session.address.clone(),
        user_agent: session.user_agent.clone(),
    };
    let page = AccountPage {
        frame,
        is_setup: account.kind == SessionKind::Setup,
        password_set: account.state.password_set_at.map(|at| frame.when(at)),
        authenticator_since: account.state.totp_since.map(|at| frame.when(at)),
        recovery_codes: account.state.recovery_codes,
        sessions: account.sessions.iter().map(row).collect(),
        problem: account.problem,
        done: account.done,
    };
    page.render()
}

#[derive(Template)]
#[template(path = "authenticator.html")]
struct AuthenticatorPage<'a> {
    frame: &'a Frame,
    uri: &'a Secret,
    secret: &'a Secret,
    picture: &'a QrCode,
}

/// A QR code: the length of a side in squares, and the dark ones as a path of SVG.
pub struct QrCode {
    pub side: usize,
    pub path: String,
}

impl QrCode {
    /// The picture of a text; an empty one where it is too long, and then the secret is typed.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let empty = Self { side: 0, path: String::new() };
        let Ok(code) = fast_qr::QRBuilder::new(text).build() else { return empty };
        let mut path = String::new();
        for (y, row) in (0..code.size).map(|row| &code[row]).enumerate() {
            for (x, _) in row.iter().take(code.size).enumerate().filter(|(_, module)| module.value()) {
                path.push_str(&format!("M{x} {y}h1v1h-1z"));
            }
        }
        Self { side: code.size, path }
    }
}

/// The secret, to be taken over by an authenticator.
///
/// # Errors
/// [`RenderError`].
pub fn authenticator(frame: &Frame, offer: &TotpOffer, picture: &QrCode) -> Result<String, RenderError> {
    AuthenticatorPage { frame, uri: &offer.uri, secret: &offer.secret, picture }.render()
}

#[derive(Template)]
#[template(path = "recovery_codes.html")]
struct CodesPage<'a> {
    frame: &'a Frame,
    codes: &'a [Secret],
}

/// The codes, which are shown this once.
///
/// # Errors
/// [`RenderError`].
pub fn recovery_codes(frame: &Frame, codes: &RecoveryCodes) -> Result<String, RenderError> {
    CodesPage { frame, codes: &codes.codes }.render()
}
