//! The parts of CI: name, suite, what comes first, limits.

use std::time::Duration;

use anyhow::Result;

use super::work;

/// One of the five suites, or what they need first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Suite {
    /// Programs and images that the others use.
    Build,
    /// Form, licences, lints.
    Check,
    /// Unit and integration tests, and a short run of the fuzz targets.
    Test,
    /// Hub, agent and simulator in one process under virtual time.
    Sim,
    /// The real programs as processes.
    E2e,
    /// Packages, booted systems, images.
    System,
}

impl Suite {
    /// All suites that can be requested by name.
    pub const NAMED: [Self; 5] = [Self::Check, Self::Test, Self::Sim, Self::E2e, Self::System];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::Check => "check",
            Self::Test => "test",
            Self::Sim => "sim",
            Self::E2e => "e2e",
            Self::System => "system",
        }
    }
}

/// Whether a part needs root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// Only root can run it.
    Needed,
    NotNeeded,
}

/// Whether a part yields to others that need the same core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Its programs watch timeouts of their own.
    Usual,
    /// It mostly computes, and has programs that wait for it.
    Low,
    /// It only computes: it gets the time that all others leave.
    Idle,
}

/// What only one part may use at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// The stage whose guests boot: its namespaces and machines have fixed names.
    BootedGuests,
    /// The folder that cargo builds into.
    CargoTarget,
    /// All cores, in the time that other parts leave.
    IdleTime,
}

/// One part of a suite: a program of its own while it runs.
pub struct Part {
    pub name: &'static str,
    /// The suite it belongs to.
    pub suite: Suite,
    /// What it shows.
    pub shows: &'static str,
    /// Whether it needs root.
    pub root: Root,
    /// Parts that must have passed before it starts.
    pub after: &'static [&'static str],
    /// Half cores that it keeps busy, on average: what runs at a time is chosen by it.
    pub load: u32,
    /// What only one part may use at a time.
    pub uses: Option<Shared>,
    /// Whether it yields.
    pub priority: Priority,
    /// It is stopped after this time; far more than it ever took.
    pub limit: Duration,
    pub run: fn() -> Result<()>,
}

/// A limit in minutes.
const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(minutes * 60)
}

const ANYBODY: Part = Part {
    name: "",
    suite: Suite::Check,
    shows: "",
    root: Root::NotNeeded,
    after: &[],
    load: 2,
    uses: None,
    priority: Priority::Usual,
    limit: minutes(15),
    run: || Ok(()),
};

/// A part that computes on all cores while the others wait.
const IDLE: Part =
    Part { load: 0, uses: Some(Shared::IdleTime), priority: Priority::Idle, limit: minutes(60), ..ANYBODY };

