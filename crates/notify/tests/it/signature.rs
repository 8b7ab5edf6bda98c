//! Signatures of the webhook, held to the definition of HMAC.

use notify::Message;
use notify::channel::SIGNATURE_HEADER;
use notify::verdict::Form;
use sha2::{Digest, Sha256};

use crate::fixtures::{KEY, contract, draft, http_channels, message, now, outbox_id};

/// RFC 2104, by its definition.
fn hmac_sha256(key: &[u8], data: &[u8]) -> Vec<u8> {
    let mut block = [0_u8; 64];
    block[..key.len()].copy_from_slice(key);
    let inner = Sha256::new().chain_update(block.map(|byte| byte ^ 0x36)).chain_update(data).finalize();
    Sha256::new().chain_update(block.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize().to_vec()
}

fn signature(message: &Message, seconds: i64) -> (String, Vec<u8>) {
    let all = http_channels("https://chat.example");
    let at = jiff::Timestamp::from_second(seconds).unwrap();
    let request = contract(&all[7]).request(message, &outbox_id(), at, Form::default());
    (request.header(SIGNATURE_HEADER).unwrap().to_owned(), request.body)
}

#[test]
fn a_receiver_can_check_it_with_hmac_alone() {
    // A vector of RFC 4231 holds the second computation itself.
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(
        hex(&hmac_sha256(b"Jefe", b"what do ya want for nothing?")),
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    );
    let (header, body) = signature(&message(), now().as_second());
    let signed = [b"1785679380.", body.as_slice()].concat();
    assert_eq!(header, format!("t=1785679380,v1={}", hex(&hmac_sha256(KEY.as_bytes(), &signed))));
}

#[test]
fn time_and_body_are_both_signed() {
    let (first, _) = signature(&message(), 1_785_679_380);
    let (later, _) = signature(&message(), 1_785_679_381);
    let (other, _) = signature(&draft(vec![]).into(), 1_785_679_380);
    let of = |header: &str| header.split_once("v1=").unwrap().1.to_owned();
    assert_ne!(of(&first), of(&later));
    assert_ne!(of(&first), of(&other));
}

#[test]
fn while_a_key_is_replaced_each_of_the_two_has_its_signature() {
    use notify::channel::{HttpChannel as _, Webhook};
    let key = |letter: &str| holdfast_protocol::secret::Secret::new(letter.repeat(32)).try_into().unwrap();
    let of = |key, former_key| {
        let url = "https://receiver.example/".to_owned();
        let url = holdfast_protocol::secret::Secret::new(url).try_into().unwrap();
        let request = Webhook { url, key, former_key, ca: None }.request(
            &message(),
            &outbox_id(),
            now(),
            Form::default(),
        );
        request.header(SIGNATURE_HEADER).unwrap().to_owned()
    };
    let (new, old) = (of(key("n"), None), of(key("o"), None));
    let (_, old) = old.split_once(',').unwrap();
    assert_eq!(of(key("n"), Some(key("o"))), format!("{new},{old}"));
}
