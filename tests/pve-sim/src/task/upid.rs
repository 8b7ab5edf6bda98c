//! `UPID:node:PID:PSTART:STARTTIME:type:id:owner:`, the name of a task.
use serde_json::{Value, json};

/// A read task name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upid {
    /// The node it runs on.
    pub node: String,
    pub pid: u64,
    /// When the process started, in ticks.
    pub pstart: u64,
    /// When it started, in Unix seconds.
    pub starttime: i64,
    /// `vzdump`, `vzcreate` and so on.
    pub kind: String,
    /// What it works on; may be empty.
    pub id: String,
    /// `agent@pve!token` or `root@pam`.
    pub owner: String,
}

impl Upid {
    /// Reads a task name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("UPID:")?.strip_suffix(':')?;
        let mut parts = rest.splitn(7, ':');
        let mut next = || parts.next();
        let (node, pid, pstart, starttime, kind, id, owner) =
            (next()?, next()?, next()?, next()?, next()?, next()?, next()?);
        let hex = |text: &str, least: usize| {
            (text.len() >= least && text.len() <= 9).then(|| u64::from_str_radix(text, 16).ok()).flatten()
        };
        let plain =
            !node.is_empty() && !kind.is_empty() && !owner.is_empty() && !text.contains(['/', ' ', '\n']);
        let starttime = i64::try_from(hex(starttime, 8)?).ok()?;
        let upid = Self {
            node: node.into(),
            pid: hex(pid, 8)?,
            pstart: hex(pstart, 8)?,
            starttime,
            kind: kind.into(),
            id: id.into(),
            owner: owner.into(),
        };
        plain.then_some(upid)
    }

    /// The owner's user and token.
    #[must_use]
    pub fn owner_parts(&self) -> (&str, Option<&str>) {
        self.owner.rsplit_once('!').map_or((&self.owner, None), |(user, token)| (user, Some(token)))
    }

    /// What every report of a task says.
    #[must_use]
    pub fn report(&self) -> Value {
        let (user, token) = self.owner_parts();
        let mut out = json!({
            "upid": self.to_string(), "node": self.node, "pid": self.pid, "pstart": self.pstart, "starttime": self.starttime,
            "type": self.kind, "id": self.id, "user": user,
        });
        if let (Some(token), Some(map)) = (token, out.as_object_mut()) {
            map.insert("tokenid".to_owned(), json!(token));
        }
        out
    }
}

impl std::fmt::Display for Upid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { node, pid, pstart, starttime, kind, id, owner } = self;
        write!(f, "UPID:{node}:{pid:08X}:{pstart:08X}:{starttime:08X}:{kind}:{id}:{owner}:")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_there_and_back() {
        for text in [
            "UPID:pve1:0000020D:0005DA34:6B011677:vzcreate:110:agent@pve!hostagent:",
            "UPID:pve1:00000ACF:000646D8:6B01178E:vzdump::agent@pve!hostagent:",
            "UPID:pve1:00000ACF:000646D8:6B01178E:move_volume:215-mp0>214-mp0:root@pam:",
            "UPID:pve1:00000ACF:000646D8:6B01178E:imgdel:141@backup2:root@pam:",
        ] {
            assert_eq!(Upid::parse(text).map(|upid| upid.to_string()).as_deref(), Some(text));
        }
        for bad in
            ["UPID:bogus", "UPID:pve1:1:2:3:x:y:z:", "", "UPID:pve1:0000020D:0005DA34:6B011677:../x:110:a@b:"]
        {
            assert_eq!(Upid::parse(bad), None, "{bad}");
        }
    }
}