/// All of them, in the order in which they are started when there is room: what others wait for comes first.
pub const ALL: &[Part] = &[
    Part { name: "format", shows: "the code is in rustfmt's form", run: work::format, ..ANYBODY },
    Part {
        name: "tidy",
        shows: "layers, arrows, file lengths, docs, banned words",
        run: work::tidy_all,
        ..ANYBODY
    },
    Part {
        name: "schemas",
        shows: "the exported JSON Schemas are fresh",
        run: work::schemas_fresh,
        ..ANYBODY
    },
    Part {
        name: "programs",
        suite: Suite::Build,
        shows: "all programs and tests are built, in the one shape that tests share",
        uses: Some(Shared::CargoTarget),
        limit: minutes(30),
        run: work::build_everything,
        ..ANYBODY
    },
    Part {
        name: "tools",
        suite: Suite::Build,
        shows: "the tools that cargo installs are there, once for a machine",
        limit: minutes(30),
        run: work::fetch_tools,
        ..IDLE
    },
    Part {
        name: "images",
        suite: Suite::Build,
        shows: "Debian's packages for the images are fetched and unpacked once",
        root: Root::Needed,
        load: 1,
        limit: minutes(20),
        run: work::fetch_images,
        ..ANYBODY
    },
    Part {
        name: "lint",
        shows: "clippy with warnings denied, as tests build the code and as it is shipped",
        uses: Some(Shared::CargoTarget),
        after: &["programs"],
        run: super::lint::run,
        ..IDLE
    },
    Part {
        name: "deny",
        shows: "licences, duplicate versions, sources and known faults of what is linked",
        run: work::deny,
        ..IDLE
    },
    Part {
        name: "stacks",
        suite: Suite::System,
        shows: "PostgreSQL and Docker Compose under load in a booted guest: what a backup holds is what its label says, \
                and a controller is exchanged, or taken back; security upgrades are installed, restarted for, or taken back",
        root: Root::Needed,
        uses: Some(Shared::BootedGuests),
        after: &["programs", "images"],
        limit: minutes(30),
        run: crate::stacks::run,
        ..ANYBODY
    },
    Part {
        name: "package",
        suite: Suite::System,
        shows: "the four Debian packages, without an error that lintian finds",
        // Only root can install lintian.
        root: Root::Needed,
        after: &["tools", "programs"],
        run: work::package,
        ..ANYBODY
    },
    Part {
        name: "host",
        suite: Suite::System,
        shows: "a whole Debian that installs the packages, is set up and enrolled, lives with them and purges them",
        root: Root::Needed,
        after: &["package", "images"],
        limit: minutes(25),
        run: crate::host::life,
        // It waits most of its time.
        load: 1,
        ..ANYBODY
    },
    Part {
        name: "releases",
        suite: Suite::System,
        shows: "a Debian whose agent takes releases, good and bad, from root and from the hub, through kills and power cuts",
        root: Root::Needed,
        after: &["package", "images"],
        limit: minutes(25),
        run: crate::host::releases,
        load: 1,
        ..ANYBODY
    },
    Part {
        name: "tests",
        suite: Suite::Test,
        shows: "unit, story and conformance tests, and every fuzz target on changed seeds",
        after: &["programs"],
        limit: minutes(25),
        run: work::tests,
        ..ANYBODY
    },
    Part {
        name: "replicas",
        suite: Suite::E2e,
        shows: "three hubs on one PostgreSQL under a hundred agents: hubs, sessions and the database are ended, and nothing \
                is lost or said twice",
        after: &["programs"],
        limit: minutes(10),
        run: work::replicas,
        ..ANYBODY
    },
    Part {
        name: "browser",
        suite: Suite::E2e,
        shows: "the hub's pages in Chromium: no complaint, nothing that axe finds, by keyboard, while something happens",
        after: &["tools", "programs"],
        limit: minutes(10),
        run: work::browser,
        ..ANYBODY
    },
    Part {
        name: "process",
        suite: Suite::E2e,
        shows: "the real binaries, fed badly and killed at every point",
        after: &["programs"],
        limit: minutes(25),
        run: work::process,
        ..ANYBODY
    },
    Part {
        name: "golden",
        suite: Suite::System,
        shows: "the golden of Debian built twice, the same bytes, nothing secret, booted",
        root: Root::Needed,
        after: &["programs", "images"],
        limit: minutes(20),
        run: crate::golden::prove,
        ..ANYBODY
    },
    Part {
        name: "demo-root",
        suite: Suite::System,
        shows: "the quick story with booted guests",
        root: Root::Needed,
        uses: Some(Shared::BootedGuests),
        after: &["programs", "images"],
        run: work::demo_root,
        load: 1,
        ..ANYBODY
    },
    Part {
        name: "demo-user",
        suite: Suite::E2e,
        shows: "the whole story as an ordinary user",
        after: &["programs"],
        run: work::demo_user,
        load: 1,
        ..ANYBODY
    },
    Part {
        name: "matrix",
        suite: Suite::Sim,
        shows: "every operation killed once at every point, and again in its recovery at this run's part of the points",
        after: &["programs"],
        limit: minutes(40),
        run: work::matrix,
        ..IDLE
    },
    Part {
        name: "schedules",
        suite: Suite::Sim,
        shows: "plots, kept seeds and this run's seeds of random faults, kills, hands and documents",
        after: &["programs"],
        limit: minutes(30),
        run: work::schedules,
        uses: None,
        ..IDLE
    },
    Part {
        name: "planted",
        suite: Suite::Sim,
        shows: "this run's part of the bugs planted around the agent is found",
        after: &["programs"],
        root: Root::Needed,
        priority: Priority::Low,
        limit: minutes(20),
        run: work::planted,
        ..ANYBODY
    },
    Part {
        name: "power",
        suite: Suite::Sim,
        shows: "this run's losses of power at an agent, a hub and a guest: what was said to be written is found",
        after: &["programs"],
        root: Root::Needed,
        priority: Priority::Low,
        limit: minutes(20),
        run: work::power,
        ..ANYBODY
    },
    Part {
        name: "hostile",
        suite: Suite::Sim,
        shows: "a stolen hub: kept seeds and this run's seed, nothing of a customer's lost",
        after: &["programs"],
        limit: minutes(30),
        run: work::hostile,
        uses: None,
        ..IDLE
    },
];

/// The part of that name.
pub fn named(name: &str) -> Option<&'static Part> {
    ALL.iter().find(|part| part.name == name)
}
