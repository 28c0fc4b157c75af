//! Builds graphs, runs them, compares tensors.
#![allow(dead_code, reason = "every test file uses its own part")]

pub(crate) mod attention;

use std::sync::Arc;

use ltc_backend::{Backend, Buffer, DeviceIndex, ExecError, Executable, Input, Inputs, OutputSink};
use ltc_ir::{ArgFlags, ArgWriter, DType, Graph, GraphBuilder, Layout, LayoutRef, Op, Props, SiteId, ValueId};
use ltc_ts::{Fusion, RunStats, TchBuffer, TsBackend, TsConfig, TsExecutable};
use tch::{Kind, Tensor};

/// The only device.
pub(crate) const D: DeviceIndex = DeviceIndex(0);

pub(crate) fn f32s(sizes: &[i64]) -> LayoutRef {
    Layout::contiguous(DType::F32, sizes).into()
}

pub(crate) fn state() -> LayoutRef {
    Layout::contiguous(DType::RngState, &[]).into()
}

/// A graph under construction, with its runtime numbers.
#[derive(Default)]
pub(crate) struct G {
    builder: GraphBuilder,
    pub(crate) numbers: Vec<u64>,
}

impl G {
    pub(crate) fn param(&mut self, layout: &LayoutRef) -> ValueId {
        self.builder.param(layout.clone())
    }

    /// Adds a node with these arguments; returns the ids of its results.
    pub(crate) fn call(
        &mut self,
        op: &str,
        args: &ArgWriter,
        operands: &[ValueId],
        results: &[LayoutRef],
    ) -> Vec<ValueId> {
        let (words, numbers) = args.clone().finish();
        let op = Op::intern(op, Props::NONE);
        let site = SiteId::default();
        let first = self.builder.node(op, words, operands, numbers.len(), results.iter().cloned().collect(), site);
        self.numbers.extend(numbers);
        let first = first.as_result().expect("a node's result");
        (first..first + results.len()).map(ValueId::result).collect()
    }

    /// A node with one result.
    pub(crate) fn one(&mut self, op: &str, args: &ArgWriter, operands: &[ValueId], result: &LayoutRef) -> ValueId {
        self.call(op, args, operands, std::slice::from_ref(result))[0]
    }

    pub(crate) fn add(&mut self, x: ValueId, y: ValueId, layout: &LayoutRef) -> ValueId {
        let args = ArgWriter::new().tensor().tensor().number(1i64.into()).clone();
        self.one("aten::add.Tensor", &args, &[x, y], layout)
    }

    /// `x += y`, as a value.
    pub(crate) fn add_in_place(&mut self, x: ValueId, y: ValueId, layout: &LayoutRef) -> ValueId {
        let args = ArgWriter::new().tensor_with(ArgFlags::MUT).tensor().number(1i64.into()).clone();
        self.one("aten::add_.Tensor", &args, &[x, y], layout)
    }

    pub(crate) fn relu(&mut self, x: ValueId, layout: &LayoutRef) -> ValueId {
        self.one("aten::relu", ArgWriter::new().tensor(), &[x], layout)
    }

    pub(crate) fn read_view(&mut self, base: ValueId, offset: i64, view: &LayoutRef) -> ValueId {
        self.one("ltc::read_view", ArgWriter::new().tensor().int(offset), &[base], view)
    }

    pub(crate) fn write_view(
        &mut self,
        base: ValueId,
        value: ValueId,
        offset: i64,
        view: &LayoutRef,
        layout: &LayoutRef,
    ) -> ValueId {
        let args = ArgWriter::new()
            .tensor_with(ArgFlags::MUT)
            .tensor()
            .ints(view.sizes())
            .ints(view.strides())
            .int(offset)
            .clone();
        self.one("ltc::write_view", &args, &[base, value], layout)
    }

    pub(crate) fn finish(self, outputs: &[ValueId]) -> (Arc<Graph>, Vec<u64>) {
        (Arc::new(self.builder.finish(outputs.to_vec())), self.numbers)
    }
}

/// Outputs, in the order they were told.
#[derive(Default)]
pub(crate) struct Told(pub(crate) Vec<(usize, Result<Buffer, Arc<ExecError>>)>);

