//! Looking at what is recorded, without running it.

use std::sync::Arc;

use ltc_core::{DataCell, Extracted, Storage, TraceValue};
use ltc_ir::SiteId;
use tch::Tensor;

use crate::{Error, recorder::core_view, runtime};

/// The value a lazy tensor shows, recorded if it is a view.
fn value_of(t: &Tensor) -> Result<TraceValue, Error> {
    let index = crate::device_of(t).ok_or_else(|| Error::Tch("expected a tensor on the ltc device".into()))?;
    let device = runtime()?.session.device(index)?;
    Ok(ltc_torch_sys::storage_of::<Storage, _>(t, |s, view| s.read(device, core_view(view), SiteId::default()))?)
}

/// A recorded computation of some tensors.
#[derive(Debug)]
pub struct Computation {
    /// The computation.
    pub extracted: Extracted,
    /// Data its parameters stand for.
    pub(crate) data: Vec<Arc<DataCell>>,
    /// Per tensor asked for: an output of the computation, or data already.
    pub(crate) outputs: Vec<Result<usize, TraceValue>>,
    pub(crate) device: u16,
}

/// The pending computation of these tensors, all on one device; nothing runs.
pub fn computation(tensors: &[Tensor]) -> Result<Computation, Error> {
    let device = tensors.iter().find_map(crate::device_of).unwrap_or(0);
    let values = tensors.iter().map(value_of).collect::<Result<Vec<_>, _>>()?;
    let mut wanted: Vec<TraceValue> = Vec::new();
    let outputs = values.into_iter().map(|v| {
        if !v.is_pending() {
            return Err(v);
        }
        Ok(wanted.iter().position(|w| w.same(&v)).unwrap_or_else(|| {
            wanted.push(v);
            wanted.len() - 1
        }))
    });
    let outputs = outputs.collect();
    let (extracted, data) = runtime()?.session.device(device)?.extract(&wanted);
    Ok(Computation { extracted, data, outputs, device })
}

/// Sends what these tensors need to run, per device.
pub(crate) fn sync(tensors: &[Tensor]) -> Result<(), Error> {
    for device in runtime()?.session.devices() {
        let here = tensors.iter().filter(|t| crate::device_of(t) == Some(device.index()));
        let values = here.map(value_of).collect::<Result<Vec<_>, _>>()?;
        device.sync_values(&values)?;
    }
    Ok(())
}

/// A number that names the value a lazy tensor holds: the same for tensors that show the same value, and, once it is
/// data, for parameters that stand for it ([`Computation`]).
pub fn value_id(t: &Tensor) -> Result<u64, Error> {
    let value = value_of(t)?;
    Ok(value.inspect(|_, _| value.address(), |cell| Arc::as_ptr(cell) as usize) as u64)
}
