//! Tests against stock OpenSSH.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use holdfast_trust::operators::Operators;
use holdfast_trust::signature::{Namespace, check};

/// Whether it said yes. It is in Debian's openssh-client.
fn keygen(folder: &Path, arguments: &[&str], input: Option<&[u8]>) -> std::io::Result<bool> {
    #[expect(clippy::disallowed_methods, reason = "the judge")]
    let mut child = Command::new("ssh-keygen")
        .args(arguments)
        .current_dir(folder)
        .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    if let (Some(bytes), Some(mut stdin)) = (input, child.stdin.take()) {
        stdin.write_all(bytes)?;
    }
    Ok(child.wait()?.success())
}

#[test]
fn what_openssh_signs_is_taken_and_what_is_taken_openssh_verifies() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let payload = b"{\"any\":\"bytes\"}\n";
    std::fs::write(path.join("job.json"), payload).unwrap();
    assert!(keygen(path, &["-q", "-t", "ed25519", "-N", "", "-C", "a laptop", "-f", "alice"], None).unwrap());
    let public = std::fs::read_to_string(path.join("alice.pub")).unwrap();
    let file = format!("alice namespaces=\"holdfast-job\",valid-after=\"20200101Z\" {public}");
    std::fs::write(path.join("operators"), &file).unwrap();
    let operators = Operators::parse(&file).unwrap();
    for hash in ["sha512", "sha256"] {
        std::fs::remove_file(path.join("job.json.sig")).ok();
        let option = format!("hashalg={hash}");
        let sign = ["-Y", "sign", "-f", "alice", "-n", "holdfast-job", "-O", &option, "job.json"];
        assert!(keygen(path, &sign, None).unwrap(), "{hash}");
        let signature = std::fs::read_to_string(path.join("job.json.sig")).unwrap();
        let key = check(payload, &signature, Namespace::Job).unwrap();
        let (name, fingerprint) = operators.holders().next().unwrap();
        assert_eq!((name.as_str(), key.fingerprint()), ("alice", fingerprint));
        let verify =
            ["-Y", "verify", "-f", "operators", "-I", "alice", "-n", "holdfast-job", "-s", "job.json.sig"];
        assert!(keygen(path, &verify, Some(payload)).unwrap(), "{hash}");
        // And both refuse the same.
        assert!(check(b"{\"any\":\"other\"}\n", &signature, Namespace::Job).is_err());
        assert!(!keygen(path, &verify, Some(b"{\"any\":\"other\"}\n")).unwrap());
    }
    assert!(keygen(path, &["-q", "-t", "rsa", "-N", "", "-f", "old"], None).unwrap());
    std::fs::remove_file(path.join("job.json.sig")).unwrap();
    assert!(keygen(path, &["-Y", "sign", "-f", "old", "-n", "holdfast-job", "job.json"], None).unwrap());
    let signature = std::fs::read_to_string(path.join("job.json.sig")).unwrap();
    assert!(check(payload, &signature, Namespace::Job).is_err(), "no RSA");
}