impl OutputSink for Told {
    fn output(&mut self, index: usize, result: Result<Buffer, Arc<ExecError>>) {
        self.0.push((index, result));
    }
}

impl Told {
    pub(crate) fn order(&self) -> Vec<usize> {
        self.0.iter().map(|(i, _)| *i).collect()
    }

    pub(crate) fn get(&self, index: usize) -> &Result<Buffer, Arc<ExecError>> {
        let mut told = self.0.iter().filter(|(i, _)| *i == index);
        let (_, result) = told.next().expect("the output was told");
        assert!(told.next().is_none(), "output {index} was told twice");
        result
    }

    pub(crate) fn tensor(&self, index: usize) -> Tensor {
        tensor(self.get(index).as_ref().expect("the output succeeded"))
    }

    pub(crate) fn error(&self, index: usize) -> Arc<ExecError> {
        self.get(index).as_ref().expect_err("the output failed").clone()
    }
}

pub(crate) fn tensor(buffer: &Buffer) -> Tensor {
    buffer.get::<TchBuffer>().and_then(TchBuffer::tensor).expect("a tensor of this backend").into()
}

pub(crate) fn address(buffer: &Buffer) -> usize {
    tensor(buffer).data_ptr() as usize
}

/// A backend with one device and a compiled graph.
pub(crate) struct Rig {
    pub(crate) backend: TsBackend,
    pub(crate) program: Arc<TsExecutable>,
    pub(crate) numbers: Vec<u64>,
}

impl Rig {
    /// Without fusion: every node is a step.
    pub(crate) fn new((graph, numbers): (Arc<Graph>, Vec<u64>)) -> Rig {
        Rig::with(TsConfig { fusion: Fusion::Off, ..TsConfig::default() }, (graph, numbers))
    }

    pub(crate) fn with(config: TsConfig, (graph, numbers): (Arc<Graph>, Vec<u64>)) -> Rig {
        let backend = TsBackend::with_config(config);
        let program = backend.compile_program(D, &graph).expect("the graph compiles");
        Rig { backend, program, numbers }
    }

    pub(crate) fn buffer(&self, t: &Tensor) -> Buffer {
        self.backend.wrap(D, t.copy()).expect("a host tensor")
    }

    pub(crate) fn execute(&self, params: Vec<Input>) -> Told {
        self.execute_on(params, false)
    }

    /// `single_threaded`: on one thread.
    pub(crate) fn execute_on(&self, params: Vec<Input>, single_threaded: bool) -> Told {
        let mut told = Told::default();
        self.program.execute(Inputs { single_threaded, ..Inputs::new(params, self.numbers.clone()) }, &mut told);
        assert_eq!(told.0.len(), self.program.program().graph().outputs().len(), "every output is told");
        told
    }

    /// Runs on copies of these tensors, which stay held, so nothing is donated.
    pub(crate) fn run(&self, inputs: &[&Tensor]) -> Told {
        let held: Vec<Buffer> = inputs.iter().map(|t| self.buffer(t)).collect();
        self.execute(held.iter().map(|b| keep(b.clone())).collect())
    }

    pub(crate) fn stats(&self) -> RunStats {
        self.program.run_stats()
    }

    pub(crate) fn used(&self) -> usize {
        self.backend.memory(D).used
    }
}

pub(crate) fn keep(buffer: Buffer) -> Input {
    Input { buffer: Ok(buffer), donated: false }
}

pub(crate) fn donate(buffer: Buffer) -> Input {
    Input { buffer: Ok(buffer), donated: true }
}

/// Values that are exact in f32 and all different.
pub(crate) fn ramp(sizes: &[i64]) -> Tensor {
    let n: i64 = sizes.iter().product();
    (Tensor::arange(n, (Kind::Float, tch::Device::Cpu)) * 0.5 - 3.0).reshape(sizes)
}

/// Equal in every bit, shape and stride.
#[track_caller]
pub(crate) fn assert_same(got: &Tensor, expected: &Tensor) {
    assert_eq!((got.size(), got.stride(), got.kind()), (expected.size(), expected.stride(), expected.kind()));
    assert!(got.equal(expected), "got {got}, expected {expected}");
}
