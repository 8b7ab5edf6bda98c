//! Tests of every story, killed once at every point.
#![forbid(unsafe_code)]

use harness::matrix::plan::{Depth, Share, run_all};
use harness::story;
use holdfast_protocol::operation::OperationKind;

#[test]
fn every_operation_killed_once_at_every_point() {
    let stories = story::all();
    let report = run_all(&stories, Depth::Single, Share::WHOLE, 2);
    println!("{}\n{}", report.table(), report.summary());
    assert_eq!(report.violations(), 0, "{}", report.summary());
    // Fewer mean that a hook was lost: provision alone has a hundred points.
    assert!(report.cases() > 100 * OperationKind::ALL.len().min(4), "only {} cases", report.cases());
}
