//! A graph built by hand, checked, printed and run: what a backend is given, and what it answers. No libtorch.
//!
//! `cargo run -p ltc-backend --example by_hand`
//!
//! One layer, `relu(x @ w + bias * scale)`. The scale is a runtime number: the second run has another one, and needs no
//! other program.
#![expect(clippy::print_stdout, reason = "an example talks to people")]

use std::{error::Error, sync::Arc};

use ltc_backend::{Backend, Buffer, DeviceIndex, ExecError, HostTensor, Input, Inputs, OutputSink, ReferenceBackend};
use ltc_ir::{ArgWriter, DType, Graph, GraphBuilder, Layout, LayoutRef, Op, Props, SiteId, ValueId};

const DEVICE: DeviceIndex = DeviceIndex(0);

fn floats(sizes: &[i64]) -> LayoutRef {
    Layout::contiguous(DType::F32, sizes).into()
}

/// Adds a call of an operator that has one result. Its arguments go by their places in the operator's schema: tensors
/// are named in order by `operands`, and of runtime numbers only their types are part of the graph.
fn call(graph: &mut GraphBuilder, op: &str, args: &mut ArgWriter, operands: &[ValueId], result: &LayoutRef) -> ValueId {
    let (words, numbers) = args.finish();
    let results = [result.clone()].into_iter().collect();
    graph.node(Op::intern(op, Props::NONE), words, operands, numbers.len(), results, SiteId::default())
}

/// Parameters are `x`, `w` and `bias`, runtime numbers the scale of the bias.
fn layer() -> Graph {
    let mut graph = GraphBuilder::default();
    let (x, w, bias) = (graph.param(floats(&[2, 3])), graph.param(floats(&[3, 2])), graph.param(floats(&[2])));
    let result = floats(&[2, 2]);
    let product = call(&mut graph, "aten::mm", ArgWriter::new().tensor().tensor(), &[x, w], &result);
    let mut args = ArgWriter::new();
    args.tensor().tensor().number(1.0.into());
    let sum = call(&mut graph, "aten::add.Tensor", &mut args, &[product, bias], &result);
    let relu = call(&mut graph, "aten::relu", ArgWriter::new().tensor(), &[sum], &result);
    graph.finish(vec![relu])
}

/// Keeps the one output.
#[derive(Default)]
struct Sink(Option<Result<Buffer, Arc<ExecError>>>);

impl OutputSink for Sink {
    fn output(&mut self, _: usize, result: Result<Buffer, Arc<ExecError>>) {
        self.0 = Some(result);
    }
}

fn upload(backend: &dyn Backend, layout: &LayoutRef, values: &[f32]) -> Result<Input, Box<dyn Error>> {
    let bytes = values.iter().flat_map(|x| x.to_ne_bytes()).collect();
    let buffer = backend.upload(DEVICE, &HostTensor { layout: layout.clone(), bytes })?;
    Ok(Input { buffer: Ok(buffer), donated: false })
}

/// The layer's results, one for each scale of the bias.
fn run(backend: &dyn Backend, graph: &Arc<Graph>, scales: &[f64]) -> Result<Vec<Vec<f32>>, Box<dyn Error>> {
    let program = backend.compile(DEVICE, graph)?;
    let mut results = Vec::new();
    for scale in scales {
        let params = [
            upload(backend, &graph.params()[0], &[1.0, 2.0, 3.0, -1.0, -2.0, -3.0])?,
            upload(backend, &graph.params()[1], &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0])?,
            upload(backend, &graph.params()[2], &[0.5, -4.0])?,
        ];
        let mut sink = Sink::default();
        program.execute(Inputs::new(params, [scale.to_bits()]), &mut sink);
        let buffer = sink.0.ok_or("the backend has told no output")??;
        let bytes = backend.download(DEVICE, &buffer, graph.layout(graph.outputs()[0]))?.bytes;
        results.push(bytes.chunks_exact(4).map(|b| f32::from_ne_bytes([b[0], b[1], b[2], b[3]])).collect());
    }
    Ok(results)
}

fn main() -> Result<(), Box<dyn Error>> {
    let graph = layer();
    ltc_ir::verify(&graph).map_err(|fault| format!("{fault:?}"))?;
    println!("{graph}");
    for (scale, result) in [1.0, 10.0].iter().zip(run(&ReferenceBackend, &Arc::new(graph), &[1.0, 10.0])?) {
        println!("scale {scale}: {result:?}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_graph_is_sound_and_prints_as_it_reads() {
        let graph = layer();
        assert_eq!(ltc_ir::verify(&graph), Ok(()));
        assert_eq!(Graph::parse(&graph.to_string()).unwrap(), graph);
        assert_eq!(graph.number_count(), 1);
    }

    #[test]
    fn one_program_runs_with_every_scale() {
        let results = run(&ReferenceBackend, &Arc::new(layer()), &[1.0, 10.0, 0.0]).unwrap();
        assert_eq!(results[0], [4.5, 1.0, 0.0, 0.0]);
        assert_eq!(results[1], [9.0, 0.0, 1.0, 0.0]);
        assert_eq!(results[2], [4.0, 5.0, 0.0, 0.0]);
    }
}
