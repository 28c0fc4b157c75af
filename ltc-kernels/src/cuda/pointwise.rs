//! Kernels without reductions: each thread computes a few elements that lie beside each other, then those as far on as
//! all threads together reach.

use super::{
    Launches, Unsupported,
    launch::Launch,
    writer::{Operand, Writer, is_narrow, operands},
};
use crate::{
    space::IterationSpace,
    tile::{Kernel, uniform},
};

/// Threads of a block.
const THREADS: u32 = 256;
/// Most blocks of a launch; where there are more elements, threads go round again.
const MAX_BLOCKS: usize = 1 << 16;
/// Bytes a thread reads or writes at once.
const ACCESS: usize = 16;
/// Most elements a thread computes side by side.
const MAX_WIDTH: usize = 8;

/// The launch of a kernel without reductions; none where there are no elements.
///
/// # Errors
/// If there is no text for the kernel.
pub(super) fn launches(kernel: &Kernel) -> Result<Launches, Unsupported> {
    let mut each = Vec::new();
    if kernel.element_count() > 0 {
        each.push(launch(kernel)?);
    }
    Ok(Launches { each, scratch_bytes: 0 })
}

fn launch(kernel: &Kernel) -> Result<Launch, Unsupported> {
    let (ir, space) = (kernel.ir(), &kernel.space);
    let (outputs, inputs) = operands(
        kernel.outputs.iter().map(|o| (o.dtype, o.access)),
        kernel.inputs.iter().map(|p| (p.dtype, p.access)),
    )?;
    let all: Vec<&Operand> = outputs.iter().chain(&inputs).collect();
    let dense = |side: &'_ [Operand]| side.iter().filter(|x| x.is_dense()).cloned().collect::<Vec<_>>();
    let width = width(space, &all);
    let uniform = uniform(ir, &kernel.inputs);

    let mut w = Writer::new(&outputs, &inputs, is_narrow(space, all.len()));
    let count = w.size("count", space.element_count() as i64);
    w.line(format_args!("const int N = {width};"));
    w.values(ir, |v| uniform[v], |i| format!("load({})", inputs[i as usize].at("0")))?;
    let whole: Vec<String> =
        all.iter().filter(|x| x.is_dense()).map(|x| format!("is_whole<{}, N>({})", x.memory, x.name)).collect();
    let whole = if whole.is_empty() { "true".to_owned() } else { whole.join(" && ") };
    w.line(format_args!("const bool whole = {whole};"));
    w.line("const I step = (I)(gridDim.x * blockDim.x) * N;");
    w.open(format_args!("for (I e = (I)(blockIdx.x * blockDim.x + threadIdx.x) * N; e < {count}; e += step)"));
    w.line(format_args!("const I left = {count} - e;"));
    for p in dense(&inputs) {
        w.line(format_args!("Pack<{}, N> x_{};", p.memory, p.name));
        w.line(format_args!("load_pack(x_{0}, {0} + e, left, whole);", p.name));
    }
    for o in dense(&outputs) {
        w.line(format_args!("Pack<{}, N> x_{};", o.memory, o.name));
    }
    w.locate("", space, &all, "e");
    let texts: Vec<String> = all.iter().map(|operand| element(&mut w, space, operand)).collect();
    w.line("#pragma unroll");
    w.open("for (int j = 0; j < N; j++)");
    w.values(ir, |v| !uniform[v], |i| format!("load({})", texts[outputs.len() + i as usize]))?;
    for (text, v) in texts.iter().zip(&ir.outputs) {
        w.line(format_args!("store({text}, v{});", v.0));
    }
    w.close();
    for o in dense(&outputs) {
        w.line(format_args!("store_pack({0} + e, x_{0}, left, whole);", o.name));
    }
    w.close();
    let blocks = space.element_count().div_ceil(width).div_ceil(THREADS as usize).min(MAX_BLOCKS);
    w.finish("pointwise", blocks as u32, THREADS)
}

/// How many elements a thread computes side by side: as many as it reads at once. They are part of one row, so that
/// only the first must be located.
fn width(space: &IterationSpace, operands: &[&Operand]) -> usize {
    let strided = operands.iter().any(|x| x.is_strided());
    let largest = operands.iter().filter(|x| x.is_dense()).map(|x| x.dtype.size_of()).max();
    let width = largest.map_or(1, |bytes| (ACCESS / bytes).min(MAX_WIDTH));
    if strided && !space.row().is_multiple_of(width) { 1 } else { width }
}

/// The text of element `j` of an operand.
fn element(w: &mut Writer, space: &IterationSpace, operand: &Operand) -> String {
    let name = &operand.name;
    if operand.is_dense() {
        format!("x_{name}.x[j]")
    } else if operand.is_strided() {
        let stride = w.stride(space, operand, space.dims().len() - 1);
        format!("{name}[at_{name} + j * {stride}]")
    } else {
        operand.at("0")
    }
}
