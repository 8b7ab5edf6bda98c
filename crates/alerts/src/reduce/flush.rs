//! Notices of groups: when, why, and with which incidents.
//!
//! The group is the log of what was sent, as Alertmanager's notification log is. News are sent when the group's pace
//! allows; without news a notice is repeated. Nothing is resolved that was not sent as firing.

use holdfast_protocol::condition::Cause;
use jiff::Timestamp;

use super::Work;
use crate::deliver::{Purpose, Verdict, View, should_deliver};
use crate::group::{Entry, Group, Member, Sent};
use crate::group_key::GroupKey;
use crate::incident::{Incident, Phase};
use crate::log::LogKind;
use crate::notice::{DedupeKey, IncidentNews, Notice, NoticeIncident, Origin, Reason};
use crate::suppression::Suppression;
use crate::time::after;

/// What a receiver does not know of an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// That it fires, or got worse.
    Fire,
    /// That it flaps.
    Flapping,
    /// Nothing, but it is repeated from time to time.
    Repeat,
    /// That it is over.
    Resolve,
    /// It may be over, and the receiver never heard of it: nothing, until that is clear.
    Wait,
    /// It is over, and the receiver never heard of it.
    Forget,
}

impl Need {
    fn of(incident: &Incident, member: &Member) -> Self {
        match (incident.phase, member.sent) {
            (Phase::Resolved { .. }, Sent::Firing { .. }) => Self::Resolve,
            (Phase::Resolved { .. } | Phase::Pending { .. }, _) => Self::Forget,
            (Phase::Firing { .. }, Sent::Nothing {}) => {
                if is_away(incident) {
                    Self::Wait
                } else {
                    Self::Fire
                }
            }
            (Phase::Firing { .. }, Sent::Firing { severity }) if severity < incident.severity => Self::Fire,
            (Phase::Firing { .. }, Sent::Firing { .. })
                if incident.flapping.is_some() && incident.flapping != member.flapping_sent =>
            {
                Self::Flapping
            }
            (Phase::Firing { .. }, Sent::Firing { .. } | Sent::Inherited {}) => Self::Repeat,
        }
    }

    const fn purpose(self) -> Purpose {
        match self {
            Self::Fire | Self::Flapping | Self::Wait => Purpose::Fire,
            Self::Repeat => Purpose::Repeat,
            Self::Resolve | Self::Forget => Purpose::Resolve,
        }
    }
}

/// A member of a group, with what is decided of it.
struct Judged<'a> {
    incident: &'a Incident,
    member: &'a Member,
    need: Need,
    verdict: Verdict,
}

impl Judged<'_> {
    fn is_news(&self) -> bool {
        matches!(self.need, Need::Fire | Need::Flapping | Need::Resolve)
    }

    fn is_sent(&self) -> bool {
        self.verdict == Verdict::Deliver
    }

    fn is_repeated(&self) -> bool {
        self.need == Need::Repeat && !is_away(self.incident)
    }

    /// What a notice says of it.
    const fn news(&self) -> IncidentNews {
        match (self.incident.phase, self.member.sent, self.need) {
            (Phase::Resolved { at, .. }, _, _) => IncidentNews::Resolved { at },
            (_, Sent::Nothing {} | Sent::Inherited {}, _) => IncidentNews::New {},
            (_, Sent::Firing { .. }, Need::Fire | Need::Flapping) => IncidentNews::Changed {},
            (_, Sent::Firing { .. }, _) => IncidentNews::Ongoing {},
        }
    }

    /// What goes into a notice that is sent anyway. What an operator acknowledged is still shown.
    fn is_listed(&self) -> bool {
        let acknowledged = matches!(self.verdict, Verdict::Suppress(Suppression::Acknowledged { .. }));
        !matches!(self.need, Need::Forget | Need::Wait)
            && (self.is_sent() || (self.need == Need::Repeat && acknowledged))
    }
}

/// Whether it may be over: that it fires is neither announced nor repeated then.
const fn is_away(incident: &Incident) -> bool {
    incident.absent_since.is_some() && incident.flapping.is_none()
}

/// When a group sends next.
struct Schedule {
    /// When its news are sent, where it has any that may be.
    news: Option<Timestamp>,
    /// When it is repeated, where something may be.
    repeat: Option<Timestamp>,
    /// When a suppression ends by itself.
    released: Option<Timestamp>,
}

