//! Tasks: list, status, log, stop.
use serde_json::{Value, json};

use super::{Answer, Call, Handler, NOTHING, Reply, data};
use crate::fail::{Fallible, Refusal};
use crate::task::index::Ended;
use crate::task::upid::Upid;

/// The code of a call of this group.
#[must_use]
pub fn handler(at: &str) -> Option<Handler> {
    Some(match at {
        "GET /nodes/{node}/tasks" => list,
        "GET /nodes/{node}/tasks/{upid}" => |call| {
            upid(call)?;
            data(vec![json!({"name": "log"}), json!({"name": "status"})])
        },
        "GET /nodes/{node}/tasks/{upid}/status" => status,
        "GET /nodes/{node}/tasks/{upid}/log" => log,
        "DELETE /nodes/{node}/tasks/{upid}" => stop,
        _ => return None,
    })
}

fn upid(call: &Call<'_>) -> Fallible<Upid> {
    Upid::parse(&call.need("upid")?).ok_or_else(|| Refusal::param("upid", "unable to parse worker upid"))
}

/// The owner's own tokens and user may read a task.
/// A user owns the tasks of its tokens too, a token only its own.
fn own(call: &Call<'_>, upid: &Upid) -> bool {
    upid.owner == call.who.id || upid.owner_parts().0 == call.who.id
}

fn readable(call: &Call<'_>) -> Fallible<Upid> {
    let upid = upid(call)?;
    if !own(call, &upid) {
        call.node.world().judge(&call.who).need(&format!("/nodes/{}", call.node.name), &["Sys.Audit"])?;
    }
    Ok(upid)
}

fn status(call: &Call<'_>) -> Reply {
    let upid = readable(call)?;
    let name = upid.to_string();
    let mut out = upid.report();
    let map = out.as_object_mut().ok_or_else(|| Refusal::die("task report is not an object"))?;
    if call.node.tasks.running(&name).is_some() {
        map.insert("status".into(), json!("running"));
    } else {
        let ended = call.node.tasks.ended(&name).ok_or_else(|| Refusal::param("upid", "no such task"))?;
        map.insert("status".into(), json!("stopped"));
        map.insert("exitstatus".into(), json!(ended.status));
    }
    data(out)
}

fn log(call: &Call<'_>) -> Reply {
    let upid = readable(call)?;
    let text = call.node.tasks.log(&upid);
    if call.flag("download") {
        if call.params.contains_key("start") || call.params.contains_key("limit") {
            return Err(Refusal::die(
                "'download' cannot be used together with 'start' or 'limit' parameters",
            ));
        }
        let stamp = crate::clock::stamp(upid.starttime).replace(' ', "T");
        let name = format!("task-{}-{}-{stamp}Z.log", upid.node, upid.kind);
        return Ok(Answer::Download {
            name,
            text: text.unwrap_or_else(|error| format!("unable to open file - {}\n", plain(&error))),
        });
    }
    let text = match text {
        Ok(text) => text,
        Err(error) => {
            return Ok(Answer::Counted(
                json!([{"n": 1, "t": format!("unable to open file - {}", plain(&error))}]),
                1,
            ));
        }
    };
    let lines: Vec<&str> = text.lines().collect();
    let start = usize::try_from(call.number("start").unwrap_or_default()).unwrap_or_default();
    let limit = match call.number("limit").unwrap_or(50) {
        0 => usize::MAX,
        some => usize::try_from(some).unwrap_or(50),
    };
    let page: Vec<Value> = lines
        .iter()
        .enumerate()
        .skip(start)
        .take(limit)
        .map(|(at, line)| json!({"n": at + 1, "t": line}))
        .collect();
    Ok(Answer::Counted(Value::Array(page), lines.len()))
}

/// The system's reason without its number.
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

fn stop(call: &Call<'_>) -> Reply {
    let upid = upid(call)?;
    if upid.owner != call.who.id {
        call.node.world().judge(&call.who).need(&format!("/nodes/{}", call.node.name), &["Sys.Modify"])?;
    }
    if let Some(goal) = call.node.tasks.running(&upid.to_string()) {
        goal.stop();
    }
    NOTHING
}

