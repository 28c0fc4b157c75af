//! Nodes that a pooling of ours runs.

use ltc_ir::{Arg, DType, GraphNode, Layout};
use ltc_kernels::MaxPool;

/// The pooling a node of `aten::max_pool2d_with_indices` asks for; `None` for what this kernel does not do.
pub(super) fn max_pool(node: &GraphNode, input: &Layout) -> Option<MaxPool> {
    if node.op().name() != "aten::max_pool2d_with_indices" || input.dtype() != DType::F32 {
        return None;
    }
    let [values, positions] = node.results() else { return None };
    let [.., height, width] = *input.sizes() else { return None };
    let [.., rows, columns] = *values.sizes() else { return None };
    let dense = [input, values, positions].iter().all(|l| l.is_contiguous() && l.numel() > 0);
    let pair = |arg: Option<Arg<'_>>| match arg {
        Some(Arg::Ints([n])) => Some([*n as usize; 2]),
        Some(Arg::Ints([y, x])) => Some([*y as usize, *x as usize]),
        _ => None,
    };
    let mut args = node.args().skip(1);
    let window = pair(args.next())?;
    let stride = match args.next()? {
        Arg::Ints([]) => window,
        arg => pair(Some(arg))?,
    };
    let padding = pair(args.next())?;
    let plain = pair(args.next())? == [1, 1] && dense && i32::try_from(height * width).is_ok();
    let planes = (input.numel() / (height * width)) as usize;
    let (height, width, out) = (height as usize, width as usize, [rows as usize, columns as usize]);
    plain.then_some(MaxPool { planes, height, width, out, window, stride, padding })
}