impl Work<'_> {
    pub(super) fn flush(&mut self) {
        for key in self.state.groups.keys().cloned().collect::<Vec<_>>() {
            self.forget(&key);
            self.mute(&key);
            let Some(group) = self.state.groups.get(&key) else { continue };
            let (schedule, judged) = (self.schedule(group), self.judge(group));
            let news = judged.iter().any(|one| one.is_news() && one.is_sent());
            let repeat = judged.iter().any(|one| one.is_repeated() && one.is_sent());
            let is_due = |at: Option<Timestamp>| at.is_some_and(|at| at <= self.now);
            if is_due(schedule.news) || (is_due(schedule.repeat) && (news || repeat)) {
                let reason = if news { reason(group, &judged) } else { Reason::Repeat };
                self.send(&key, reason);
            } else if is_due(schedule.repeat) {
                self.skip_repeat(&key);
            }
        }
    }

    /// When a group next needs a look, as far as nothing changes.
    pub(super) fn group_due(&self, group: &Group) -> Option<Timestamp> {
        let Schedule { news, repeat, released } = self.schedule(group);
        [news, repeat, released].into_iter().flatten().min()
    }

    fn judge<'b>(&'b self, group: &'b Group) -> Vec<Judged<'b>> {
        let view = View::new(&self.state, self.setting, self.now);
        let judge = |(number, member): (&u64, &'b Member)| {
            let incident = self.state.incidents.get(number)?;
            let need = Need::of(incident, member);
            let verdict = should_deliver(incident, need.purpose(), &group.key.receiver, &view);
            Some(Judged { incident, member, need, verdict })
        };
        group.members.iter().filter_map(judge).collect()
    }

    fn schedule(&self, group: &Group) -> Schedule {
        let judged = self.judge(group);
        let pace = self.setting.rules.pace(&group.key.route);
        let sent: Vec<&Judged<'_>> = judged.iter().filter(|one| one.is_news() && one.is_sent()).collect();
        // The silence of a host is an alarm with a promised time, and escalations have waited already.
        let at_once = sent.iter().any(|one| {
            let escalates = one.need == Need::Fire && one.member.entry == Entry::Escalation;
            escalates || one.incident.code.spec().cause == Cause::HostSilence
        });
        let paced = match group.sent_at {
            _ if at_once => group.opened,
            Some(at) => after(at, pace.group_interval_s),
            None => after(group.opened, pace.group_wait_s),
        };
        let repeats = judged.iter().any(Judged::is_repeated);
        let released = judged.iter().filter(|one| one.is_news()).filter_map(|one| match &one.verdict {
            Verdict::Suppress(why) => why.until(),
            Verdict::Deliver => None,
        });
        Schedule {
            news: (!sent.is_empty()).then_some(paced),
            repeat: repeats.then(|| after(group.repeat_from, pace.repeat_interval_s)),
            released: released.min(),
        }
    }

    /// Removes what is over and was never sent, or is not wanted.
    fn forget(&mut self, key: &GroupKey) {
        let Some(group) = self.state.groups.get(key) else { return };
        let forgotten = self.judge(group).into_iter().filter_map(|one| match (one.need, one.verdict) {
            (Need::Forget, _) => Some((one.incident.id.number, Suppression::NeverSent {})),
            (
                Need::Resolve,
                Verdict::Suppress(why @ (Suppression::ResolvedUnwanted {} | Suppression::OtherCustomer {})),
            ) => Some((one.incident.id.number, why)),
            (Need::Fire | Need::Flapping | Need::Repeat | Need::Resolve | Need::Wait, _) => None,
        });
        for (number, why) in forgotten.collect::<Vec<_>>() {
            self.state.groups.entry(key.clone()).and_modify(|group| {
                group.members.remove(&number);
            });
            self.log(Some(number), LogKind::Suppressed { receiver: Some(key.receiver.clone()), why });
        }
    }

    /// Notes why news are muted, once for each reason.
    fn mute(&mut self, key: &GroupKey) {
        let Some(group) = self.state.groups.get(key) else { return };
        let judged = self.judge(group).into_iter().filter(Judged::is_news);
        let muted = judged.filter_map(|one| match one.verdict {
            Verdict::Suppress(why) if one.member.muted.as_ref() != Some(&why) => {
                Some((one.incident.id.number, why))
            }
            Verdict::Suppress(_) | Verdict::Deliver => None,
        });
        for (number, why) in muted.collect::<Vec<_>>() {
            self.state.groups.entry(key.clone()).and_modify(|group| {
                group.members.entry(number).and_modify(|member| member.muted = Some(why.clone()));
            });
            self.log(Some(number), LogKind::Suppressed { receiver: Some(key.receiver.clone()), why });
        }
    }

    /// A repeat that is muted counts as sent, so the end of a maintenance window announces nothing twice.
    fn skip_repeat(&mut self, key: &GroupKey) {
        let Some(group) = self.state.groups.get(key) else { return };
        let muted = self.judge(group).into_iter().filter_map(|one| match (one.need, one.verdict) {
            (Need::Repeat, Verdict::Suppress(why)) => Some((one.incident.id.number, why)),
            (_, Verdict::Suppress(_) | Verdict::Deliver) => None,
        });
        for (number, why) in muted.collect::<Vec<_>>() {
            self.log(Some(number), LogKind::Suppressed { receiver: Some(key.receiver.clone()), why });
        }
        let now = self.now;
        self.state.groups.entry(key.clone()).and_modify(|group| group.repeat_from = now);
    }

    fn send(&mut self, key: &GroupKey, reason: Reason) {
        let Some(group) = self.state.groups.get(key) else { return };
        let listed = self.judge(group).into_iter().filter(Judged::is_listed);
        let (mut firing, resolved): (Vec<NoticeIncident>, Vec<NoticeIncident>) = listed
            .map(|one| NoticeIncident::of(one.incident, one.news(), self.setting.host))
            .partition(NoticeIncident::is_firing);
        firing.extend(resolved);
        self.state.row.notices_made += 1;
        let scope = self.state.row.scope;
        let notice = Notice {
            key: DedupeKey::of(scope, &key.receiver, reason, self.state.row.notices_made),
            receiver: key.receiver.clone(),
            reason,
            origin: Origin::Group { scope, key: Box::new(key.clone()) },
            incidents: firing,
            made_at: self.now,
            not_before: self.now,
        };
        self.state.groups.entry(key.clone()).and_modify(|group| note_sent(group, &notice));
        for incident in &notice.incidents {
            let (receiver, notice) = (notice.receiver.clone(), notice.key.clone());
            self.log(Some(incident.id.number), LogKind::Queued { receiver, notice, reason });
        }
        self.notices.push(notice);
    }
}

