//! Plays one recording against a fresh instance.
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::compare::Comparer;
use super::known_differences::Book;
use super::lines::Lines;
use super::names::Names;
use super::node_polls::Look;
use super::precondition::Premises;
use super::recording::{Answer, Call, Content, Line, Task, Watched, read, task_of};
use super::report::Report;
use super::resend::Resend;
use super::time::MovedClock;
use super::watch::{Begun, Down, Watches, goes_down};
use crate::fault::Fault;
use crate::fault::admin::Edit;
use crate::http::entry::serve;
use crate::http::params;
use crate::node::Node;
use crate::sim::Sim;
use crate::wire::{Request, Response};

/// How long a worker is held when the next call meets it.
const HOLD_MS: u64 = 20_000;
/// How long a call's worker may take to come to the one it meets.
const MEET_MS_MAX: u64 = 2_000;
/// How long one task may take before the replay gives up on it.
const TASK_MS_MAX: u64 = 30_000;
/// How often a read of a held worker is repeated.
const LOOKS_AT_HELD: usize = 40;
/// Rest of a worker between its steps, so that calls can come in between as they did.
const PACE: Duration = Duration::from_millis(4);

/// Plays a file; `root_password` logs the ticket user in.
///
/// # Errors
/// When the file cannot be read or no instance starts.
pub fn file(path: &Path, book: &Book) -> Result<Report, String> {
    let lines = read(path)?;
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let first_s = lines.iter().find_map(|line| match &line.content {
        Content::Call(call) => call.answer.date_s,
        _ => None,
    });
    let clock = Arc::new(first_s.map_or_else(MovedClock::new, MovedClock::at));
    let opened = Sim::builder()
        .clock(Arc::clone(&clock) as Arc<dyn crate::clock::Clock>)
        .pace(PACE)
        .login_delay(Duration::ZERO)
        .hot_mounts(crate::node::HotMounts::NoAppArmor)
        .open()
        .map_err(|error| format!("no instance: {error}"))?;
    let rules = Lines::new().map_err(|error| error.to_string())?;
    let rights = super::rights::Inferred::new(&opened.node, &lines);
    let mut premises = Premises::new(&opened.node, &lines).map_err(|error| error.to_string())?;
    premises.opening(&book.principals);
    premises.beyond(&book.beyond);
    premises.lived_in(&book.storages);
    let mut player = Player {
        pending: Vec::new(),
        watches: Watches::default(),
        secrets: BTreeMap::new(),
        node: &opened.node,
        book,
        rules: &rules,
        names: Names::new().map_err(|error| error.to_string())?,
        report: Report::default(),
        rights,
        clock,
        name,
        root_password: opened.root_password.clone(),
    };
    for (at, line) in lines.iter().enumerate() {
        if let Content::Task(task) = &line.content {
            player.ended(task);
        }
        if let Content::Other { output, command, .. } = &line.content {
            player.looked(line.number, output);
            premises.commanded(line.number, command);
            player.brought_down(line, &mut premises);
        }
        if let Content::Watched(watched) = &line.content {
            player.watched(line, watched, &mut premises);
        }
        let Content::Call(call) = &line.content else { continue };
        let met = lines.get(at + 1).is_some_and(|next| is_met(&lines, at + 1, next));
        match player.watches.begins(&lines, at) {
            Begun::Watched => player.hold(call, true),
            Begun::Alone if met && player.watches.is_empty() => player.hold(call, false),
            Begun::Alone | Begun::Waits => {}
        }
        player.call(line, call, task_of(&lines, at), &mut premises);
    }
    player.settle();
    let mut report = player.report;
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    report.premises.extend(premises.taken.iter().map(|text| format!("{name} {text}")));
    Ok(report)
}

/// A call whose task the recording has not come to yet.
struct Pending {
    line: usize,
    call: Call,
    task: Task,
    template: String,
    response: Response,
    found: Vec<String>,
}

/// Whether an answer shows that another call was still at work.
fn shows_meeting(evidence: &str) -> bool {
    let signs = ["already exists", "is locked", "got timeout", "already used", "\"lock\":\"", "global lock"];
    signs.iter().any(|text| evidence.contains(text))
}

