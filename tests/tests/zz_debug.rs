//! debug
use ltc_tests::{program::Step::*, run::agree, subject::Lazy};
use tch::Kind::Float;
#[test]
fn dbg() {
    let p = vec![New { kind: Float, shape: vec![], fill: 117581092269100 }, New { kind: Float, shape: vec![], fill: 3206659875 }, New { kind: Float, shape: vec![1, 1, 3], fill: 4599527222830053820 }, Reduce("cumsum", 3, 0, false), Out("matmul_out", 126, 78, 153), New { kind: Float, shape: vec![], fill: 87681497230 }];
    for i in 0..p.len() { let mut q = p.clone(); q.truncate(i + 1); println!("{i}: {:?}", agree(&q, &Lazy::new()).map_err(|e| e.to_string())); }
}
