//! The lines of a recording.
use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};

#[derive(Debug, Clone)]
pub struct Line {
    /// 0-based number in its file.
    pub number: usize,
    /// What it is.
    pub content: Content,
}

/// What a line is.
#[derive(Debug, Clone)]
pub enum Content {
    Call(Box<Call>),
    /// The task that the call before it started.
    Task(Box<Task>),
    /// A backup that the recorder watched while it ran.
    Watched(Box<Watched>),
    Other {
        kind: String,
        /// The output, when the line is a read of the node.
        output: String,
        /// The command that the recorder gave there.
        command: String,
        /// What the recorder noted.
        note: String,
        /// How a guest was left, when something was done to it meanwhile.
        left: Option<Leftover>,
    },
}

/// A backup that was watched to its end, or until its owner stopped it while it copied.
#[derive(Debug, Clone)]
pub struct Watched {
    /// The request.
    pub call: Call,
    /// What became of it.
    pub task: Task,
    /// Whether its owner stopped it.
    pub stopped: bool,
}

/// How a guest was left after a backup that the recorder watched, stopped or killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    pub vmid: u32,
    /// Whether it runs.
    pub running: bool,
    pub lock: Option<String>,
    /// Its snapshots, without `current`.
    pub snapshots: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct Call {
    /// What the recorder noted.
    pub note: String,
    /// `GET`
    pub method: String,
    /// `/api2/json/…`, perhaps with a query.
    pub path: String,
    /// `token:agent@pve!hostagent`, `ticket:root@pam`, …
    pub auth: String,
    pub params: Map<String, Value>,
    /// Sent as JSON?
    pub json: bool,
    /// The body as text, when it was sent raw.
    pub raw_body: Option<String>,
    pub headers: BTreeMap<String, String>,
    pub answer: Answer,
}

#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub reason: String,
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// `Connection`.
    pub connection: Option<String>,
    /// `Date`, in Unix seconds.
    pub date_s: Option<i64>,
    /// The body, when it was JSON.
    pub body: Option<Value>,
    /// The body as text, when it was not.
    pub body_raw: String,
}

/// A finished task.
#[derive(Debug, Clone)]
pub struct Task {
    pub upid: String,
    /// The last polled status.
    pub last: Value,
    pub log: Vec<String>,
}

impl Call {
    /// Everything that the recording says about this call as one text; for premises.
    #[must_use]
    pub fn evidence(&self, task: Option<&Task>) -> String {
        let mut text = format!(
            "{}\n{}\n",
            self.answer.reason,
            self.answer.body.as_ref().map(ToString::to_string).unwrap_or_default()
        );
        if let Some(task) = task {
            text.push_str(&task.last.to_string());
            text.push('\n');
            text.push_str(&task.log.join("\n"));
        }
        text
    }

    /// A parameter as text.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<String> {
        self.params.get(name).and_then(crate::call::plain)
    }
}

/// Reads a file.
///
/// # Errors
/// When it cannot be read or a line is not JSON.
pub fn read(path: &Path) -> Result<Vec<Line>, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let line = |(number, text): (usize, &str)| {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| format!("{} line {}: {error}", path.display(), number + 1))?;
        Ok(Line { number, content: content(&value) })
    };
    text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty()).map(line).collect()
}

fn content(value: &Value) -> Content {
    let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
    match kind {
        "call" => return Content::Call(Box::new(call(value))),
        "task" => return Content::Task(Box::new(task(value))),
        _ => {}
    }
    match watched(value).filter(|_| kind == "phases") {
        Some(watched) => Content::Watched(Box::new(watched)),
        None => Content::Other {
            kind: kind.to_owned(),
            output: text(value, "/output"),
            command: text(value, "/cmd"),
            note: text(value, "/note"),
            left: left(value),
        },
    }
}

/// Only such whose end does not hang on the moment at which something was done to them.
fn watched(value: &Value) -> Option<Watched> {
    let events = value.get("events").and_then(Value::as_array);
    let lines = events.into_iter().flatten().filter_map(|event| event.get("line")?.as_str());
    let log: Vec<String> = lines.map(str::to_owned).collect();
    let end = log.last()?.strip_prefix("TASK ")?;
    let stopped = text(value, "/note").ends_with(" copy");
    if end != "OK" && !stopped {
        return None;
    }
    let upid = text(value, "/upid");
    let owner = crate::task::upid::Upid::parse(&upid)?.owner;
    let last = json!({ "exitstatus": end.strip_prefix("ERROR: ").unwrap_or(end), "status": "stopped" });
    let request = json!({
        "note": text(value, "/note"),
        "request": {
            "method": "POST", "path": "/api2/json/nodes/pve1/vzdump", "auth": format!("token:{owner}"),
            "params": value.get("params")?,
        },
        "response": {
            "status": 200, "reason": "OK", "body": { "data": upid },
            "headers": { "Content-Type": "application/json;charset=UTF-8" },
        },
    });
    Some(Watched { call: call(&request), task: Task { upid, last, log }, stopped })
}

