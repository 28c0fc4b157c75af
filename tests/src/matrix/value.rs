//! Values of a row on the reference backend, which reads pointwise operators from the table, beside the kernel's.

use std::sync::Arc;

use ltc_backend::{Backend, BackendError, Buffer, DeviceIndex, ExecError, HostTensor, Input, Inputs, OutputSink};
use ltc_ir::{DType, GraphBuilder, LayoutRef, SiteId, table::Row};
use tch::Tensor;

use super::call::{self, Made};

/// What came of one call.
#[derive(Debug)]
pub enum Outcome {
    /// Values agree.
    Same,
    /// The backend does not have the operator, or libtorch does not have this call.
    Lacking,
}

#[derive(Default)]
struct Outputs(Vec<Option<Result<Buffer, Arc<ExecError>>>>);

impl OutputSink for Outputs {
    fn output(&mut self, index: usize, result: Result<Buffer, Arc<ExecError>>) {
        if self.0.len() <= index {
            self.0.resize_with(index + 1, || None);
        }
        self.0[index] = Some(result);
    }
}

/// Runs a call as a graph of one node; `None` when the backend cannot lower it.
///
/// # Errors
/// Says what the rule refuses, or what failed in the backend.
pub fn on_backend(backend: &dyn Backend, row: &Row, made: &Made) -> Result<Option<Vec<HostTensor>>, String> {
    let device = DeviceIndex(0);
    let new = call::by_rule(row, made).map_err(|e| e.to_string())?;
    let mut b = GraphBuilder::new();
    let mut params = Vec::new();
    let mut operands = Vec::new();
    for t in &made.operands {
        let (layout, bytes) = ltc_torch_sys::host_bytes(t).ok_or("not a host tensor")?;
        let host = HostTensor { layout: LayoutRef::new(layout), bytes: bytes.to_vec() };
        let Ok(buffer) = backend.upload(device, &host) else { return Ok(None) };
        operands.push(b.param(host.layout));
        params.push(Input { buffer: Ok(buffer), donated: false });
    }
    let written = made.operands.iter().take(call::written(row)).map(call::layout);
    let results: Vec<LayoutRef> = written.chain(new).map(LayoutRef::from).collect();
    let op = row.code.op();
    let first = b.node(
        op,
        made.words.clone(),
        &operands,
        made.numbers.len(),
        results.iter().cloned().collect(),
        SiteId::default(),
    );
    let first = first.as_result().ok_or("a node's result")?;
    let outputs = (first..first + results.len()).map(ltc_ir::ValueId::result).collect();
    let program = match backend.compile(device, &Arc::new(b.finish(outputs))) {
        Ok(program) => program,
        Err(BackendError::CannotLower { .. }) => return Ok(None),
        Err(e) => return Err(e.to_string()),
    };
    let mut told = Outputs::default();
    program.execute(Inputs::new(params, made.numbers.to_vec()), &mut told);
    let each = told.0.into_iter().zip(&results).map(|(result, layout)| {
        let buffer = result.ok_or("an output was not told")?.map_err(|e| e.to_string())?;
        backend.download(device, &buffer, layout).map_err(|e| e.to_string())
    });
    each.collect::<Result<Vec<_>, String>>().map(Some)
}

/// A host tensor as libtorch's.
pub fn tensor(host: &HostTensor) -> Tensor {
    let l = &host.layout;
    let n = ltc_ir::layout::storage_elements(l.sizes(), l.strides());
    Tensor::from_data_size(&host.bytes, &[n], call::kind(l.dtype())).as_strided(l.sizes(), l.strides(), 0)
}

fn numbers(t: &Tensor) -> Vec<f64> {
    let flat = t.contiguous().view([-1]).to_kind(tch::Kind::Double);
    Vec::<f64>::try_from(flat).unwrap_or_default()
}

/// Compares the reference backend's values with the kernel's; `tolerance` is relative, for floats.
///
/// # Errors
/// Says which element differs, and as [`on_backend`].
pub fn compare(backend: &dyn Backend, row: &Row, made: &Made, tolerance: Option<f64>) -> Result<Outcome, String> {
    let Ok(kernel) = call::by_kernel(row, made) else { return Ok(Outcome::Lacking) };
    let Some(ours) = on_backend(backend, row, made)? else { return Ok(Outcome::Lacking) };
    for (i, (ours, theirs)) in ours.iter().zip(&kernel).enumerate() {
        let tolerance = match ours.layout.dtype() {
            d if d.is_integral(true) => 0.0,
            DType::F64 => tolerance.unwrap_or(1e-9),
            _ => tolerance.unwrap_or(2e-5),
        };
        let (a, b) = (numbers(&tensor(ours)), numbers(theirs));
        let close =
            |(x, y): (&f64, &f64)| x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= tolerance * (1.0 + y.abs());
        if let Some(at) = a.iter().zip(&b).position(|p| !close(p)) {
            return Err(format!("result {i}, element {at}: {} instead of {}", a[at], b[at]));
        }
    }
    Ok(Outcome::Same)
}
