//! Values: arrays in logical order, whatever strides their layout has.

use std::{num::Wrapping, ops::AddAssign};

use ltc_ir::{DType, Layout, LayoutRef, Scalar, layout};
use ndarray::{ArrayD, IxDyn, LinalgScalar};

use crate::{BackendError, HostTensor};

/// Numbers of a value. Floats are kept as doubles that their dtype can hold.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Data {
    Float(ArrayD<f64>),
    /// Integers and booleans.
    Int(ArrayD<i64>),
    /// The state of a generator.
    State(u64),
}

/// A number that kernels compute with, so that each is written once: integers above 2^53 are no doubles. Sums and
/// products of integers wrap, as libtorch's do.
pub(crate) trait Element: LinalgScalar + PartialOrd + AddAssign + Default {
    fn array(data: &Data) -> ArrayD<Self>;
    fn data(array: ArrayD<Self>) -> Data;
    fn number(number: Scalar) -> Self;
    /// Whether it is NaN.
    fn is_nan(self) -> bool;
}

impl Element for f64 {
    fn array(data: &Data) -> ArrayD<f64> {
        data.floats()
    }

    fn data(array: ArrayD<f64>) -> Data {
        Data::Float(array)
    }

    fn number(number: Scalar) -> f64 {
        match number {
            Scalar::Bool(b) => f64::from(u8::from(b)),
            Scalar::Int(i) => i as f64,
            Scalar::Float(x) | Scalar::Complex(x, _) => x,
        }
    }

    fn is_nan(self) -> bool {
        f64::is_nan(self)
    }
}

impl Element for Wrapping<i64> {
    fn array(data: &Data) -> ArrayD<Wrapping<i64>> {
        data.ints().mapv(Wrapping)
    }

    fn data(array: ArrayD<Wrapping<i64>>) -> Data {
        Data::Int(array.mapv(|x| x.0))
    }

    fn number(number: Scalar) -> Wrapping<i64> {
        Wrapping(match number {
            Scalar::Int(i) => i,
            other => f64::number(other) as i64,
        })
    }

    fn is_nan(self) -> bool {
        false
    }
}

/// A value of a graph.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) layout: LayoutRef,
    pub(crate) data: Data,
}

/// Whether this backend computes in a dtype.
pub(crate) fn supports(dtype: DType) -> bool {
    use DType::{Bool, F32, F64, I8, I16, I32, I64, RngState, U8};
    matches!(dtype, F32 | F64 | I64 | I32 | I16 | I8 | U8 | Bool | RngState)
}

pub(crate) fn shape(sizes: &[i64]) -> IxDyn {
    IxDyn(&sizes.iter().map(|&s| s as usize).collect::<Vec<_>>())
}

/// The nearest number of a dtype.
pub(crate) fn round(dtype: DType, x: f64) -> f64 {
    if dtype == DType::F32 { f64::from(x as f32) } else { x }
}

/// An integer as its dtype wraps it.
pub(crate) fn wrap(dtype: DType, x: i64) -> i64 {
    match dtype {
        DType::Bool => i64::from(x != 0),
        DType::U8 => i64::from(x as u8),
        DType::I8 => i64::from(x as i8),
        DType::I16 => i64::from(x as i16),
        DType::I32 => i64::from(x as i32),
        _ => x,
    }
}

impl Data {
    /// As doubles.
    pub(crate) fn floats(&self) -> ArrayD<f64> {
        match self {
            Data::Float(a) => a.clone(),
            Data::Int(a) => a.mapv(|x| x as f64),
            Data::State(_) => ArrayD::zeros(IxDyn(&[])),
        }
    }

    /// As integers, towards zero.
    pub(crate) fn ints(&self) -> ArrayD<i64> {
        match self {
            Data::Float(a) => a.mapv(|x| x as i64),
            Data::Int(a) => a.clone(),
            Data::State(_) => ArrayD::zeros(IxDyn(&[])),
        }
    }

    /// As another dtype: rounded, wrapped, or whether it is not zero.
    pub(crate) fn cast(&self, dtype: DType) -> Data {
        match self {
            Data::State(_) => self.clone(),
            Data::Float(a) if dtype == DType::Bool => Data::Int(a.mapv(|x| i64::from(x != 0.0))),
            _ if dtype.is_floating() => Data::Float(self.floats().mapv(|x| round(dtype, x))),
            _ => Data::Int(self.ints().mapv(|x| wrap(dtype, x))),
        }
    }

    pub(crate) fn sizes(&self) -> Vec<i64> {
        let shape = match self {
            Data::Float(a) => a.shape(),
            Data::Int(a) => a.shape(),
            Data::State(_) => &[],
        };
        shape.iter().map(|&s| s as i64).collect()
    }
}

/// Place in memory of each element, in logical order.
pub(crate) fn places(layout: &Layout) -> Vec<usize> {
    let mut places = vec![0usize];
    for (&size, &stride) in layout.sizes().iter().zip(layout.strides()) {
        places = places.iter().flat_map(|&p| (0..size).map(move |i| p + (i * stride) as usize)).collect();
    }
    places
}

impl Value {
    /// A value of a result: cast to its dtype.
    pub(crate) fn new(layout: &LayoutRef, data: &Data) -> Value {
        Value { layout: layout.clone(), data: data.cast(layout.dtype()) }
    }