/// Writes down in the group what its receiver is sent.
fn note_sent(group: &mut Group, notice: &Notice) {
    (group.sent_at, group.repeat_from) = (Some(notice.made_at), notice.made_at);
    for incident in &notice.incidents {
        let number = incident.id.number;
        match incident.news {
            IncidentNews::Resolved { .. } => {
                group.members.remove(&number);
            }
            IncidentNews::New {} | IncidentNews::Changed {} | IncidentNews::Ongoing {} => {
                group.members.entry(number).and_modify(|member| {
                    member.sent = Sent::Firing { severity: incident.severity };
                    member.flapping_sent = incident.flapping_since;
                    member.muted = None;
                });
            }
        }
    }
}

/// Why news are sent.
fn reason(group: &Group, judged: &[Judged<'_>]) -> Reason {
    let news = || judged.iter().filter(|one| one.is_news() && one.is_sent());
    let has = |need: Need| news().any(|one| one.need == need);
    let held = |one: &Judged<'_>| matches!(one.member.muted, Some(Suppression::QuietHours { .. }));
    if news().any(held) {
        Reason::Digest
    } else if news().any(|one| one.need == Need::Fire && one.member.entry == Entry::Escalation) {
        Reason::Escalation
    } else if has(Need::Fire) {
        if group.sent_at.is_none() { Reason::First } else { Reason::NewInGroup }
    } else if has(Need::Flapping) {
        Reason::Flapping
    } else if judged.iter().any(|one| one.need != Need::Resolve) {
        Reason::SomeResolved
    } else {
        Reason::AllResolved
    }
}