fn list(call: &Call<'_>) -> Reply {
    let all = call.node.world().judge(&call.who).has(&format!("/nodes/{}", call.node.name), &["Sys.Audit"]);
    let source = call.text("source").unwrap_or_else(|| "archive".to_owned());
    let (running, ended) = call.node.tasks.all();
    let mut rows: Vec<(Upid, Option<Ended>)> = Vec::new();
    if source != "archive" {
        rows.extend(running.into_iter().map(|upid| (upid, None)));
    }
    if source != "active" {
        rows.extend(ended.into_iter().map(|(upid, ended)| (upid, Some(ended))));
    }
    rows.retain(|(upid, ended)| (all || own(call, upid)) && fits(call, upid, ended.as_ref()));
    let total = rows.len();
    let start = usize::try_from(call.number("start").unwrap_or_default()).unwrap_or_default();
    let limit = usize::try_from(call.number("limit").unwrap_or(50)).unwrap_or(50);
    let page: Vec<Value> =
        rows.iter().skip(start).take(limit).map(|(upid, ended)| row(upid, ended.as_ref())).collect();
    // Nothing found is not counted.
    if total == 0 { data(page) } else { Ok(Answer::Counted(Value::Array(page), total)) }
}

/// How many tasks the whole cluster's list shows.
const NEWEST: usize = 25;

/// `GET /cluster/tasks`: the newest of all nodes. A token never counts as an owner here: it sees all tasks or none.
///
/// # Errors
/// Never; what may not be seen is left out.
pub fn newest(call: &Call<'_>) -> Reply {
    let all = call.node.world().judge(&call.who).has("/", &["Sys.Audit"]);
    let (running, ended) = call.node.tasks.all();
    let rows = running.into_iter().map(|upid| (upid, None));
    let mut rows: Vec<(Upid, Option<Ended>)> =
        rows.chain(ended.into_iter().map(|(upid, ended)| (upid, Some(ended)))).collect();
    rows.retain(|(upid, _)| all || upid.owner_parts().0 == call.who.id);
    rows.sort_by_key(|(upid, _)| std::cmp::Reverse(upid.starttime));
    rows.truncate(NEWEST);
    let shown = rows.iter().map(|(upid, ended)| {
        let mut out = upid.report();
        if let Some(map) = out.as_object_mut() {
            map.remove("pstart");
            if let Some(ended) = ended {
                map.remove("pid");
                map.extend([
                    ("endtime".to_owned(), json!(ended.endtime)),
                    ("status".to_owned(), json!(ended.status)),
                    ("saved".to_owned(), json!("1")),
                ]);
            }
        }
        out
    });
    data(shown.collect::<Vec<_>>())
}

fn row(upid: &Upid, ended: Option<&Ended>) -> Value {
    let mut out = upid.report();
    if let Some(map) = out.as_object_mut() {
        match ended {
            Some(ended) => map.extend([
                ("endtime".to_owned(), json!(ended.endtime)),
                ("status".to_owned(), json!(ended.status)),
            ]),
            None => {
                // The list of active tasks names the whole owner and has no token of its own.
                map.remove("tokenid");
                map.extend([
                    ("status".to_owned(), json!("RUNNING")),
                    ("user".to_owned(), json!(upid.owner)),
                    ("saved".to_owned(), json!("0")),
                ]);
            }
        }
    }
    out
}

fn fits(call: &Call<'_>, upid: &Upid, ended: Option<&Ended>) -> bool {
    // One that runs did not end well so far.
    let failed = ended.is_none_or(|ended| ended.status != "OK" && !ended.status.starts_with("WARNINGS"));
    let word = match ended.map(|ended| ended.status.as_str()) {
        None => "unknown",
        Some("OK") => "ok",
        Some(text) if text.starts_with("WARNINGS") => "warning",
        Some("unexpected status") => "unknown",
        Some(_) => "error",
    };
    // A caller that requests only failed tasks is not filtered by status as well.
    let statuses = call.text("statusfilter").filter(|_| !call.flag("errors"));
    let user = upid.owner_parts().0.to_lowercase();
    call.text("userfilter").is_none_or(|part| user.contains(&part.to_lowercase()))
        && call.text("typefilter").is_none_or(|kind| upid.kind == kind)
        && call.text("vmid").is_none_or(|id| upid.id == id)
        && call.number("since").is_none_or(|since| upid.starttime >= since)
        && call.number("until").is_none_or(|until| upid.starttime <= until)
        && (!call.flag("errors") || failed)
        && statuses.is_none_or(|wanted| crate::schema::format::split_list(&wanted).any(|held| held == word))
}
