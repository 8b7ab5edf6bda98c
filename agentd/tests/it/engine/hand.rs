//! Manual changes on the node at a chosen moment.

use std::sync::{Arc, Mutex};

use agentd::execute::failpoint::{Failpoints, Killed, Moment, Point, Side};
use pve_sim::fault::admin::{Edit, apply};
use pve_sim::node::Node;

/// Acts once, when the engine is about to do a step's effect.
pub struct HandAt {
    step: &'static str,
    act: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl HandAt {
    /// Edits configurations on the node.
    pub fn new(step: &'static str, node: &Arc<Node>, edits: Vec<Edit>) -> Arc<Self> {
        let node = Arc::clone(node);
        Self::doing(step, move || edits.iter().for_each(|edit| apply(&node, edit).unwrap()))
    }

    /// Does anything at all.
    pub fn doing(step: &'static str, act: impl FnOnce() + Send + 'static) -> Arc<Self> {
        Arc::new(Self { step, act: Mutex::new(Some(Box::new(act))) })
    }
}

impl Failpoints for HandAt {
    fn reached(&self, point: Point) -> Result<(), Killed> {
        if point == (Point { step: self.step, side: Side::Before, moment: Moment::Effect })
            && let Some(act) = self.act.lock().unwrap().take()
        {
            act();
        }
        Ok(())
    }
}
