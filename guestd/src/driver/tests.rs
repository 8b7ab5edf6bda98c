//! Tests of driver calls and answers.

use std::path::{Path, PathBuf};

use super::*;
use crate::program::ExitState;
use crate::stacks::Project;

fn said(out: &str, err: &str) -> ProgramOutput {
    let ended = if err.is_empty() { ExitState::Well } else { ExitState::Badly("exit status: 1".to_owned()) };
    ProgramOutput { ended, out: out.to_owned(), err: err.to_owned() }
}

fn compose() -> compose::Compose {
    let project = Project { directory: "/srv/web".into(), file: Some("prod.yml".into()), name: None };
    compose::Compose::new(
        &project,
        &Paths::new(Path::new("/")),
        &[("HOLDFAST_VOLUME_DB".into(), "/srv/db".into())],
    )
}

const CONFIG: &str = r#"{"name":"web","services":{
    "api":{"image":"a","depends_on":{"db":{"condition":"service_healthy"},"zeta":{"condition":"service_started"}}},
    "db":{"image":"d"}, "migrate":{"depends_on":{"db":{}}}, "zeta":{"depends_on":{"elsewhere":{}}}}}"#;

const LINES: &str = r#"{"ID":"aaa","Service":"api","State":"running","Health":"","ExitCode":0,"Labels":"x=y","Publishers":[]}
{"ID":"bbb","Service":"db","State":"running","Health":"unhealthy","ExitCode":0}
{"ID":"ccc","Service":"migrate","State":"exited","Health":"","ExitCode":0}
{"ID":"ddd","Service":"zeta","State":"exited","ExitCode":137}
{"ID":"eee","Service":"api","State":"restarting","ExitCode":1}
{"ID":"fff","Service":"api","State":"running","Labels":"a=b,com.docker.compose.oneoff=True"}
"#;

#[test]
fn compose_lists_containers_in_start_order() {
    let list = format!("[{}]", LINES.trim().replace('\n', ","));
    for text in [LINES, &list] {
        let parts = compose().parts(&[said(text, ""), said(CONFIG, "")]).unwrap();
        let status: Vec<(&str, PartState, PartHealth)> =
            parts.iter().map(|part| (part.id.as_str(), part.state, part.health)).collect();
        assert_eq!(
            status,
            [
                ("bbb", PartState::Running, PartHealth::Unwell),
                ("ccc", PartState::Done, PartHealth::Silent),
                ("ddd", PartState::Stopped, PartHealth::Silent),
                ("aaa", PartState::Running, PartHealth::Silent),
                ("eee", PartState::Restarting, PartHealth::Silent),
            ]
        );
        let running = groups(parts.iter().filter(|part| part.state.is_wanted()));
        assert_eq!(running.len(), 2);
        assert_eq!((running[1].name.as_str(), running[1].ids.join(" ").as_str()), ("api", "aaa eee"));
    }
    assert!(compose().parts(&[said("", ""), said(CONFIG, "")]).unwrap().is_empty());
    assert!(matches!(compose().parts(&[said("no", ""), said(CONFIG, "")]), Err(ReadError::Form { .. })));
}

#[test]
fn compose_is_asked_within_its_folder_with_its_volumes() {
    let calls = compose().look();
    assert_eq!(
        calls[0].line(),
        "docker compose --project-directory /srv/web --file /srv/web/prod.yml ps --all --no-trunc --format json"
    );
    assert_eq!(calls[0].folder, Some(PathBuf::from("/srv/web")));
    assert!(calls[1].env.contains(&("HOLDFAST_VOLUME_DB".into(), "/srv/db".into())));
}

fn group(name: &str, ids: &[&str]) -> Group {
    Group { name: name.to_owned(), ids: ids.iter().map(|id| (*id).to_owned()).collect() }
}

#[test]
fn parts_stop_in_the_other_order_than_they_start() {
    let groups = [group("db", &["bbb"]), group("api", &["aaa", "eee"])];
    let lines = |calls: Vec<Call>| calls.iter().map(Call::line).collect::<Vec<_>>();
    let limit = Duration::from_secs(9);
    assert_eq!(lines(Engine::Docker.stop(&groups, limit)), ["docker stop aaa eee", "docker stop bbb"]);
    assert_eq!(
        lines(Engine::Docker.start(&groups, Baseline::BeforeStop, limit)),
        ["docker start bbb", "docker start aaa eee"]
    );
    assert_eq!(lines(Engine::Systemd.stop(&groups[..1], limit)), ["systemctl stop -- bbb"]);
}

