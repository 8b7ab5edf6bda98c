//! The notification after a backup.
//!
//! With an address of its own a job is mailed as in older days, else the notification system sends to `root@pam`. Without
//! one in `legacy-sendmail` nothing is sent and no line is logged.

use crate::call::Call;
use crate::schema::format::split_list;
use crate::task::Task;

/// How the end of a job is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Notice {
    /// By the notification system, whose own rules decide when.
    System,
    /// To these addresses.
    Mail { to: Vec<String>, when: When },
}

/// When mails go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Always,
    Failure,
}

/// How the job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Well,
    Badly,
}

impl Notice {
    pub(super) fn of(call: &Call<'_>) -> Self {
        let to: Vec<String> =
            split_list(&call.text("mailto").unwrap_or_default()).map(str::to_owned).collect();
        let when = match call.text("mailnotification").as_deref() {
            Some("failure") => When::Failure,
            _ => When::Always,
        };
        match call.text("notification-mode").as_deref() {
            Some("legacy-sendmail") => Self::Mail { to, when },
            Some("notification-system") => Self::System,
            _ if to.is_empty() => Self::System,
            _ => Self::Mail { to, when },
        }
    }

    pub(super) fn send(&self, task: &Task, ended: Ended) {
        match self {
            Self::System => to_root(task),
            Self::Mail { to, when } if to.is_empty() || (*when, ended) == (When::Failure, Ended::Well) => {}
            Self::Mail { to, .. } => task.log(format!("INFO: notified via target `<{}>`", to.join(","))),
        }
    }
}

/// The builtin target.
fn to_root(task: &Task) {
    let has_address =
        task.node.world().access.users.get("root@pam").is_some_and(|user| !user.email.is_empty());
    if has_address {
        task.log("INFO: notified via target `mail-to-root`");
        return;
    }
    task.log(
        "WARN: 'root@pam' does not have a configured email address in the user configuration - not sending an email to this \
         user",
    );
    task.log(
        "ERROR: could not notify via target `mail-to-root`: could not notify via endpoint(s): mail-to-root: no recipients \
         provided for the mail, cannot send it.",
    );
}
