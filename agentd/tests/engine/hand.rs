//! A person's hand on the node, at a moment that a test chooses.

use std::sync::{Arc, Mutex};

use agentd::execute::failpoint::{Failpoints, Killed, Moment, Point, Side};
use pve_sim::fault::admin::{Edit, apply};
use pve_sim::node::Node;

/// Edits when the engine is about to do a step's effect.
pub struct HandAt {
    step: &'static str,
    node: Arc<Node>,
    edits: Mutex<Vec<Edit>>,
}

impl HandAt {
    pub fn new(step: &'static str, node: &Arc<Node>, edits: Vec<Edit>) -> Arc<Self> {
        Arc::new(Self { step, node: Arc::clone(node), edits: Mutex::new(edits) })
    }
}

impl Failpoints for HandAt {
    fn reached(&self, point: Point) -> Result<(), Killed> {
        if point == (Point { step: self.step, side: Side::Before, moment: Moment::Effect }) {
            self.edits.lock().unwrap().drain(..).for_each(|edit| apply(&self.node, &edit).unwrap());
        }
        Ok(())
    }
}
