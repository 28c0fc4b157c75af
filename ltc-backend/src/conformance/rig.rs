//! Builds graphs, runs them, reads values.

use std::sync::Arc;

use ltc_ir::{ArgWriter, DType, Graph, GraphBuilder, Layout, LayoutRef, Op, Props, SiteId, ValueId};

use crate::{Backend, Buffer, DeviceIndex, ExecError, HostTensor, Input, Inputs, OutputSink};

pub(super) const DEVICE: DeviceIndex = DeviceIndex(0);

pub(super) fn f32s(sizes: &[i64]) -> LayoutRef {
    Layout::contiguous(DType::F32, sizes).into()
}

pub(super) fn state() -> LayoutRef {
    Layout::contiguous(DType::RngState, &[]).into()
}

/// A graph under construction with its runtime numbers.
#[derive(Default)]
pub(super) struct G {
    builder: GraphBuilder,
    pub(super) numbers: Vec<u64>,
}

impl G {
    pub(super) fn param(&mut self, layout: &LayoutRef) -> ValueId {
        self.builder.param(layout.clone())
    }

    pub(super) fn call(
        &mut self,
        op: &str,
        args: &mut ArgWriter,
        operands: &[ValueId],
        results: &[LayoutRef],
    ) -> Vec<ValueId> {
        let (words, numbers) = args.finish();
        let (op, count) = (Op::intern(op, Props::NONE), numbers.len());
        let results_list = results.iter().cloned().collect();
        let first = self.builder.node(op, words, operands, count, results_list, SiteId::default());
        self.numbers.extend(numbers);
        let first = first.as_result().expect("a node's result");
        (first..first + results.len()).map(ValueId::result).collect()
    }

    /// `x * number`
    pub(super) fn scaled(&mut self, x: ValueId, number: f64, layout: &LayoutRef) -> ValueId {
        self.call(
            "aten::mul.Tensor",
            ArgWriter::new().tensor().wrapped(number.into()),
            &[x],
            std::slice::from_ref(layout),
        )[0]
    }

    /// `x + y`
    pub(super) fn sum(&mut self, x: ValueId, y: ValueId, layout: &LayoutRef) -> ValueId {
        let mut args = ArgWriter::new();
        args.tensor().tensor().number(1i64.into());
        self.call("aten::add.Tensor", &mut args, &[x, y], std::slice::from_ref(layout))[0]
    }

    pub(super) fn finish(self, outputs: &[ValueId]) -> (Arc<Graph>, Vec<u64>) {
        (Arc::new(self.builder.finish(outputs.to_vec())), self.numbers)
    }
}

/// What came out, and how often.
#[derive(Default)]
pub(super) struct Told(pub(super) Vec<(usize, Result<Buffer, Arc<ExecError>>)>);

impl OutputSink for Told {
    fn output(&mut self, index: usize, result: Result<Buffer, Arc<ExecError>>) {
        self.0.push((index, result));
    }
}

impl Told {
    pub(super) fn get(&self, index: usize) -> &Result<Buffer, Arc<ExecError>> {
        let mut told = self.0.iter().filter(|(i, _)| *i == index);
        let (_, result) = told.next().unwrap_or_else(|| panic!("output {index} was not told"));
        assert!(told.next().is_none(), "output {index} was told twice");
        result
    }
}

pub(super) fn host(layout: &LayoutRef, values: &[f32]) -> HostTensor {
    HostTensor { layout: layout.clone(), bytes: values.iter().flat_map(|x| x.to_ne_bytes()).collect() }
}

pub(super) fn upload(backend: &dyn Backend, layout: &LayoutRef, values: &[f32]) -> Buffer {
    backend.upload(DEVICE, &host(layout, values)).unwrap_or_else(|e| panic!("upload of {layout}: {e}"))
}

/// Bytes of memory as singles, in the order of memory.
pub(super) fn values(backend: &dyn Backend, buffer: &Buffer, layout: &LayoutRef) -> Vec<f32> {
    let host = backend.download(DEVICE, buffer, layout).unwrap_or_else(|e| panic!("download of {layout}: {e}"));
    assert_eq!(host.layout, *layout, "a download has the layout that was asked for");
    host.bytes.chunks_exact(4).map(|b| f32::from_ne_bytes(b.try_into().expect("4 bytes"))).collect()
}

pub(super) fn keep(buffer: Buffer) -> Input {
    Input { buffer: Ok(buffer), donated: false }
}

pub(super) fn run(backend: &dyn Backend, (graph, numbers): &(Arc<Graph>, Vec<u64>), params: Vec<Input>) -> Told {
    let program = backend.compile(DEVICE, graph).unwrap_or_else(|e| panic!("compile: {e}\n{graph}"));
    let mut told = Told::default();
    program.execute(Inputs::new(params, numbers.clone()), &mut told);
    assert_eq!(told.0.len(), graph.outputs().len(), "every output is told");
    told
}

/// Values of one output.
pub(super) fn output(backend: &dyn Backend, told: &Told, index: usize, layout: &LayoutRef) -> Vec<f32> {
    let buffer = told.get(index).as_ref().unwrap_or_else(|e| panic!("output {index}: {e}"));
    values(backend, buffer, layout)
}
