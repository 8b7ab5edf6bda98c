//! QR codes as pictures of a page.
//!
//! In: a text that somebody takes over with a phone. Out: an inline SVG without style or script. Deliberately absent: texts
//! that are too long for a phone to read from a screen.

/// Longer texts give so many squares that phones do not read them.
const TEXT_BYTES_MAX: usize = 1200;

/// Squares around the code that stay light.
const QUIET: usize = 4;

/// The picture of a text; none where it is too long. The text itself is not in it.
#[must_use]
pub fn svg(text: &str) -> Option<String> {
    if text.is_empty() || text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let code = fast_qr::QRBuilder::new(text).build().ok()?;
    let side = code.size + 2 * QUIET;
    let mut dark = String::new();
    for (y, row) in (0..code.size).map(|row| &code[row]).enumerate() {
        let mut begun = None;
        for x in 0..=code.size {
            let is_dark = x < code.size && row.get(x).is_some_and(|module| module.value());
            match (begun, is_dark) {
                (None, true) => begun = Some(x),
                (Some(from), false) => {
                    dark.push_str(&format!("M{} {}h{}v1h-{}z", from + QUIET, y + QUIET, x - from, x - from));
                    begun = None;
                }
                (None, false) | (Some(_), true) => {}
            }
        }
    }
    Some(format!(
        "<svg class=\"qr\" viewBox=\"0 0 {side} {side}\" width=\"220\" height=\"220\" role=\"img\" aria-label=\"QR code of this text\">\
         <path d=\"M0 0h{side}v{side}h-{side}z\" fill=\"#fff\"/><path d=\"{dark}\" fill=\"#000\"/></svg>"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_becomes_a_picture_and_is_not_in_it() {
        let picture = svg("holdfast sign box7 <web>").unwrap();
        assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>"));
        assert!(!picture.contains("box7") && !picture.contains(" style="));
        // The corner of each code: seven dark squares in its first row.
        assert!(picture.contains("M4 4h7v1h-7z"), "{picture}");
        assert_ne!(svg("a"), svg("b"));
    }

    #[test]
    fn an_empty_or_a_long_text_has_no_picture() {
        assert_eq!(svg(""), None);
        assert_eq!(svg(&"x".repeat(1201)), None);
        assert!(svg(&"x".repeat(1200)).is_some());
    }
}