#[test]
fn docker_waits_no_longer_than_we_do() {
    let groups = [group("db", &["bbb"]), group("api", &["aaa", "eee"])];
    let line = |text: &str, left| {
        let parts = Engine::Docker.checked(&groups[1..], &said(text, "")).unwrap();
        Engine::Docker.stop_within(&groups[1], &parts, Duration::from_secs(left)).line()
    };
    // Its own patience, or Docker's, is kept where it is the shorter one.
    assert_eq!(
        line("aaa running 0 none now 20\neee running 0 none now <no value>\n", 60),
        "docker stop aaa eee"
    );
    assert_eq!(line("aaa running 0 none now <nil>\neee running 0 none now\n", 60), "docker stop aaa eee");
    assert_eq!(
        line("aaa running 0 none now 300\neee running 0 none now 5\n", 60),
        "docker stop -t 55 aaa eee"
    );
    assert_eq!(line("aaa running 0 none now -1\neee running 0 none now 5\n", 8), "docker stop -t 4 aaa eee");
    assert_eq!(line("aaa running 0 none now 10\neee running 0 none now 10\n", 1), "docker stop -t 1 aaa eee");
    let unit = group("db.service", &["db.service"]);
    let parts = Engine::Systemd
        .checked(std::slice::from_ref(&unit), &said("LoadState=loaded\nActiveState=active", ""))
        .unwrap();
    let call = Engine::Systemd.stop_within(&unit, &parts, Duration::from_secs(3));
    assert_eq!((call.line().as_str(), call.limit), ("systemctl stop -- db.service", Duration::from_secs(3)));
}

#[test]
fn a_unit_that_was_killed_did_not_end_by_itself() {
    let unit = group("db.service", &["db.service"]);
    let state = |result: &str| {
        let text = format!("LoadState=loaded\nActiveState=failed\nResult={result}\n");
        Engine::Systemd.checked(std::slice::from_ref(&unit), &said(&text, "")).unwrap()[0].state
    };
    assert_eq!(
        ["timeout", "signal", "exit-code"].map(state),
        [PartState::Killed, PartState::Killed, PartState::Stopped]
    );
}

#[test]
fn a_container_is_gone_only_when_docker_says_so() {
    let groups = [group("db", &["bbb"]), group("api", &["aaa", "eee"])];
    let whole = "bbb running 0 healthy\naaa exited 0 none\neee exited 137 none\n";
    let parts = Engine::Docker.checked(&groups, &said(whole, "")).unwrap();
    assert_eq!(
        parts.iter().map(|part| part.state).collect::<Vec<_>>(),
        [PartState::Running, PartState::Done, PartState::Killed]
    );
    let gone = said("bbb running 0 none\naaa created 0 none\n", "Error: No such container: eee\n");
    assert_eq!(Engine::Docker.checked(&groups, &gone).unwrap()[2].state, PartState::Gone);
    let away =
        said("", "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is it running?\n");
    assert!(matches!(Engine::Docker.checked(&groups, &away), Err(ReadError::Silent { .. })));
}

#[test]
fn units_are_what_systemd_says() {
    let units = ["a.service", "b.socket", "c.service", "d.service"].map(str::to_owned);
    let driver = systemd::Units::new(&units);
    let block = |load: &str, active: &str| format!("LoadState={load}\nActiveState={active}\n");
    let text = [
        block("loaded", "active"),
        block("loaded", "activating"),
        block("loaded", "failed"),
        block("loaded", "deactivating"),
    ]
    .join("\n");
    let parts = driver.parts(&[said(&text, "")]).unwrap();
    let states: Vec<PartState> = parts.iter().map(|part| part.state).collect();
    assert_eq!(states, [PartState::Running, PartState::Running, PartState::Stopped, PartState::Stopping]);
    assert_eq!(parts[2].health, PartHealth::Unwell);
    let missing = text.replace("loaded\nActiveState=failed", "not-found\nActiveState=inactive");
    let error = driver.parts(&[said(&missing, "")]).unwrap_err();
    assert!(error.to_string().contains("no unit c.service"), "{error}");
    assert!(matches!(driver.parts(&[said("", "")]), Err(ReadError::Silent { .. })));
}

