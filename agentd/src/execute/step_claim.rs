//! Steps of the bootstrap token: set and removed.
//!
//! A scratch guest gets a token that is worthless at the real guest's listener, and the other way round. Only the hash
//! is kept. After a crash an earlier token is replaced: the guest has not started yet, so it does not hold the token.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use holdfast_protocol::bootstrap::{BootstrapToken, BootstrapTokenSchema, CLAIM_SECONDS, Mode, VARIABLE};
use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::secret::Secret;
use jiff::SignedDuration;
use zeroize::Zeroizing;

use super::context::{Checked, Context, Started, StepOutput};
use super::identity::own_config;
use super::step_config::change;
use super::trouble::StepError;
use crate::operation::{Makes, Operation};
use crate::port::pve::restore::BootstrapEnv;
use crate::port::pve::{ConfigChange, GuestConfig};
use crate::port::store::test_access::TestHolder;

/// A claim must be valid at least this long when the guest starts: a first boot takes up to a minute, and the
/// controller tries more than once.
const LIFE_LEFT: SignedDuration = SignedDuration::from_secs(240);

/// For a running container Proxmox only notes what will be removed at its next stop.
const SPENT: &str = "the used claim opens nothing; it stays in the configuration, and in backups, until the guest's next restart";

pub(super) async fn is_set(context: &Context<'_>) -> Result<Checked, StepError> {
    let config = own_config(context).await?;
    Ok(is_fresh(context, &config).await?.then(StepOutput::nothing).into())
}

pub(super) async fn is_dropped(context: &Context<'_>) -> Result<Checked, StepError> {
    let config = own_config(context).await?;
    let happened = config.env.is_none();
    let learnt = || match was_started(&context.progress.operation) {
        true => StepOutput::note(SPENT.to_owned()),
        false => StepOutput::nothing(),
    };
    Ok(happened.then(learnt).into())
}

/// Whether the guest runs when the claim is taken out. Of one that came back with its own token it is before its first start.
fn was_started(operation: &Operation) -> bool {
    match operation {
        Operation::Provision(provision) => provision.starts_with_a_claim(),
        other => matches!(other.makes(), Makes::Successor(_)),
    }
}

pub(super) async fn set(context: &Context<'_>) -> Result<Started, StepError> {
    let config = own_config(context).await?;
    hand_over(context, config).await
}

pub(super) async fn drop_claim(context: &Context<'_>) -> Result<Started, StepError> {
    let config = own_config(context).await?;
    change(context, config, vec![ConfigChange::ClearEnv]).await
}

/// Mints anew when the agent was away so long that the guest would find a dead claim.
pub(super) async fn renew_when_old(context: &Context<'_>) -> Result<(), StepError> {
    let config = own_config(context).await?;
    if is_fresh(context, &config).await? {
        return Ok(());
    }
    context.say("the claim is too old: minting another");
    hand_over(context, config).await.map(drop)
}

async fn is_fresh(context: &Context<'_>, config: &GuestConfig) -> Result<bool, StepError> {
    let value = config.env.as_ref().and_then(|env| env.expose().strip_prefix(VARIABLE)?.strip_prefix('='));
    let Some(Ok(token)) = value.map(|value| BootstrapToken::open(&Secret::new(value.to_owned()))) else {
        return Ok(false);
    };
    let needed_until = context.ports.clock.now().checked_add(LIFE_LEFT).unwrap_or(jiff::Timestamp::MAX);
    let (store, claim) = (&context.ports.store, token.claim.hash());
    Ok(match context.progress.operation.makes() {
        Makes::Scratch(_) => store.test_claim_lives(context.progress.id, claim, needed_until).await?,
        Makes::Guest(_) | Makes::Adopted(_) | Makes::Copy(_) | Makes::Successor(_) | Makes::Nothing => {
            store.claim_lives(context.progress.operation.uid(), claim, needed_until).await?
        }
    })
}

async fn hand_over(context: &Context<'_>, config: GuestConfig) -> Result<Started, StepError> {
    let mut random = Zeroizing::new([0_u8; 32]);
    getrandom::fill(random.as_mut_slice()).map_err(|_| {
        StepError::again(ErrorCode::Internal, "the system gave no randomness: look at its kernel")
    })?;
    let claim = Secret::new(URL_SAFE_NO_PAD.encode(random.as_slice()));
    let now = context.ports.clock.now();
    let life = SignedDuration::from_secs(i64::from(CLAIM_SECONDS));
    let expires_at = now.checked_add(life).unwrap_or(jiff::Timestamp::MAX);
    let store = &context.ports.store;
    let (endpoint, mode) = match context.progress.operation.makes() {
        Makes::Scratch(test) => {
            let speech = test.place.speech.as_ref();
            let speech = speech.ok_or_else(|| StepError::fault("this scratch guest may not speak"))?;
            let test = TestHolder { operation: context.progress.id, guest: test.guest };
            store.mint_test_claim(test, claim.hash(), expires_at).await?;
            (format!("https://{}", speech.listener), Mode::RestoreTest)
        }
        Makes::Successor(rebase) => {
            store.mint_successor_claim(rebase.guest().uid, claim.hash(), expires_at, now).await?;
            (context.ports.listener.endpoint.clone(), Mode::Serve)
        }
        Makes::Guest(_) | Makes::Adopted(_) | Makes::Copy(_) | Makes::Nothing => {
            store.mint_claim(context.progress.operation.uid(), claim.hash(), expires_at, now).await?;
            (context.ports.listener.endpoint.clone(), Mode::Serve)
        }
    };
    let token = BootstrapToken {
        schema: BootstrapTokenSchema::V1,
        endpoint,
        pin: context.ports.listener.pin,
        claim,
        mode,
    };
    let sealed = token.seal().map_err(|error| StepError::fault(error.to_string()))?;
    let env = BootstrapEnv::new(sealed).map_err(|error| StepError::fault(error.to_string()))?;
    change(context, config, vec![ConfigChange::SetEnv(env)]).await
}
