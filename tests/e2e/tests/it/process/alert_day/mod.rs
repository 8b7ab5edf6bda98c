//! A day of faults, and the notices of it at each receiver.
//!
//! The programs are real, and so are the kills. A script is a table with a row for each fault: what is wrong, who hears
//! of it, in which rounds it begins and ends. In a round many faults begin and end together; then hub, agent, both or
//! neither are killed, at once or when the hub has one of the round's alerts, as the turn of this run chooses; then all
//! notices of the round must come. At the end what the receivers were sent must be exactly what the scripts say:
//! nothing missing, nothing twice, nothing false. The three days run side by side.
//!
//! | module | contents |
//! | --- | --- |
//! | [`host`] | the hub, a host's parts, and silence |
//! | [`guests`] | guests, storages, and a Proxmox that hangs |
//! | [`protection`] | backups, restore tests and guest agents |
//! | [`fault`] | a row of a script |
//! | [`player`] | rounds and kills |
//! | [`hands`] | what operators and accidents do |
//! | [`settings`] | who hears of what, and how soon |
//! | [`arrival`] | what receivers were sent |
//! | [`table`] | the printed table, and the verdict |

mod arrival;
mod fault;
mod guests;
mod hands;
mod host;
mod player;
mod protection;
mod settings;
mod table;
