//! Fuzzed invites, bootstrap tokens and enrollment messages.

use holdfast_protocol::bootstrap::{BOOTSTRAP_BYTES_MAX, Bootstrap, BootstrapToken};
use holdfast_protocol::enrol::{
    Enrolled, EnrollmentAnswer, EnrollmentRequest, INVITE_CHARS_MAX, Invite, InviteRedemption, RenewRequest,
};
use holdfast_protocol::secret::Secret;

use crate::round;

/// One input.
///
/// # Panics
/// When a rule does not hold.
pub fn target(data: &[u8]) {
    round::document::<InviteRedemption>(data, BOOTSTRAP_BYTES_MAX);
    round::document::<RenewRequest>(data, BOOTSTRAP_BYTES_MAX);
    round::document::<EnrollmentRequest>(data, BOOTSTRAP_BYTES_MAX);
    round::document::<EnrollmentAnswer>(data, BOOTSTRAP_BYTES_MAX);
    round::document::<Bootstrap>(data, BOOTSTRAP_BYTES_MAX);
    if let Some(enrolled) = round::document::<Enrolled>(data, BOOTSTRAP_BYTES_MAX)
        && enrolled.not_before <= enrolled.not_after
    {
        let due = enrolled.renew_at();
        assert!(enrolled.not_before <= due && due <= enrolled.not_after, "renewal is due outside its life");
    }
    if let Ok(text) = std::str::from_utf8(data) {
        sealed(text);
    }
    // What was sealed opens unchanged, and JSON that is no invite is no invite when sealed either.
    if let Ok(invite) = serde_json::from_slice::<Invite>(data) {
        let line = invite.seal().expect("it can be sealed");
        let fits = line.expose().len() <= INVITE_CHARS_MAX && invite.hub.starts_with("https://");
        let opened = Invite::open(&line);
        assert_eq!(opened.is_ok(), fits, "{opened:?}");
    }
}

fn sealed(text: &str) {
    let line = Secret::new(text.to_owned());
    match Invite::open(&line) {
        Ok(invite) => {
            assert!(invite.hub.starts_with("https://"), "an invite's secret would go out in the open");
            let again = Invite::open(&invite.seal().expect("it can be sealed")).expect("and opened");
            assert_eq!((&again.hub, again.ca), (&invite.hub, invite.ca));
            assert_eq!(again.secret.expose(), invite.secret.expose());
            let secret = invite.secret.expose();
            let shown = format!("{invite:?}");
            assert!(
                secret.len() < 16 || !shown.contains(secret) || invite.hub.contains(secret),
                "it shows its secret"
            );
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Ok(token) = BootstrapToken::open(&line) {
        let again = BootstrapToken::open(&token.seal().expect("it can be sealed")).expect("and opened");
        assert_eq!((again.endpoint, again.pin, again.mode), (token.endpoint, token.pin, token.mode));
        assert_eq!(again.claim.expose(), token.claim.expose());
    }
}
