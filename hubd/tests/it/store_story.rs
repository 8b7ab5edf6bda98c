//! A story that every engine of the store must pass.

use holdfast_protocol::checkin::{Coverage, Need};
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::{CorrelationId, HostId, InviteId};
use holdfast_protocol::secret::Secret;
use hubd::authority::{AgentKey, Authority, Fresh, IssueError};
use hubd::domain::desired::Delivery;
use hubd::domain::host::HostRef;
use hubd::domain::identity::{IdentityError, Presented};
use hubd::domain::merge::IncomingReport;
use hubd::domain::summary::Summary;
use hubd::store::{By, Checkin, NewInvite, RedeemError, Redemption, SectionTexts, Store, WriteError};
use jiff::Timestamp;
use rcgen::KeyPair;
use uuid::Uuid;

use crate::world::csr;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn by(second: i64) -> By {
    let correlation = CorrelationId::new(Uuid::nil());
    By { operator: "eve".parse().unwrap(), correlation, at: at(second), claim: None }
}

fn checkin(host: HostId, generation: u32, sequence: u64) -> Checkin {
    Checkin {
        presented: Presented { host, generation },
        arriving: IncomingReport { coverage: Coverage::Full, run: Some(at(0)), sequence },
        held: Generation::NONE,
        sections: SectionTexts::default(),
        summary: Summary::default(),
        jobs: Vec::new(),
        at: at(5),
        correlation: CorrelationId::new(Uuid::nil()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_is_invited_enrolled_heard_and_let_go() {
    let folder = tempfile::tempdir().unwrap();
    let authority = std::sync::Arc::new(Authority::open_or_make(folder.path(), Fresh::Yes, at(0)).unwrap());
    let (store, writer) = Store::open(&folder.path().join("hub.db")).unwrap();
    let secret = Secret::new("s".repeat(64));
    let invite = InviteId::new(Uuid::from_u128(1));
    let new = NewInvite { id: invite, host_name: "box7".parse().unwrap(), secret: secret.hash() };
    let made = store.create_invite(by(0), new).await.ok().unwrap();
    assert_eq!((made.id, made.expires_at), (invite, at(3600)));

    let key = AgentKey::from_csr(&csr(&KeyPair::generate().unwrap())).unwrap();
    let host = HostId::new(Uuid::from_u128(2));
    let issuer = authority.clone();
    let redemption = |host| Redemption {
        secret: secret.hash(),
        key: key.clone(),
        host,
        at: at(1),
        correlation: CorrelationId::new(Uuid::nil()),
    };
    // A certificate that cannot be made leaves neither a host nor a used invite.
    let unlucky = redemption(HostId::new(Uuid::from_u128(3)));
    let failed = store.redeem(unlucky, |_, _, _, _| Err(IssueError::Time)).await.err().unwrap();
    assert!(matches!(failed, WriteError::Refused(RedeemError::Issue(_))), "{failed:?}");
    assert!(store.hosts(None, 10).await.unwrap().is_empty());
    let redemption = redemption(host);
    let given = store.redeem(redemption, move |h, g, k, t| issuer.issue_host(h, g, k, t)).await.ok().unwrap();
    assert_eq!((given.host, given.generation), (host, 1));

    let kept = store.check_in(checkin(host, 1, 1)).await.unwrap().unwrap();
    assert_eq!((kept.acknowledged, kept.need, kept.delivery), (1, Need::Changed, Delivery::Nothing));
    let unknown = store.check_in(checkin(HostId::new(Uuid::from_u128(9)), 1, 1)).await.unwrap();
    assert_eq!(unknown, Err(IdentityError::Unknown));
    assert_eq!(store.check_in(checkin(host, 2, 2)).await.unwrap(), Err(IdentityError::Unknown));

    let name = HostRef::Name("box7".parse().unwrap());
    assert_eq!(store.host(name.clone(), at(5)).await.unwrap().unwrap().host.seen_at, Some(at(5)));
    store.revoke_host(by(6), name.clone()).await.ok().unwrap().unwrap();
    assert_eq!(store.check_in(checkin(host, 1, 3)).await.unwrap(), Err(IdentityError::Revoked));
    assert!(store.host(name, at(5)).await.unwrap().is_none());
    drop(store);
    writer.join().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_in_a_shared_commit_undoes_itself_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _writer) = Store::open(&folder.path().join("hub.db")).unwrap();
    let mut tries = tokio::task::JoinSet::new();
    for number in 0..200_u128 {
        let store = store.clone();
        tries.spawn(async move {
            // Every other key is one key with another request: refused, in the same commits as the others.
            let key = if number % 2 == 0 { format!("k-{number}") } else { "same".to_owned() };
            let mut request = [0; 32];
            request[..16].copy_from_slice(&number.to_be_bytes());
            let claim = hubd::store::Claim { key: key.parse().unwrap(), request };
            let id = InviteId::new(Uuid::from_u128(number + 1));
            let secret = Secret::new(format!("secret {number}")).hash();
            let new = NewInvite { id, host_name: "box7".parse().unwrap(), secret };
            store.create_invite(By { claim: Some(claim), ..by(0) }, new).await
        });
    }
    let answers = tries.join_all().await;
    let made = answers.iter().filter(|answer| answer.is_ok()).count();
    let reused = answers.iter().filter(|answer| matches!(answer, Err(WriteError::KeyReused))).count();
    assert_eq!((made, reused), (101, 99));
    let connection = rusqlite::Connection::open(folder.path().join("hub.db")).unwrap();
    let written: i64 = connection.query_row("SELECT count(*) FROM invites", [], |row| row.get(0)).unwrap();
    assert_eq!(written, 101);
}
