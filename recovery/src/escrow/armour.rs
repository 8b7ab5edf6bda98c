//! The text form of an `age` file: base64 in lines of 64 between two marks. What was scanned or typed from paper may have
//! other line ends, blanks around its lines and lines of other lengths; that is forgiven, other characters are not.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const BEGIN: &str = "-----BEGIN AGE ENCRYPTED FILE-----";
const END: &str = "-----END AGE ENCRYPTED FILE-----";

/// As `age -a` writes it.
const LINE: usize = 64;

/// Bytes as text.
pub fn put_on(bytes: &[u8]) -> String {
    let encoded = STANDARD.encode(bytes);
    let mut text = format!("{BEGIN}\n");
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at_checked(LINE).unwrap_or((rest, ""));
        text.push_str(line);
        text.push('\n');
        rest = after;
    }
    text + END + "\n"
}

/// Text as bytes; nothing where it is none.
pub fn take_off(text: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let inner = text.strip_prefix(BEGIN)?.strip_suffix(END)?;
    let encoded: String = inner.split_ascii_whitespace().collect();
    STANDARD.decode(encoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_paper_does_to_lines_is_forgiven() {
        for length in [1, 47, 48, 49, 300] {
            let bytes: Vec<u8> = (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect();
            let text = put_on(&bytes);
            assert!(text.lines().all(|line| line.len() <= LINE));
            for spelt in [
                text.clone(),
                text.replace('\n', "\r\n"),
                text.replace('\n', "  \n  "),
                text.replace("AAEC", "A\nAEC"),
            ] {
                assert_eq!(take_off(spelt.as_bytes()), Some(bytes.clone()));
            }
            assert_eq!(take_off(text.replacen("END", "ENB", 1).as_bytes()), None);
            assert_eq!(take_off(text.replace('\n', "*\n").as_bytes()), None);
        }
    }
}
