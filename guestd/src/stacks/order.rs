//! Start order of stacks, by their dependencies and then by name.

use holdfast_protocol::id::StackName;

use super::Stack;

/// Why there is no order.
#[derive(Debug, PartialEq, Eq)]
pub enum OrderError {
    /// It waits for one that is not there.
    Unknown { stack: StackName, after: StackName },
    /// It waits for itself.
    Circle { stack: StackName },
}

/// Puts stacks in the order in which they start.
pub fn start_order(mut left: Vec<Stack>) -> Result<Vec<Stack>, OrderError> {
    for stack in &left {
        if let Some(after) = stack.after.iter().find(|after| left.iter().all(|other| other.name != **after)) {
            return Err(OrderError::Unknown { stack: stack.name.clone(), after: after.clone() });
        }
    }
    left.sort_by(|a, b| a.name.cmp(&b.name));
    let mut ordered: Vec<Stack> = Vec::with_capacity(left.len());
    while let Some(first) = left.first() {
        let free =
            |stack: &Stack| stack.after.iter().all(|after| ordered.iter().any(|done| done.name == *after));
        match left.iter().position(free) {
            Some(next) => ordered.push(left.remove(next)),
            None => return Err(OrderError::Circle { stack: first.name.clone() }),
        }
    }
    Ok(ordered)
}
