//! Reasons for which a receiver refuses for good.

/// Why a receiver refuses for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("the token, key or password is not accepted")]
    Credential,
    #[error("the address, chat or room does not exist any more")]
    Address,
    #[error("the message is too long")]
    TooLong,
    #[error("the request is not understood")]
    Request,
    #[error("the receiver redirects, and redirects are not followed: write the final URL")]
    Redirect,
}