    /// The memory a storage with this value holds; what no element covers is zero.
    fn memory<T: Copy + Default>(&self, elements: &ArrayD<T>) -> Vec<T> {
        let n = layout::storage_elements(self.layout.sizes(), self.layout.strides()) as usize;
        let mut memory = vec![T::default(); n];
        for (place, &x) in places(&self.layout).into_iter().zip(elements.iter()) {
            memory[place] = x;
        }
        memory
    }

    /// Reads the value's memory through a layout.
    pub(crate) fn read_view(&self, view: &LayoutRef, offset: usize) -> Option<Value> {
        fn pick<T: Copy + Default>(memory: &[T], view: &Layout, offset: usize) -> Option<ArrayD<T>> {
            let elements = places(view).into_iter().map(|p| memory.get(p + offset).copied());
            ArrayD::from_shape_vec(shape(view.sizes()), elements.collect::<Option<Vec<T>>>()?).ok()
        }
        let data = match &self.data {
            Data::Float(a) => Data::Float(pick(&self.memory(a), view, offset)?),
            Data::Int(a) => Data::Int(pick(&self.memory(a), view, offset)?),
            Data::State(s) => Data::State(*s),
        };
        (view.dtype() == self.layout.dtype()).then(|| Value { layout: view.clone(), data })
    }

    /// The value with a region of its memory replaced.
    pub(crate) fn write_view(&self, value: &Value, view: &Layout, offset: usize) -> Option<Value> {
        fn put<T: Copy + Default>(
            mut memory: Vec<T>,
            value: &ArrayD<T>,
            view: &Layout,
            offset: usize,
            own: &Layout,
        ) -> Option<ArrayD<T>> {
            for (place, &x) in places(view).into_iter().zip(value.iter()) {
                *memory.get_mut(place + offset)? = x;
            }
            let elements = places(own).into_iter().map(|p| memory.get(p).copied());
            ArrayD::from_shape_vec(shape(own.sizes()), elements.collect::<Option<Vec<T>>>()?).ok()
        }
        let data = match (&self.data, &value.data) {
            (Data::Float(a), Data::Float(b)) => Data::Float(put(self.memory(a), b, view, offset, &self.layout)?),
            (Data::Int(a), Data::Int(b)) => Data::Int(put(self.memory(a), b, view, offset, &self.layout)?),
            _ => return None,
        };
        Some(Value { layout: self.layout.clone(), data })
    }

    /// The bytes of a storage with this value.
    pub(crate) fn to_host(&self) -> HostTensor {
        let dtype = self.layout.dtype();
        let mut bytes = Vec::with_capacity(self.layout.storage_bytes());
        match &self.data {
            Data::Float(a) => self.memory(a).into_iter().for_each(|x| match dtype {
                DType::F32 => bytes.extend_from_slice(&(x as f32).to_ne_bytes()),
                _ => bytes.extend_from_slice(&x.to_ne_bytes()),
            }),
            Data::Int(a) => self.memory(a).into_iter().for_each(|x| match dtype.size_of() {
                1 => bytes.push(x as u8),
                2 => bytes.extend_from_slice(&(x as i16).to_ne_bytes()),
                4 => bytes.extend_from_slice(&(x as i32).to_ne_bytes()),
                _ => bytes.extend_from_slice(&x.to_ne_bytes()),
            }),
            Data::State(_) => {}
        }
        HostTensor { layout: self.layout.clone(), bytes }
    }

    pub(crate) fn from_host(host: &HostTensor) -> Result<Value, BackendError> {
        let (layout, bytes) = (&host.layout, &host.bytes);
        let dtype = layout.dtype();
        if !supports(dtype) || dtype == DType::RngState {
            return Err(BackendError::Device(format!("the reference backend has no dtype {dtype}")));
        }
        if bytes.len() != layout.storage_bytes() {
            let message = format!("{} bytes for {layout}, which takes {}", bytes.len(), layout.storage_bytes());
            return Err(BackendError::BufferMismatch(message));
        }
        let element = |p: usize| &bytes[p * dtype.size_of()..][..dtype.size_of()];
        let fits = |e: ndarray::ShapeError| BackendError::BufferMismatch(e.to_string());
        let data = if dtype.is_floating() {
            let read = |p| match dtype {
                DType::F32 => f64::from(f32::from_ne_bytes(element(p).try_into().unwrap_or_default())),
                _ => f64::from_ne_bytes(element(p).try_into().unwrap_or_default()),
            };
            let values = places(layout).into_iter().map(read).collect();
            Data::Float(ArrayD::from_shape_vec(shape(layout.sizes()), values).map_err(fits)?)
        } else {
            let read = |p| match (dtype, element(p)) {
                (DType::I8, b) => i64::from(b[0] as i8),
                (_, [b]) => i64::from(*b),
                (_, b @ [_, _]) => i64::from(i16::from_ne_bytes(b.try_into().unwrap_or_default())),
                (_, b @ [_, _, _, _]) => i64::from(i32::from_ne_bytes(b.try_into().unwrap_or_default())),
                (_, b) => i64::from_ne_bytes(b.try_into().unwrap_or_default()),
            };
            let values = places(layout).into_iter().map(read).collect();
            Data::Int(ArrayD::from_shape_vec(shape(layout.sizes()), values).map_err(fits)?)
        };
        Ok(Value { layout: layout.clone(), data })
    }
}
