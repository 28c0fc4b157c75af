//! What programs are known to take before they run. Alone in its process, whose number of threads it changes.

mod common;

use common::*;
use ltc_backend::Executable as _;
use ltc_ir::ArgWriter;

#[test]
fn products_that_start_threads_are_known() {
    tch::set_num_threads(3);
    let threads = |op: &str, a: &[i64], b: &[i64], result: &[i64]| {
        let mut g = G::default();
        let (x, y) = (g.param(&f32s(a)), g.param(&f32s(b)));
        let product = g.one(op, ArgWriter::new().tensor().tensor(), &[x, y], &f32s(result));
        Rig::new(g.finish(&[product])).program.cost().expect("a program of the CPU").threads
    };
    assert_eq!(threads("aten::mm", &[16, 16], &[16, 16], &[16, 16]), 1);
    assert_eq!(threads("aten::mm", &[1, 64], &[64, 64], &[1, 64]), 1, "a vector");
    assert_eq!(threads("aten::mv", &[64, 64], &[64], &[64]), 1);
    assert_eq!(threads("aten::mm", &[2, 64], &[64, 2], &[2, 2]), 3);
    assert_eq!(threads("aten::mm", &[17, 16], &[16, 16], &[17, 16]), 3);
    assert_eq!(threads("aten::bmm", &[2, 4, 4], &[2, 4, 4], &[2, 4, 4]), 3);
    tch::set_num_threads(1);
    assert_eq!(threads("aten::bmm", &[2, 4, 4], &[2, 4, 4], &[2, 4, 4]), 1);
}
