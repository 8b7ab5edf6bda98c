//! Answers about recovery codes.
//!
//! In: one question of a person at the host. Out: one answer. The code is made, shown and typed in the caller's own
//! process. This module gives out what that needs and records the result. Deliberately absent: opening anything sealed
//! or wrapped.

use std::collections::BTreeSet;

use holdfast_protocol::code::ErrorCode;
use holdfast_protocol::desired::Desired;
use holdfast_protocol::envelope::ErrorBody;
use holdfast_protocol::generation::Generation;
use holdfast_protocol::id::{CustomerId, TargetName};
use holdfast_protocol::job::UtcSecond;
use holdfast_protocol::json::chain;
use holdfast_protocol::storage::TargetState;
use holdfast_recovery::escrow::{CodeNumber, Context, EscrowFile, Record};
use jiff::Timestamp;

use super::StatusTask;
use crate::execute::failpoint::{Moment, around};
use crate::gate::offsite::ServerWarrant;
use crate::model::escrow::CodeRecord;
use crate::model::storage::TargetRecord;
use crate::plan::escrow::{self, NotRetired, Purpose};
use crate::plan::offsite::key;
use crate::port::admin_socket::{
    Answer, Begun, EscrowAnswer, EscrowQuestion, EscrowStatus, TargetCode, Wrapped,
};
use crate::port::store::StoreError;
use crate::port::store::escrow::{EscrowError, Goal};

/// Why a question about codes is refused.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error(transparent)]
    Escrow(#[from] EscrowError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(
        "no off-site target is attached here with the credentials that were signed for: there is no key that a code could open"
    )]
    NoTarget,
    #[error("{0} is no attached off-site target here: `agentd storage list` shows all")]
    OtherTarget(TargetName),
    #[error("there are several off-site targets: say which with --target: {0}")]
    Targets(String),
    #[error("say whose data it is with --customer: {0}")]
    Customers(String),
    #[error("no wrapped key is kept here: run `agentd escrow create`")]
    NoFile,
    #[error("there are several keys, each with a code of its own: name the code whose words you have: {0}")]
    Files(String),
    #[error("what is to be kept is no wrapped key")]
    File(#[source] holdfast_recovery::escrow::OpenError),
    #[error("this box's clock shows a year that no sheet can carry: set it right")]
    Clock,
}

impl Refused {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Escrow(error) => error.code(),
            Self::Store(_) => ErrorCode::Unavailable,
            Self::NoTarget | Self::OtherTarget(_) | Self::NoFile => ErrorCode::NotFound,
            Self::Targets(_) | Self::Customers(_) | Self::Files(_) => ErrorCode::Missing,
            Self::File(error) => error.code(),
            Self::Clock => ErrorCode::Range,
        }
    }
}

impl StatusTask {
    /// Answers one question.
    pub(super) async fn about_codes(&self, question: EscrowQuestion, by: String) -> Answer {
        let answered = match question.writes() {
            Some(step) => {
                let point = (step, Moment::Outcome);
                around(self.failpoints.as_ref(), point, self.code_answer(question, by)).await
            }
            None => self.code_answer(question, by).await,
        };
        match answered {
            Ok(answer) => Answer::Escrow(answer),
            Err(refused) => Answer::Refused(ErrorBody::new(refused.code(), chain(&refused))),
        }
    }

    async fn code_answer(&self, question: EscrowQuestion, by: String) -> Result<EscrowAnswer, Refused> {
        let now = self.clock.now();
        match question {
            EscrowQuestion::Status => Ok(EscrowAnswer::Status(Box::new(self.codes_stand(now).await?))),
            EscrowQuestion::Begin { target, customer, purpose } => {
                let begun = self.begin_code(target, customer, (purpose, by), now).await?;
                Ok(EscrowAnswer::Begun(Box::new(begun)))
            }
            EscrowQuestion::Shown { code, attempt } => {
                self.store.note_shown((code, attempt), by, now).await?;
                Ok(EscrowAnswer::Noted)
            }
            EscrowQuestion::Keep { code, attempt, file } => {
                let file = EscrowFile::parse(file.as_bytes()).map_err(Refused::File)?;
                self.store.keep_escrow((code, attempt), file, by, now).await?;
                Ok(EscrowAnswer::Noted)
            }
            EscrowQuestion::File { code, replaces } => {
                Ok(EscrowAnswer::File(Box::new(self.wrapped(code, replaces).await?)))
            }
            EscrowQuestion::Drilled { code } => {
                self.store.note_drill(code, by, now).await?;
                Ok(EscrowAnswer::Noted)
            }
            EscrowQuestion::Retire { code } => {
                self.store.retire_escrow(code, by, now).await?;
                Ok(EscrowAnswer::Noted)
            }
        }
    }

    async fn codes_stand(&self, now: Timestamp) -> Result<EscrowStatus, StoreError> {
        let (known, records) = (self.store.escrow().await?, self.store.storage_targets().await?);
        let targets =
            records.iter().filter(|record| record.status == TargetState::Attached).filter_map(|record| {
                let code = escrow::current(&known.codes, key(&record.approval)?);
                Some(TargetCode {
                    target: record.approval.name.clone(),
                    code: code.map(|code| code.number()),
                    drill_due: code.and_then(escrow::drill_due),
                })
            });
        let targets = targets.collect();
        let problems = escrow::problems(&known, &records, now);
        Ok(EscrowStatus { known, targets, problems })
    }

