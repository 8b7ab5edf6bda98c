//! The count of observations that prove a guest gone.
//!
//! In: guests that may be gone, by one observation of the host, and the checks of each. Out: the same observation with
//! the guests that are lost, each with what remains of it. One observation may fall into a moment of change; two in a
//! row, a whole cycle apart, do not. Deliberately absent: any memory over a restart, after which the count begins anew.

use std::collections::BTreeMap;

use holdfast_protocol::id::GuestUid;

use super::inherited_backups::Finder;
use super::observe::{Gone, Observer};
use crate::execute::Ports;
use crate::model::observed::{Loss, LossProof, Observed};
use crate::model::records::Records;
use crate::plan::missing_guest::suspects;
use crate::port::store::StoreError;

/// This many observations in a row prove a loss.
const LOOKS_THAT_PROVE: u32 = 2;

/// Which guests were proved gone, how often in a row, and by what proof last.
#[derive(Default)]
pub(super) struct Lookout(BTreeMap<GuestUid, (u32, LossProof)>);

impl Lookout {
    /// Checks every guest that may be gone.
    ///
    /// # Errors
    /// [`StoreError`].
    pub(super) async fn look(
        &mut self,
        (ports, eye, finder): (&Ports, &Observer, &mut Finder),
        records: &Records,
        observed: &mut Observed,
    ) -> Result<(), StoreError> {
        let mut counted = BTreeMap::new();
        for suspect in suspects(records, observed) {
            let Some(made_at) = ports.store.made_at(suspect.by).await? else { continue };
            let (fact, gone) = eye.look_for(&suspect, made_at).await;
            observed.vmids.insert(suspect.vmid, fact);
            match gone {
                Gone::Proved(proof) => {
                    let before = self.0.get(&suspect.guest).map_or(0, |(times, _)| *times);
                    counted.insert(suspect.guest, (before.saturating_add(1), proof));
                }
                Gone::VolumesStand(volumes) => {
                    observed.orphaned.insert(suspect.guest, volumes);
                }
                Gone::Unproved => {}
            }
        }
        self.0 = counted;
        let proved = self.0.iter().filter(|(_, (times, _))| *times >= LOOKS_THAT_PROVE);
        let lost: BTreeMap<GuestUid, LossProof> =
            proved.map(|(guest, (_, proof))| (*guest, *proof)).collect();
        if lost.is_empty() {
            return Ok(());
        }
        let mut all = finder.remains(ports, records, lost.keys().copied().collect()).await?;
        let with = |(guest, proof)| {
            let remains = all.remove(&guest).unwrap_or_default();
            (guest, Loss { proof, remains })
        };
        observed.lost = lost.into_iter().map(with).collect();
        Ok(())
    }
}