fn is_met(lines: &[Line], at: usize, line: &Line) -> bool {
    if let Content::Call(call) = &line.content {
        shows_meeting(&call.evidence(task_of(lines, at)))
    } else {
        false
    }
}

/// The task that an answer names.
fn upid(response: &Response) -> Option<String> {
    let body: Value = serde_json::from_slice(&response.body).ok()?;
    body.get("data")?.as_str().filter(|name| name.starts_with("UPID:")).map(str::to_owned)
}

struct Player<'a> {
    pending: Vec<Pending>,
    watches: Watches,
    /// Secrets that the node made, by token.
    secrets: BTreeMap<String, String>,
    node: &'a Arc<Node>,
    book: &'a Book,
    rules: &'a Lines,
    names: Names,
    report: Report,
    rights: super::rights::Inferred<'a>,
    clock: Arc<MovedClock>,
    name: String,
    root_password: String,
}

impl Player<'_> {
    fn call(&mut self, line: &Line, call: &Call, task: Option<&Task>, premises: &mut Premises<'_>) {
        let (template, in_path) = self.route(call);
        let about = format!("{} {} {}", call.path, Value::Object(call.params.clone()), call.evidence(task));
        if let Some(reason) = self.book.out_of_scope(&self.name, &template, &about) {
            *self.report.out.entry(reason.to_owned()).or_default() += 1;
            return;
        }
        if !self.watches.covers(line.number) {
            self.order(call, task);
        }
        if let Err(refusal) = premises.before(line, call, task, &self.names) {
            self.report.premises.push(refusal.message);
        }
        let reported = self.rights.before(&super::claims::Exchange {
            call,
            task,
            template: &template,
            in_path: &in_path,
        });
        self.report(line, reported);
        self.pass(call);
        let mut moving = self.moves();
        let mut response = self.send(call);
        self.until_held(&response, MEET_MS_MAX);
        self.learn_key(call, &response);
        if shows_meeting(&call.evidence(task)) && !self.watches.goes_on(line.number) {
            self.let_go(&response);
        }
        let mut found = self.compare(&template, call, &response);
        // A read is repeated while a task still runs, but only a limited number of times while a worker is held.
        let mut tries = if self.watches.goes_on(line.number) { LOOKS_AT_HELD } else { usize::MAX };
        while call.method == "GET" && !found.is_empty() && moving && tries > 0 {
            std::thread::park_timeout(Duration::from_millis(5));
            // Checked before the read: a task that ends after this check may still show in the answer.
            moving = self.moves();
            response = self.send(call);
            found = self.compare(&template, call, &response);
            tries -= 1;
        }
        if self.watches.ends(line.number) {
            self.node.faults.release();
        }
        self.learn(call, &response);
        match task {
            // Calls that met are followed by their tasks, all in a row.
            Some(task) if upid(&response).is_some() => {
                self.pending.push(Pending {
                    line: line.number,
                    call: call.clone(),
                    task: task.clone(),
                    template,
                    response,
                    found,
                });
            }
            Some(_) => {
                found.push("no task was started".to_owned());
                self.judge(line.number, call, task, &template, &found);
            }
            None => self.judge(line.number, call, None, &template, &found),
        }
    }

    /// A backup that was watched to its end, or stopped by its owner in its copy.
    fn watched(&mut self, line: &Line, watched: &Watched, premises: &mut Premises<'_>) {
        let (call, task) = (&watched.call, &watched.task);
        let (template, in_path) = self.route(call);
        self.settle();
        if let Err(refusal) = premises.before(line, call, Some(task), &self.names) {
            self.report.premises.push(refusal.message);
        }
        let exchange =
            super::claims::Exchange { call, task: Some(task), template: &template, in_path: &in_path };
        let reported = self.rights.before(&exchange);
        self.report(line, reported);
        self.pass(call);
        if watched.stopped {
            let (phase, task) = ("copy".to_owned(), "vzdump".to_owned());
            self.node.faults.arm(Fault::HoldWorker { phase, task, hold_ms: HOLD_MS });
        }
        let response = self.send(call);
        self.until_held(&response, TASK_MS_MAX);
        if let Some(name) = upid(&response).filter(|_| watched.stopped) {
            let path = format!("/api2/json/nodes/pve1/tasks/{name}");
            let stop =
                Call { method: "DELETE".to_owned(), path, params: serde_json::Map::new(), ..call.clone() };
            self.send(&stop);
            self.node.faults.release();
        }
        let mut found = self.compare(&template, call, &response);
        self.learn(call, &response);
        found.extend(self.task(task, &response));
        self.judge(line.number, call, Some(task), &template, &found);
    }

    /// The node goes down and comes up. In an orderly shutdown its workers get a stop request and end, and a worker that waits gets the
    /// lock next. Otherwise its workers are gone.
    fn brought_down(&mut self, line: &Line, premises: &mut Premises<'_>) {
        let Some(how) = goes_down(line) else { return };
        // Each worker has begun by then.
        let silent = || {
            let running = self.node.tasks.all().0;
            running.iter().any(|upid| self.node.tasks.log(upid).unwrap_or_default().is_empty())
        };
        let mut waited_ms = 0;
        while silent() && waited_ms < MEET_MS_MAX {
            std::thread::park_timeout(Duration::from_millis(2));
            waited_ms += 2;
        }
        if how == Down::Orderly {
            for upid in self.node.tasks.all().0 {
                let waits = self.node.tasks.log(&upid).unwrap_or_default().contains("global lock");
                if let Some(goal) = self.node.tasks.running(&upid.to_string()).filter(|_| !waits) {
                    goal.stop();
                }
            }
            self.node.faults.release();
            self.settle();
        }
        premises.edit(line.number, &Edit::Reboot);
        self.watches.ends(line.number);
        self.node.faults.release();
        self.settle();
    }

    /// Advances the clock to the recorded time.
    fn pass(&self, call: &Call) {
        match call.answer.date_s {
            Some(date_s) => self.clock.reach(date_s),
            None => self.clock.advance(Duration::from_secs(2)),
        }
    }

    /// The recording comes to the end of a task.
    fn ended(&mut self, task: &Task) {
        let Some(at) = self.pending.iter().position(|held| held.task.upid == task.upid) else { return };
        let mut held = self.pending.remove(at);
        if super::watch::is_killed(task)
            && let Some(goal) = upid(&held.response).and_then(|name| self.node.tasks.running(&name))
        {
            goal.kill();
            self.report
                .premises
                .push(format!("{} before the end of {}: its worker is killed", self.name, task.upid));
        }
        self.watches.forget(&task.upid);
        if self.watches.is_empty() {
            self.node.faults.release();
        }
        let found = self.task(task, &held.response);
        held.found.extend(found);
        self.judge(held.line, &held.call, Some(task), &held.template, &held.found);
    }

    fn report(&mut self, line: &Line, reported: Vec<String>) {
        self.report.premises.extend(
            reported.into_iter().map(|text| format!("{} before line {}: {text}", self.name, line.number + 1)),
        );
    }

    fn judge(&mut self, line: usize, call: &Call, task: Option<&Task>, template: &str, found: &[String]) {
        let evidence = call.evidence(task);
        let mut understood = 0;
        let mut open = Vec::new();
        for difference in found {
            match self.book.harmless(template, &evidence, &call.note, difference) {
                Some((number, _)) => {
                    self.report.used.insert(number);
                    understood += 1;
                }
                None => open.push(difference.clone()),
            }
        }
        let tally = self.report.calls.entry(template.to_owned()).or_default();
        tally.total += 1;
        if open.is_empty() {
            tally.equal += 1;
            tally.understood += usize::from(understood > 0);
        }
        for difference in open {
            self.report.differences.push(format!(
                "{} line {} [{}] {} {}: {difference}",
                self.name,
                line + 1,
                call.note,
                call.method,
                call.path
            ));
        }
    }

    /// Keeps the order of calls that were recorded one after the other, unless the recording shows that they ran at the same time.
    fn order(&self, call: &Call, task: Option<&Task>) {
        let met = shows_meeting(&call.evidence(task));
        if call.method != "GET" && !met {
            self.settle();
        }
    }

    /// Holds the worker of a call that the next call met, so that it does not end too soon.
    fn hold(&self, call: &Call, watched: bool) {
        let name = call.answer.body.as_ref().and_then(|body| body.get("data")?.as_str());
        if let Some(upid) = name.and_then(crate::task::upid::Upid::parse) {
            self.order(call, None);
            // Where it holds what the next call wants, or where a watched one spends its time.
            let phase = match upid.kind.as_str() {
                "vzsnapshot" => "snapshotting",
                "vzdump" if watched => "copy",
                "vzdump" => "locked",
                _ => "",
            };
            self.node.faults.arm(Fault::HoldWorker {
                phase: phase.to_owned(),
                task: upid.kind,
                hold_ms: HOLD_MS,
            });
        }
    }

    /// Waits until the worker to be held has reached its first step, or has none.
    fn until_held(&self, response: &Response, most_ms: u64) {
        let is_armed =
            || self.node.faults.armed().iter().any(|fault| matches!(fault, Fault::HoldWorker { .. }));
        let mut waited_ms = 0;
        while is_armed()
            && upid(response).is_some_and(|name| self.node.tasks.running(&name).is_some())
            && waited_ms < most_ms
        {
            std::thread::park_timeout(Duration::from_millis(1));
            waited_ms += 1;
        }
        self.node.faults.drop_holds();
    }

    /// The worker that this call met continues once the call's own worker, if any, has reached it.
    fn let_go(&self, response: &Response) {
        let own = upid(response).and_then(|name| crate::task::upid::Upid::parse(&name));
        let mut waited_ms = 0;
        while own.as_ref().is_some_and(|own| self.node.tasks.log(own).unwrap_or_default().is_empty())
            && waited_ms < MEET_MS_MAX
        {
            std::thread::park_timeout(Duration::from_millis(2));
            waited_ms += 2;
        }
        self.node.faults.release();
    }

    /// Whether a worker runs.
    fn moves(&self) -> bool {
        !self.node.tasks.all().0.is_empty()
    }

    fn settle(&self) {
        let mut waited_ms = 0;
        while self.moves() && waited_ms < TASK_MS_MAX {
            std::thread::park_timeout(Duration::from_millis(2));
            waited_ms += 2;
        }
    }

    /// The call's name in the table, and the values in its path.
    fn route(&self, call: &Call) -> (String, BTreeMap<String, String>) {
        let request =
            Request { method: call.method.clone(), target: call.path.clone(), ..Request::default() };
        let segments = params::read(&request).map(|(segments, _)| segments).unwrap_or_default();
        let found = self.node.table.find(&call.method, &segments);
        found.map_or_else(
            || (format!("{} {}", call.method, call.path), BTreeMap::new()),
            |(spec, taken)| (spec.at.clone(), taken.into_iter().collect()),
        )
    }

    fn send(&self, call: &Call) -> Response {
        let resend = Resend {
            node: self.node,
            names: &self.names,
            secrets: &self.secrets,
            root_password: &self.root_password,
        };
        serve(self.node, &resend.request(call))
    }

    fn compare(&self, template: &str, call: &Call, response: &Response) -> Vec<String> {
        let answer = self.mapped(&call.answer);
        let comparer = Comparer { lines: self.rules, call: template };
        let found = comparer.answers(&answer, response);
        if found.is_empty() || self.another_denial(call, response) { Vec::new() } else { found }
    }

    /// Of several missing rights the real code names any: it walks a hash. The recorded one must be missing here too.
    fn another_denial(&self, call: &Call, response: &Response) -> bool {
        let named = |reason: &str| {
            let inner = reason.strip_prefix("Permission check failed (")?.strip_suffix(')')?.to_owned();
            inner.split_once(", ").map(|(path, privilege)| (path.to_owned(), privilege.to_owned()))
        };
        let several = matches!(call.method.as_str(), "POST" | "PUT")
            && (call.path.ends_with("/lxc") || call.path.ends_with("/config"));
        let (Some((path, privilege)), Some(_)) = (named(&call.answer.reason), named(&response.reason)) else {
            return false;
        };
        let who = call.auth.strip_prefix("token:").unwrap_or_default();
        let world = self.node.world();
        let judge = crate::access::evaluate::Judge { config: &world.access, who };
        several && response.status == 403 && !privilege.split('|').any(|name| judge.has(&path, &[name]))
    }

    fn mapped(&self, answer: &Answer) -> Answer {
        let body = answer.body.as_ref().map(|body| {
            serde_json::from_str(&self.names.ours(&body.to_string())).unwrap_or_else(|_| body.clone())
        });
        Answer {
            reason: self.names.ours(&answer.reason),
            body_raw: self.names.ours(&answer.body_raw),
            body,
            ..answer.clone()
        }
    }

    /// Pairs a key that the node generated with the recorded one before the answers are compared.
    fn learn_key(&mut self, call: &Call, response: &Response) {
        if call.param("encryption-key").as_deref() != Some("autogen") {
            return;
        }
        let ours: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        let key = |body: &Value| body.pointer("/data/config/encryption-key")?.as_str().map(str::to_owned);
        if let (Some(recorded), Some(ours)) = (call.answer.body.as_ref().and_then(key), key(&ours)) {
            self.names.learn_key(&recorded, &ours);
        }
    }

    /// What the recorder saw on the node itself.
    fn looked(&mut self, line: usize, output: &str) {
        let Some(look) = Look::read(output) else { return };
        let found = look.differences(&self.node.world(), &self.names);
        let tally = self.report.calls.entry("looks at the secrets of storages".to_owned()).or_default();
        tally.total += 1;
        tally.equal += usize::from(found.is_empty());
        let name = &self.name;
        let reported = found.into_iter().map(|difference| format!("{name} line {}: {difference}", line + 1));
        self.report.differences.extend(reported);
    }

    fn learn(&mut self, call: &Call, response: &Response) {
        let ours: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        let made =
            |key: &str| ours.pointer(&format!("/data/{key}")).and_then(Value::as_str).map(str::to_owned);
        if let (Some(id), Some(secret)) = (made("full-tokenid"), made("value")) {
            self.secrets.insert(id, secret);
        }
        let Some(recorded) = &call.answer.body else { return };
        for pointer in ["/data", "/data/digest"] {
            if let (Some(recorded), Some(ours)) = (
                recorded.pointer(pointer).and_then(Value::as_str),
                ours.pointer(pointer).and_then(Value::as_str),
            ) && (recorded.starts_with("UPID:") || pointer.ends_with("digest"))
            {
                self.names.learn(recorded, ours);
            }
        }
    }

    fn task(&mut self, task: &Task, response: &Response) -> Vec<String> {
        let Some(name) = upid(response) else { return Vec::new() };
        let mut waited_ms = 0;
        while self.node.tasks.running(&name).is_some() && waited_ms < TASK_MS_MAX {
            std::thread::park_timeout(Duration::from_millis(2));
            waited_ms += 2;
        }
        let Some(upid) = crate::task::upid::Upid::parse(&name) else {
            return vec!["task name does not parse".to_owned()];
        };
        let log: Vec<String> =
            self.node.tasks.log(&upid).unwrap_or_default().lines().map(str::to_owned).collect();
        self.names.learn_archives(&task.log, &log);
        let mut found = Vec::new();
        let exit = self.node.tasks.ended(&name).map(|ended| ended.status).unwrap_or_default();
        let recorded = task.last.get("exitstatus").and_then(Value::as_str).unwrap_or_default();
        let (ours_kept, recorded_kept) =
            (self.rules.lasting(&exit), self.rules.lasting(&self.names.ours(recorded)));
        if ours_kept != recorded_kept {
            found.push(format!("task ended {exit:?}, recorded {recorded:?}"));
        }
        let expected: Vec<String> = task.log.iter().map(|line| self.names.ours(line)).collect();
        let (ours, recorded) = (self.rules.log(&log), self.rules.log(&expected));
        if ours != recorded {
            let at = ours.iter().zip(&recorded).take_while(|(a, b)| a == b).count();
            found.push(format!(
                "task log line {}: {:?}, recorded {:?}",
                at + 1,
                ours.get(at),
                recorded.get(at)
            ));
        }
        found
    }
}
