//! Which bodies kernels can run.

use super::{
    ir::{Body, Def},
    loops::{Key, find},
    reduce::Reducer,
};

/// Whether all computations of a body have loops.
pub fn has_loop(body: &Body) -> bool {
    (0..body.values.len() as u32).all(|i| match body.values[i as usize] {
        (Def::Op(code, _), lane) if code.reduces() => Reducer::of(code, lane).is_some(),
        (Def::Op(code, args), to) => {
            let from = body.lane(args[code.arity() - 1]);
            find(Key { code, from, to, uniform: [false; 3] }).is_some()
        }
        _ => true,
    })
}
