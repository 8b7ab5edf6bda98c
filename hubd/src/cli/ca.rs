//! The command `hubd ca rotate`, also while the hub runs.
//!
//! In: the hub's folder and its database. Out: the files of the next step, which a running hub reads by itself, and an
//! event. Before the change is finished, the hosts that still use the CA that it leaves are named.

mod table;

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use holdfast_protocol::id::{CorrelationId, HostName};
use uuid::Uuid;

use self::table::{HostLine, lines, names};
use super::{RotateStep, opened_store};
use crate::authority::{CaFolder, Course};
use crate::clock::{Clock as _, SystemClock};
use crate::store::{CaEvent, CaEventKind, SharedStore};

pub(super) async fn run(folder: PathBuf, config: Option<PathBuf>, step: RotateStep) -> anyhow::Result<()> {
    let ca = CaFolder::open(&folder)?;
    let (store, writer) = opened_store::open(&folder, config).await?;
    let outcome = take(step, &ca, &store).await;
    drop(store);
    opened_store::close(writer).await?;
    outcome
}

async fn take(step: RotateStep, ca: &CaFolder, store: &SharedStore) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    match step {
        RotateStep::Begin => {
            let pin = ca.begin(SystemClock.now())?;
            let old = ca.cas()?.serving().pin();
            record(store, CaEventKind::Begun, format!("the hub's CA changes from {old} to {pin}")).await?;
            writeln!(out, "The new CA is {pin}.")?;
            writeln!(
                out,
                "Each host gets a certificate of it with its next check-in, and trusts both CAs from then on. Invites and \
                 `holdfast login` go on with the old CA, {old}. See how far it is with `hubd ca rotate status`; end it with \
                 `hubd ca rotate finish`. Back up the hub's folder now: it has a new key."
            )?;
        }
        RotateStep::Status => write!(out, "{}", status(ca, store).await?)?,
        RotateStep::Finish { leave, force } => {
            let leaving = if force { Leave::All } else { Leave::Named(leave) };
            write!(out, "{}", finish(ca, store, leaving).await?)?;
        }
        RotateStep::Abort => {
            ca.abort()?;
            record(store, CaEventKind::TakenBack, "the change of the hub's CA is taken back".to_owned())
                .await?;
            writeln!(
                out,
                "The change is taken back: each host gets a certificate of the old CA with its next renewal, within a day \
                 by default. Those of the new CA are accepted until `hubd ca rotate finish`."
            )?;
        }
    }
    Ok(())
}

async fn record(store: &SharedStore, kind: CaEventKind, message: String) -> anyhow::Result<()> {
    let (at, correlation) = (SystemClock.now(), CorrelationId::new(Uuid::new_v4()));
    let recorded = store.record_ca_event(CaEvent { kind, message, at, correlation }).await;
    recorded.context("the files are changed, and the event could not be written")
}

async fn hosts(ca: &CaFolder, store: &SharedStore) -> anyhow::Result<Vec<HostLine>> {
    let cas = ca.cas()?;
    let now = SystemClock.now();
    let hosts = store.host_certificates().await?;
    Ok(hosts.into_iter().map(|host| HostLine::of(host, &cas, now)).collect())
}

async fn status(ca: &CaFolder, store: &SharedStore) -> anyhow::Result<String> {
    let cas = ca.cas()?;
    let Some((leaving, course)) = cas.change() else {
        return Ok(format!(
            "The CA is {}, and no change is under way. Begin one with `hubd ca rotate begin`.\n",
            cas.serving().pin()
        ));
    };
    let hosts = hosts(ca, store).await?;
    let mut text = match course {
        Course::Forward => format!("The CA changes from {} to {}.\n", leaving.pin(), cas.issuing().pin()),
        Course::Back => {
            format!("The change is taken back: {} stays, and {} goes.\n", cas.issuing().pin(), leaving.pin())
        }
    };
    text.push_str(&lines(&hosts));
    let behind: Vec<&HostLine> = hosts.iter().filter(|host| host.depends()).collect();
    let done = hosts.len() - behind.len();
    text.push_str(&format!("\n{done} of {} hosts do not need the CA that goes.\n", hosts.len()));
    text.push_str(&if behind.is_empty() {
        "`hubd ca rotate finish` locks nobody out.\n".to_owned()
    } else {
        format!("`hubd ca rotate finish` waits for: {}.\n", names(&behind))
    });
    Ok(text)
}

/// Who is left behind.
enum Leave {
    Named(Vec<HostName>),
    All,
}

async fn finish(ca: &CaFolder, store: &SharedStore, leave: Leave) -> anyhow::Result<String> {
    let hosts = hosts(ca, store).await?;
    let behind: Vec<&HostLine> = hosts.iter().filter(|host| host.depends()).collect();
    let waited_for: Vec<&HostLine> = match &leave {
        Leave::All => Vec::new(),
        Leave::Named(left) => {
            if let Some(other) = left.iter().find(|name| !behind.iter().any(|host| host.is(name))) {
                bail!("{other} does not need the CA that goes, or is no host: nothing was changed");
            }
            behind.iter().copied().filter(|host| !left.iter().any(|name| host.is(name))).collect()
        }
    };
    if !waited_for.is_empty() {
        bail!(
            "these hosts still use the CA that goes: {}. Nothing was changed. Wait for them (`hubd ca rotate status`), or \
             leave them behind with `--leave HOST` for each, or `--force` for all: such a host is not served until it asks \
             to be let in again, which it does by itself, and an operator approves it (`holdfast host requests`)",
            names(&waited_for)
        );
    }
    let course = ca.cas()?.change().map(|(_, course)| course);
    ca.finish()?;
    let cas = ca.cas()?;
    let pin = cas.serving().pin();
    let former = cas.former().map(|former| former.to_string());
    let kept = store.keep_ca(pin.to_string(), former).await;
    let kept = kept.context("the files are changed, and the database could not be")?;
    if kept != pin.to_string() {
        bail!(
            "the files are of the CA {pin}, and the database has {kept}, which is not the one before it: a hub will not \
             start here. Restore folder and database of one time (`hubd restore`)"
        );
    }
    let left = if behind.is_empty() { "none".to_owned() } else { names(&behind) };
    let message = format!("the change of the hub's CA is finished: it is {pin}; hosts left behind: {left}");
    record(store, CaEventKind::Finished, message).await?;
    if course == Some(Course::Back) {
        return Ok(format!("The CA stays {pin}, and the other one is gone. Hosts left behind: {left}.\n"));
    }
    Ok(format!(
        "The CA is {pin}. Hosts left behind: {left}.\n\
         A running hub takes it up within seconds; connections that are open stay open until it is restarted. Who pinned the \
         CA before still reaches the hub. New pins: `holdfast login URL --ca-pin {pin}`. Back up the hub's folder now: its \
         key is another.\n"
    ))
}
