//! Short texts that a browser keeps for the hub, sealed.
//!
//! In: a text and its purpose. Out: text of letters and digits that only a hub with the same seed opens, for the same
//! purpose.

use ring::aead;
use zeroize::Zeroizing;

use super::Authority;
use super::sign_in::{NONCE_BYTES, SealError};

impl Authority {
    /// Seals a text.
    ///
    /// # Errors
    /// [`SealError`].
    pub fn seal_text(
        &self,
        purpose: &'static str,
        text: &str,
        nonce: [u8; NONCE_BYTES],
    ) -> Result<String, SealError> {
        let mut bytes = Zeroizing::new(text.as_bytes().to_vec());
        let key = self.text_key(purpose)?;
        let at = aead::Nonce::assume_unique_for_key(nonce);
        let tag = key.seal_in_place_separate_tag(at, aead::Aad::empty(), &mut bytes);
        let tag = tag.map_err(|_| SealError)?;
        Ok(hex::encode([&nonce[..], &bytes, tag.as_ref()].concat()))
    }

    /// Opens it again; none where it was damaged, or is of another purpose or hub.
    #[must_use]
    pub fn open_text(&self, purpose: &'static str, sealed: &str) -> Option<Zeroizing<String>> {
        let sealed = hex::decode(sealed).ok()?;
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_BYTES>()?;
        let mut bytes = Zeroizing::new(sealed.to_vec());
        let at = aead::Nonce::assume_unique_for_key(*nonce);
        let opened = self.text_key(purpose).ok()?.open_in_place(at, aead::Aad::empty(), &mut bytes).ok()?;
        std::str::from_utf8(opened).ok().map(|text| Zeroizing::new(text.to_owned()))
    }

    fn text_key(&self, purpose: &'static str) -> Result<aead::LessSafeKey, SealError> {
        let key = self.derived("seal of texts", purpose.as_bytes());
        let key = aead::UnboundKey::new(&aead::CHACHA20_POLY1305, key.as_slice()).map_err(|_| SealError)?;
        Ok(aead::LessSafeKey::new(key))
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::super::Fresh;
    use super::*;

    #[test]
    fn a_sealed_text_opens_for_its_purpose_at_its_hub_alone() {
        let made = || {
            let folder = tempfile::tempdir().unwrap();
            let now = Timestamp::from_second(1_700_000_000).unwrap();
            (Authority::open_or_make(folder.path(), Fresh::Yes, now).unwrap(), folder)
        };
        let ((one, _folder), (other, _second)) = (made(), made());
        let sealed = one.seal_text("a", "what a browser keeps", [3; NONCE_BYTES]).unwrap();
        assert_eq!(one.open_text("a", &sealed).unwrap().as_str(), "what a browser keeps");
        assert!(one.open_text("b", &sealed).is_none() && other.open_text("a", &sealed).is_none());
        for damaged in [&sealed[2..], &sealed[..sealed.len() - 2], "", "zz", &sealed.replace('a', "b")] {
            assert!(one.open_text("a", damaged).is_none(), "{damaged}");
        }
    }
}