fn left(value: &Value) -> Option<Leftover> {
    let state = value.get("final_state")?;
    let names =
        state.get("snapshots").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    Some(Leftover {
        vmid: value
            .pointer("/params/vmid")
            .and_then(Value::as_u64)
            .and_then(|vmid| u32::try_from(vmid).ok())?,
        running: state.get("status").and_then(Value::as_str) == Some("running"),
        lock: state.get("config_lock").and_then(Value::as_str).map(str::to_owned),
        snapshots: names.filter(|name| *name != "current").map(str::to_owned).collect(),
    })
}

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn call(value: &Value) -> Call {
    let strings = |pointer: &str| -> BTreeMap<String, String> {
        let map = value.pointer(pointer).and_then(Value::as_object);
        map.into_iter()
            .flatten()
            .filter_map(|(key, value)| value.as_str().map(|text| (key.clone(), text.to_owned())))
            .collect()
    };
    let raw = value.pointer("/request/raw_body").and_then(Value::as_str).map(str::to_owned);
    let headers = strings("/response/headers");
    Call {
        note: text(value, "/note"),
        method: text(value, "/request/method"),
        path: text(value, "/request/path"),
        auth: text(value, "/request/auth"),
        params: value.pointer("/request/params").and_then(Value::as_object).cloned().unwrap_or_default(),
        json: text(value, "/request/content_type").contains("json"),
        raw_body: raw.map(|text| unabridged(&text)),
        headers: strings("/request/extra_headers"),
        answer: Answer {
            status: value
                .pointer("/response/status")
                .and_then(Value::as_u64)
                .and_then(|n| u16::try_from(n).ok())
                .unwrap_or_default(),
            reason: text(value, "/response/reason"),
            content_type: headers.get("Content-Type").cloned(),
            connection: headers.get("Connection").cloned(),
            date_s: headers.get("Date").and_then(|text| parse_date(text)),
            body: value.pointer("/response/body").cloned(),
            body_raw: text(value, "/response/body_raw"),
        },
    }
}

/// `Mon, 23 Nov 2026 17:19:00 GMT`
fn parse_date(text: &str) -> Option<i64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [week_day, day, month, year, time, "GMT"] = words[..] else { return None };
    let day: u32 = day.parse().ok()?;
    crate::clock::parse_wordy(&format!("{} {month} {day:2} {time} {year}", week_day.trim_end_matches(',')))
}

/// `xxx...(9012 bytes in total)` is written out again.
fn unabridged(text: &str) -> String {
    let Some((head, rest)) = text.split_once("...(") else { return text.to_owned() };
    let Some(total) = rest.split_once(" bytes in total)").and_then(|(n, _)| n.parse::<usize>().ok()) else {
        return text.to_owned();
    };
    let filler = head.chars().last().unwrap_or('x');
    let mut out = head.to_owned();
    out.extend(std::iter::repeat_n(filler, total.saturating_sub(head.len())));
    out
}

fn task(value: &Value) -> Task {
    let polls = value.get("polls").and_then(Value::as_array);
    let last = polls
        .and_then(|polls| polls.last())
        .and_then(|poll| poll.pointer("/body/data"))
        .cloned()
        .unwrap_or_default();
    let lines = value.pointer("/log/body/data").and_then(Value::as_array);
    let log = lines
        .into_iter()
        .flatten()
        .filter_map(|line| line.get("t").and_then(Value::as_str).map(str::to_owned))
        .collect();
    Task { upid: text(value, "/upid"), last, log }
}

/// The task that a recorded call started.
#[must_use]
pub fn task_of(lines: &[Line], at: usize) -> Option<&Task> {
    let Content::Call(call) = &lines.get(at)?.content else { return None };
    let upid = call.answer.body.as_ref()?.get("data")?.as_str().filter(|name| name.starts_with("UPID:"))?;
    let tasks = lines
        .iter()
        .skip(at + 1)
        .filter_map(|line| if let Content::Task(task) = &line.content { Some(task.as_ref()) } else { None });
    tasks.rev().find(|task| task.upid == upid)
}
