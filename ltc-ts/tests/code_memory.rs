//! Machine code is never writable while it can be run, and goes with its kernel. Alone in its process, so that all code
//! is this test's.

mod common;

use common::*;
use ltc_ir::ArgWriter;
use ltc_ts::{Jit, TsConfig, code_bytes, instruction_set};
use tch::Tensor;

#[test]
fn code_is_sealed_and_freed() {
    let rigs: Vec<Rig> = (1..20)
        .map(|n| {
            let mut g = G::default();
            let shape = f32s(&[100]);
            let p = g.param(&shape);
            let exp = |g: &mut G, x| g.one("aten::exp", ArgWriter::new().tensor(), &[x], &shape);
            let y = (0..n).fold(p, |y, _| exp(&mut g, y));
            Rig::with(TsConfig { jit: Jit::Now, ..TsConfig::default() }, g.finish(&[y]))
        })
        .collect();
    assert_eq!(code_bytes(), 0);
    let x = Tensor::zeros([100], tch::kind::FLOAT_CPU);
    rigs.iter().for_each(|rig| _ = rig.run(&[&x]));
    let compiled: u64 = rigs.iter().map(|rig| rig.stats().compiled).sum();
    assert_eq!(compiled, if instruction_set().starts_with("avx") { 19 } else { 0 });
    assert!(code_bytes() >= compiled as usize * 4096);
    if let Ok(maps) = std::fs::read_to_string("/proc/self/maps") {
        let rights = maps.lines().filter_map(|line| line.split(' ').nth(1));
        assert!(rights.into_iter().all(|r| !(r.contains('w') && r.contains('x'))), "{maps}");
    }
    drop(rigs);
    assert_eq!(code_bytes(), 0);
}
