//! Docker Compose driver.
//!
//! `docker compose ps` lists the containers, `docker compose config` the start order of the services.
//!
//! Its containers are stopped and started by Docker itself: `docker compose start web` would start what `web` depends on,
//! too, even if a person had stopped that.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use super::{Driver, Ending, Engine, Home, LOOK, Part, PartHealth, PartState, ReadError};
use crate::paths::Paths;
use crate::program::{Call, ProgramOutput};
use crate::stacks::Project;

/// How compose marks containers of `docker compose run`.
const ONE_OFF: &str = "com.docker.compose.oneoff=True";

/// A project, as it is inspected.
pub struct Compose {
    base: Vec<String>,
    folder: PathBuf,
    env: Vec<(String, String)>,
}

/// The fields that matter here of what compose reports of a container. It reports more, and more with each version.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Row {
    #[serde(rename = "ID")]
    id: String,
    service: String,
    state: String,
    #[serde(default)]
    health: String,
    #[serde(default)]
    exit_code: i64,
    #[serde(default)]
    labels: String,
}

#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    services: BTreeMap<String, Service>,
}

#[derive(Deserialize)]
struct Service {
    #[serde(default)]
    depends_on: BTreeMap<String, serde_json::Value>,
}

impl Compose {
    pub fn new(project: &Project, paths: &Paths, env: &[(String, String)]) -> Self {
        let folder = paths.inside(&project.directory);
        let mut base = vec!["docker".to_owned(), "compose".to_owned()];
        base.extend(["--project-directory".to_owned(), folder.to_string_lossy().into_owned()]);
        if let Some(file) = &project.file {
            let file = if file.is_absolute() { paths.inside(file) } else { folder.join(file) };
            base.extend(["--file".to_owned(), file.to_string_lossy().into_owned()]);
        }
        if let Some(name) = &project.name {
            base.extend(["--project-name".to_owned(), name.clone()]);
        }
        Self { base, folder, env: env.to_vec() }
    }

    fn call(&self, words: &[&str]) -> Call {
        let argv = self.base.iter().cloned().chain(words.iter().map(|word| (*word).to_owned())).collect();
        Call { argv, env: self.env.clone(), folder: Some(self.folder.clone()), limit: LOOK }
    }
}

impl Driver for Compose {
    fn engine(&self) -> Engine {
        Engine::Docker
    }

    fn look(&self) -> Vec<Call> {
        vec![
            self.call(&["ps", "--all", "--no-trunc", "--format", "json"]),
            self.call(&["config", "--format", "json"]),
        ]
    }

    fn parts(&self, said: &[ProgramOutput]) -> Result<Vec<Part>, ReadError> {
        let [ps, config] = said else {
            return Err(ReadError::Silent { program: "docker compose", about: "its containers".to_owned() });
        };
        let form = |source| ReadError::Form { program: "docker compose", source };
        let config: Config = serde_json::from_str(&config.out).map_err(form)?;
        let order = order(&config.services);
        let paths = |service: &str| order.iter().position(|name| *name == service).unwrap_or(usize::MAX);
        let mut rows = rows(&ps.out).map_err(form)?;
        rows.retain(|row| !row.labels.split(',').any(|label| label == ONE_OFF));
        rows.sort_by_key(|row| (paths(&row.service), row.service.clone(), row.id.clone()));
        Ok(rows.into_iter().map(part).collect())
    }

    fn home(&self, said: &[ProgramOutput]) -> Option<Home> {
        let config: Config = serde_json::from_str(&said.get(1)?.out).ok()?;
        let up = self.env.iter().map(|(name, value)| format!("{name}={value}")).chain(self.base.clone());
        Some(Home { project: config.name?, up: up.chain(["up".to_owned(), "--detach".to_owned()]).collect() })
    }
}

/// One row a line since compose 2.21, one list before it.
fn rows(text: &str) -> Result<Vec<Row>, serde_json::Error> {
    match text.trim_start().starts_with('[') {
        true => serde_json::from_str(text),
        false => text.lines().filter(|line| !line.trim().is_empty()).map(serde_json::from_str).collect(),
    }
}

fn part(row: Row) -> Part {
    let state = match (row.state.as_str(), row.exit_code) {
        ("running", _) => PartState::Running,
        ("restarting", _) => PartState::Restarting,
        ("exited", 0) => PartState::Done,
        _ => PartState::Stopped,
    };
    let health = match row.health.as_str() {
        "healthy" => PartHealth::Well,
        "starting" => PartHealth::Starting,
        "unhealthy" => PartHealth::Unwell,
        _ => PartHealth::Silent,
    };
    // For a container that does not run, Docker is queried for the ending, because it knows more.
    let ending = match row.state.as_str() {
        "exited" if row.exit_code == 0 => Ending::Clean,
        "created" | "paused" => Ending::Clean,
        _ => Ending::Unknown,
    };
    Part { id: row.id, name: row.service, state, health, grace: None, run: String::new(), ending }
}

/// Services in the order in which they start; where nothing is said, by name. Compose refuses circles; should there be
/// one, its services come last, by name.
fn order(services: &BTreeMap<String, Service>) -> Vec<&str> {
    let mut ordered: Vec<&str> = Vec::with_capacity(services.len());
    loop {
        let free = services.iter().find(|(name, service)| {
            let met = |on: &String| ordered.contains(&on.as_str()) || !services.contains_key(on);
            !ordered.contains(&name.as_str()) && service.depends_on.keys().all(met)
        });
        match free {
            Some((name, _)) => ordered.push(name),
            None => break,
        }
    }
    let circle: Vec<&str> =
        services.keys().map(String::as_str).filter(|name| !ordered.contains(name)).collect();
    ordered.extend(circle);
    ordered
}
