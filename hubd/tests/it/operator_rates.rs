//! Rates of operators' calls over the API.

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::operator::WhoAmI;
use reqwest::StatusCode;
use serde_json::Value;

use crate::world::World;

/// As many attempts with unknown tokens as one address has in a minute.
const ATTEMPTS: usize = 30;

/// The clock of the test does not move, so that no bucket fills.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_bad_tokens_is_refused_and_delays_no_host_and_no_operator() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    let admin = world.admin();
    let who: WhoAmI = admin.get("/v1/whoami").await.data(StatusCode::OK);
    assert_eq!(who.name.as_str(), "admin");
    let mut refused = Vec::new();
    for number in 0..3 * ATTEMPTS {
        let answer = world.with_token(&format!("hfo_wrong{number}")).get::<Value>("/v1/whoami").await;
        if answer.code() == ErrorCode::RateLimited {
            refused.push(answer.headers["retry-after"].to_str().unwrap().parse::<u32>().unwrap());
        } else {
            assert_eq!(answer.code(), ErrorCode::Unauthenticated);
        }
        if number % 10 == 0 {
            let sequence = u64::try_from(number).unwrap() + 1;
            host.check_in(&host.full(sequence, 0), "0s").await.data(StatusCode::OK);
            admin.get::<WhoAmI>("/v1/whoami").await.data(StatusCode::OK);
        }
    }
    // The first call of the good token, and the invite of the host, were attempts too.
    assert!((2 * ATTEMPTS..=2 * ATTEMPTS + 3).contains(&refused.len()), "{}", refused.len());
    assert!(refused.iter().all(|wait| (1..=60).contains(wait)), "{refused:?}");
    world.clock.advance(60);
    let later = world.with_token("hfo_wrong").get::<Value>("/v1/whoami").await;
    assert_eq!(later.code(), ErrorCode::Unauthenticated, "a minute later it is looked up again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_has_so_many_calls_a_minute_and_another_is_not_its_victim() {
    let world = World::start().await;
    let host = world.enrol("box7").await;
    let admin = world.admin();
    let mut answers = (0, 0);
    for number in 0..3_100_u64 {
        let answer = admin.get::<Value>("/v1/whoami").await;
        match answer.status {
            StatusCode::OK => answers.0 += 1,
            _ => {
                assert_eq!(answer.code(), ErrorCode::RateLimited);
                answers.1 += 1;
            }
        }
        if number % 500 == 0 {
            host.check_in(&host.full(number + 1, 0), "0s").await.data(StatusCode::OK);
        }
    }
    assert!((2_990..=3_001).contains(&answers.0) && answers.1 >= 99, "{answers:?}");
    // An agent's calls are counted elsewhere.
    host.check_in(&host.full(9_999, 0), "0s").await.data(StatusCode::OK);
}
