//! The theme that a browser chose.
//!
//! In: the cookie of a request, or the form in which a person chooses. Out: the [`Look`] of each page that answers the
//! request, or the cookie and the way back. Every page has it, those before the sign-in too, so it goes with the request
//! and not through the arguments of each handler. Deliberately absent: anything about who looks.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use holdfast_protocol::code::ErrorCode;
use hub_page::look::{LocalPath, Look, THEME_COOKIE, Theme};
use net::server::as_it_is;

use super::form::Fields;
use crate::api::Hub;
use crate::api::problem::ApiError;
use crate::api::sign_in::caller_of_cookie;

/// Not strict as the session's cookie is: where a link of another site leads here, the first page has the theme too.
const FLAGS: &str = "Secure; HttpOnly; SameSite=Lax; Path=/";
const YEAR_S: u32 = 31_536_000;

tokio::task_local! {
    static LOOK: Look;
}

/// Reads the look of a request before its page is made.
pub(super) async fn read(request: Request, next: Next) -> Response {
    let look = Look { theme: theme_of(request.headers()), back: back_to(&request) };
    LOOK.scope(look, next.run(request)).await
}

/// The look of the request that is being answered.
pub(super) fn current() -> Look {
    LOOK.try_with(Clone::clone).unwrap_or_default()
}

fn theme_of(headers: &HeaderMap) -> Theme {
    let texts = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut chosen = pairs.filter(|(name, _)| *name == THEME_COOKIE).map(|(_, value)| value);
    chosen.find_map(Theme::named).unwrap_or_default()
}

/// The page itself; the first page where it is the answer to a form, which cannot be asked for again.
fn back_to(request: &Request) -> LocalPath {
    let path = request.uri().path_and_query().filter(|_| request.method() == Method::GET);
    path.and_then(|path| LocalPath::parse(path.as_str())).unwrap_or_default()
}

/// Takes the form, and sends the browser back with the cookie.
pub(super) async fn choose(State(hub): State<Arc<Hub>>, headers: HeaderMap, body: Body) -> Response {
    // Only a form that is not ours fails: its sender needs no page.
    chosen(&hub, &headers, body).await.unwrap_or_else(|error| error.into_response())
}

async fn chosen(hub: &Hub, headers: &HeaderMap, body: Body) -> Result<Response, ApiError> {
    let fields = Fields::read(body).await?;
    if let Some(caller) = caller_of_cookie(headers, hub).await? {
        caller.check(hub, fields.required("csrf")?)?;
    }
    let unknown = || ApiError::new(ErrorCode::Range, "a theme is system, light or dark; nothing was changed");
    let theme = Theme::named(fields.required("theme")?).ok_or_else(unknown)?;
    let back = fields.optional("back").and_then(LocalPath::parse).unwrap_or_default();
    let value = |text: &str| {
        HeaderValue::from_str(text)
            .map_err(|error| ApiError::internal(format!("a header of a theme: {error}")))
    };
    let lasts = match theme {
        Theme::System => 0,
        Theme::Light | Theme::Dark => YEAR_S,
    };
    let cookie = format!("{THEME_COOKIE}={}; {FLAGS}; Max-Age={lasts}", theme.as_str());
    let answer = [
        (header::LOCATION, value(back.as_str())?),
        (header::SET_COOKIE, value(&cookie)?),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok(as_it_is((StatusCode::SEE_OTHER, answer)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_theme_is_the_cookies_and_a_strange_one_is_the_devices() {
        for (cookie, theme) in [
            ("", Theme::System),
            ("a=b; __Host-holdfast-theme=dark", Theme::Dark),
            ("__Host-holdfast-theme=light; a=b", Theme::Light),
            ("__Host-holdfast-theme=pink", Theme::System),
            ("holdfast-theme=dark", Theme::System),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::COOKIE, HeaderValue::from_str(cookie).unwrap());
            assert_eq!(theme_of(&headers), theme, "{cookie}");
        }
    }
}
