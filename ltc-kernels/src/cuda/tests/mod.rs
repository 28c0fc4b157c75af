//! Text for GPUs compiles, and its twin on the host computes the bits of tier 0.

mod compiles;
mod golden;
mod pointwise;
mod rows;
mod twin;

use ltc_ir::DType;

use super::Launches;
use crate::{
    FusedKernel, KernelOp, Ran,
    cases::{CODES, Case, Data, Lie},
    instruction_set,
};

/// A kernel for each operation, in every type it is there for, and for each way its inputs may lie.
fn operations(ways: &[fn(usize) -> Lie]) -> Vec<Case> {
    let types = [DType::F32, DType::F64, DType::I64, DType::I32, DType::U8, DType::Bool];
    let mut cases = Vec::new();
    for op in CODES {
        for from in types {
            let alone = [from];
            for to in if op == KernelOp::Cast { &types[..] } else { &alone } {
                cases.extend(ways.iter().filter_map(|way| Case::of_operator(op, (from, *to), way)));
            }
        }
    }
    cases
}

impl Case {
    fn launches(&self, data: Data) -> Launches {
        let kernel = self.kernel(data.rows, data.columns, data.in_place).expect("all have loops");
        Launches::of(&FusedKernel::Flat(Box::new(kernel))).expect("all have a text")
    }

    /// Compares a twin with tier 0.
    fn compare_twin(&self, twin: &twin::Twin, data: Data, numbers: &[u64], order: u32) {
        let mut kernel = self.kernel(data.rows, data.columns, data.in_place).expect("all have loops");
        kernel.set_jit(crate::Jit::Off);
        let loops = self.run(data, |to, from| {
            // SAFETY: elements are there for the space; outputs overlap nothing, or are exactly a dense input.
            let ran = unsafe { kernel.run(to, from, numbers, |n, f| f(0..n)) };
            assert!(matches!(ran, Ok(Ran::Loops)));
        });
        let launches = self.launches(data);
        let found = self.run(data, |to, from| {
            // SAFETY: elements are there for the space.
            unsafe { twin.run(&launches, (to, from), numbers, order) }.expect("threads meet");
        });
        self.assert_equal(data, &loops, &found);
    }
}

/// Whether tier 0 rounds products that are added once, as the text does.
fn rounds_once() -> bool {
    let once = instruction_set() != "portable" || cfg!(target_arch = "aarch64");
    if !once {
        eprintln!("this machine rounds products before they are added: twins are not compared");
    }
    once
}