#[test]
fn what_is_part_of_a_unit_belongs_to_it() {
    let driver = systemd::Units::new(&["app.service".to_owned(), "postgresql.service".to_owned()]);
    let block =
        |active: &str, parts: &str| format!("LoadState=loaded\nActiveState={active}\nConsistsOf={parts}\n");
    let first = [
        block("active", ""),
        block("active", "postgresql@17-main.service postgresql@16-old.service app.service"),
    ];
    let first = said(&first.join("\n"), "");
    let next = driver.look_on(std::slice::from_ref(&first));
    let line = |calls: &[Call]| calls.iter().map(Call::line).collect::<Vec<_>>().join("; ");
    assert!(
        line(&next).ends_with("-- postgresql@16-old.service postgresql@17-main.service"),
        "{}",
        line(&next)
    );
    let tell = |old: &str, main: &str| {
        let second = said(&[block(old, ""), block(main, "postgresql.service")].join("\n"), "");
        assert!(driver.look_on(&[first.clone(), second.clone()]).is_empty(), "nothing is asked twice");
        driver.parts(&[first.clone(), second]).unwrap()
    };
    // They come first, so that they stop last and are waited for. A unit that is not named and does not run is no part.
    let parts = tell("inactive", "deactivating");
    let status: Vec<(&str, PartState)> = parts.iter().map(|part| (part.id.as_str(), part.state)).collect();
    assert_eq!(
        status,
        [
            ("postgresql@17-main.service", PartState::Stopping),
            ("app.service", PartState::Running),
            ("postgresql.service", PartState::Running)
        ]
    );
    let parts = tell("failed", "active");
    assert_eq!((parts.len(), parts[0].health), (4, PartHealth::Unwell));
}

#[test]
fn what_needs_a_unit_comes_after_it_however_it_is_met() {
    let driver = systemd::Units::new(&["db.service".to_owned(), "cache.service".to_owned()]);
    let block = |ties: &str| format!("LoadState=loaded\nActiveState=active\n{ties}\n");
    let round = |ties: &[&str]| said(&ties.iter().map(|ties| block(ties)).collect::<Vec<_>>().join("\n"), "");
    // web needs db, and app, which needs db; cluster is a part of app; both need and belong; a circle ends.
    let first =
        round(&["RequiredBy=web.service app.service\nBoundBy=bound.mount", "PropagatesStopTo=told.service"]);
    let next = driver.look_on(std::slice::from_ref(&first));
    assert!(
        next[0].line().ends_with("-- app.service bound.mount told.service web.service"),
        "{}",
        next[0].line()
    );
    let second = round(&[
        "RequisiteOf=web.service\nConsistsOf=cluster.service web.service",
        "",
        "RequiredBy=app.service",
        "RequiredBy=cache.service",
    ]);
    let third = round(&[""]);
    let parts = driver.parts(&[first, second, third]).unwrap();
    let status: Vec<&str> = parts.iter().map(|part| part.id.as_str()).collect();
    assert_eq!(
        status,
        [
            "db.service",
            "cache.service",
            "bound.mount",
            "told.service",
            "cluster.service",
            "app.service",
            "web.service"
        ]
    );
}

#[test]
fn units_that_cannot_all_be_started_again_are_not_stopped() {
    let driver = systemd::Units::new(&["db.service".to_owned()]);
    let needs: Vec<String> = (0..200).map(|number| format!("app@{number}.service")).collect();
    let first = said(&format!("LoadState=loaded\nActiveState=active\nRequiredBy={}\n", needs.join(" ")), "");
    assert!(driver.look_on(std::slice::from_ref(&first)).is_empty());
    let error = driver.parts(&[first]).unwrap_err();
    assert!(matches!(error, ReadError::TooMany { .. }), "{error}");
}

#[test]
fn what_falls_over_again_and_again_is_not_up() {
    let unit = group("db.service", &["db.service"]);
    let text = "LoadState=loaded\nActiveState=activating\nSubState=auto-restart\nInvocationID=4f\n";
    let parts = Engine::Systemd.checked(std::slice::from_ref(&unit), &said(text, "")).unwrap();
    assert_eq!((parts[0].state, parts[0].run.as_str()), (PartState::Restarting, "4f"));
    let text = text.replace("auto-restart", "start");
    let parts = Engine::Systemd.checked(&[unit], &said(&text, "")).unwrap();
    assert_eq!(parts[0].state, PartState::Running);
    let parts = Engine::Docker
        .checked(&[group("api", &["aaa"])], &said("aaa restarting 1 none 2026-11-23T05:00:00Z 10\n", ""))
        .unwrap();
    assert_eq!((parts[0].state, parts[0].run.as_str()), (PartState::Restarting, "2026-11-23T05:00:00Z"));
}
