//! Which IRs kernels can run.

use super::{
    ir::{Inst, KernelIr},
    loops::{Key, find},
    reduce::Reducer,
};

/// Whether all computations of an IR have loops.
pub fn has_loop(ir: &KernelIr) -> bool {
    (0..ir.values.len() as u32).all(|i| match ir.values[i as usize] {
        (Inst::Op(op, _), ty) if op.reduces() => Reducer::of(op, ty).is_some(),
        (Inst::Op(op, args), to) => {
            let from = ir.ty(args[op.arity() - 1]);
            find(Key { op, from, to, uniform: [false; 3] }).is_some()
        }
        _ => true,
    })
}