    async fn begin_code(
        &self,
        target: Option<TargetName>,
        customer: Option<CustomerId>,
        (purpose, by): (Purpose, String),
        now: Timestamp,
    ) -> Result<Begun, Refused> {
        let desired = self.store.desired().await?;
        let records = self.store.storage_targets().await?;
        let warrant = chosen(warrants(&records, desired.as_ref()), target)?;
        let customer = match customer {
            Some(customer) => customer,
            None => only_customer(desired.as_ref())?,
        };
        let approval = warrant.approval().clone();
        let fingerprint = key(&approval).ok_or(Refused::NoTarget)?.clone();
        let context = Context {
            host: self.host,
            host_name: self.own.name.clone(),
            customer,
            epoch: self.store.trust_section().await?.epoch,
            // The store gives it its number.
            code: CodeNumber::FIRST,
            made_at: UtcSecond::new(now).map_err(|_| Refused::Clock)?,
        };
        let record = Record { context, fingerprint };
        let goal = Goal { record, target: approval.name.clone(), purpose, by };
        let record = self.store.begin_escrow(goal, now).await?;
        let guests = escrow::guest_numbers(&self.store.records(Generation::NONE, now).await?);
        Ok(Begun { record, attempt: now, guests, approval, sealed: warrant.creds().clone() })
    }

    async fn wrapped(
        &self,
        code: Option<CodeNumber>,
        replaces: Option<CodeNumber>,
    ) -> Result<Wrapped, Refused> {
        let known = self.store.escrow().await?.codes;
        let mut files = self.store.escrow_files().await?;
        // A code is replaced by one of the same key.
        let older = match replaces {
            Some(number) => {
                let found = known.iter().find(|one| one.number() == number);
                let key = found.ok_or(EscrowError::Unknown(number))?.key().clone();
                may_go(&known, number, self.clock.now())?;
                Some(key)
            }
            None => None,
        };
        let newest: Vec<CodeNumber> = known
            .iter()
            .filter(|one| older.as_ref().is_none_or(|key| one.key() == key))
            .filter(|one| {
                escrow::current(&known, one.key()).is_some_and(|code| code.number() == one.number())
            })
            .map(|one| one.number())
            .collect();
        let code = match (code, newest.as_slice()) {
            (Some(code), _) => code,
            (None, [one]) => *one,
            (None, []) => return Err(Refused::NoFile),
            (None, several) => {
                return Err(Refused::Files(named(several.iter().map(ToString::to_string))));
            }
        };
        let record = known.into_iter().find(|one| one.number() == code);
        let record = record.ok_or(EscrowError::Unknown(code))?.record;
        let file =
            files.remove(&code).ok_or(EscrowError::WrongStatus { code, wanted: "one that opens a key" })?;
        Ok(Wrapped { record, file: file.file.to_text() })
    }
}

/// Whether the words must be typed at all. Typing the newer code now shows that it was typed since.
fn may_go(known: &[CodeRecord], code: CodeNumber, now: Timestamp) -> Result<(), EscrowError> {
    match escrow::may_retire(known, code, now) {
        Ok(()) | Err(NotRetired::Undrilled(_)) => Ok(()),
        Err(why @ (NotRetired::Nothing(_) | NotRetired::Newest(_) | NotRetired::Held { .. })) => {
            Err(why.into())
        }
    }
}

/// Permission to open the credentials of each off-site target, as for querying its server.
fn warrants(records: &[TargetRecord], desired: Option<&Desired>) -> Vec<ServerWarrant> {
    let wanted = desired.map(Desired::storage).unwrap_or_default();
    let of = |record: &TargetRecord| {
        let goal = wanted.iter().find(|target| target.name == record.approval.name);
        ServerWarrant::of(record, goal.and_then(|target| target.creds.as_ref()))
    };
    records.iter().filter_map(of).collect()
}

fn chosen(mut all: Vec<ServerWarrant>, target: Option<TargetName>) -> Result<ServerWarrant, Refused> {
    if let Some(target) = target {
        let one = all.into_iter().find(|warrant| warrant.approval().name == target);
        return one.ok_or(Refused::OtherTarget(target));
    }
    match (all.pop(), all.as_slice()) {
        (Some(one), []) => Ok(one),
        (None, _) => Err(Refused::NoTarget),
        (Some(last), others) => Err(Refused::Targets(named(
            others.iter().chain([&last]).map(|warrant| warrant.approval().name.to_string()),
        ))),
    }
}

fn only_customer(desired: Option<&Desired>) -> Result<CustomerId, Refused> {
    let guests = desired.map(Desired::guests).unwrap_or_default();
    let customers: BTreeSet<&CustomerId> = guests.iter().map(|guest| &guest.customer).collect();
    let mut customers = customers.into_iter();
    match (customers.next(), customers.next()) {
        (Some(one), None) => Ok(one.clone()),
        (None, _) => Err(Refused::Customers("no guest here says".to_owned())),
        (Some(one), Some(other)) => {
            let all = [one, other].into_iter().chain(customers).map(ToString::to_string);
            Err(Refused::Customers(format!("there are guests of {}", named(all))))
        }
    }
}

fn named(all: impl Iterator<Item = String>) -> String {
    all.collect::<Vec<_>>().join(", ")
}
