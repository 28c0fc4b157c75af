//! The checks. Each panics with what is wrong.

use std::sync::Arc;

use ltc_ir::{
    ArgFlags, ArgWriter, DType, ErrorClass, Layout, LayoutRef, OpClass,
    table::{self, ArgKind},
};

pub use super::integers::{
    large_integers_are_computed_exactly, large_integers_are_moved_whole, large_integers_are_reduced_exactly,
};
use super::rig::{DEVICE, G, Told, f32s, host, keep, output, run, state, upload, values};
use crate::{Backend, Buffer, ExecError, HostTensor, Input, Inputs, ReferenceBackend};

fn strided(sizes: &[i64], strides: &[i64]) -> LayoutRef {
    Layout::strided(DType::F32, sizes, strides).into()
}

/// Host tensors of every shape and common dtype come back byte by byte.
pub fn uploads_come_back(backend: &dyn Backend) {
    for dtype in [DType::F32, DType::F64, DType::I64, DType::I32, DType::U8, DType::Bool] {
        for sizes in [&[][..], &[0], &[3], &[2, 3], &[2, 0, 4]] {
            let layout = LayoutRef::from(Layout::contiguous(dtype, sizes));
            let count = layout.storage_bytes() / dtype.size_of();
            // Small numbers of the dtype: any byte pattern would do, but not for booleans and NaN.
            let bytes: Vec<u8> = (0..count)
                .flat_map(|i| match dtype {
                    DType::F32 => (i as f32 - 1.5).to_ne_bytes().to_vec(),
                    DType::F64 => (i as f64 - 1.5).to_ne_bytes().to_vec(),
                    DType::I64 => (i as i64 - 2).to_ne_bytes().to_vec(),
                    DType::I32 => (i as i32 - 2).to_ne_bytes().to_vec(),
                    _ => vec![(i % 2) as u8],
                })
                .collect();
            let host = HostTensor { layout: layout.clone(), bytes };
            let buffer = backend.upload(DEVICE, &host).unwrap_or_else(|e| panic!("{layout}: {e}"));
            let back = backend.download(DEVICE, &buffer, &layout).unwrap_or_else(|e| panic!("{layout}: {e}"));
            assert_eq!(back, host);
        }
    }
    let turned = strided(&[2, 3], &[1, 2]);
    let numbers = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let buffer = upload(backend, &turned, &numbers);
    assert_eq!(values(backend, &buffer, &turned), numbers, "memory keeps its order");
}

/// Too few bytes are an error, not a crash.
pub fn wrong_uploads_are_refused(backend: &dyn Backend) {
    let mut short = host(&f32s(&[2, 3]), &[0.0; 6]);
    short.bytes.pop();
    assert!(backend.upload(DEVICE, &short).is_err(), "23 bytes are no tensor of 24");
}

/// Buffers that are not the backend's are errors, in downloads and in programs.
pub fn foreign_buffers_are_refused(backend: &dyn Backend) {
    let layout = f32s(&[2]);
    assert!(backend.download(DEVICE, &Buffer::new(()), &layout).is_err());
    let mut g = G::default();
    let x = g.param(&layout);
    let y = g.scaled(x, 2.0, &layout);
    let told = run(backend, &g.finish(&[y]), vec![keep(Buffer::new("not a tensor"))]);
    assert!(told.get(0).is_err());
}

/// A call with too few inputs or numbers fails its outputs and nothing else.
pub fn wrong_input_counts_fail_the_outputs(backend: &dyn Backend) {
    let layout = f32s(&[2]);
    let mut g = G::default();
    let (x, y) = (g.param(&layout), g.param(&layout));
    let z = g.sum(x, y, &layout);
    let (graph, numbers) = g.finish(&[z]);
    let program = backend.compile(DEVICE, &graph).unwrap_or_else(|e| panic!("compile: {e}"));
    let one = || keep(upload(backend, &layout, &[1.0, 2.0]));
    for inputs in
        [Inputs::new(vec![one()], numbers.clone()), Inputs::new(vec![one(), one()], vec![]), Inputs::default()]
    {
        let mut told = Told::default();
        program.execute(inputs, &mut told);
        assert!(told.get(0).is_err());
    }
    let mut told = Told::default();
    program.execute(Inputs::new(vec![one(), one()], numbers), &mut told);
    assert_eq!(output(backend, &told, 0, &layout), [2.0, 4.0], "and the program still works");
}

/// What a backend cannot run it says when it compiles.
pub fn unknown_operators_are_refused_when_compiled(backend: &dyn Backend) {
    let layout = f32s(&[2]);
    let mut g = G::default();
    let x = g.param(&layout);
    let y = g.call("conformance::there_is_no_such_operator", ArgWriter::new().tensor(), &[x], &[layout]);
    let (graph, _) = g.finish(&y);
    let e = backend.compile(DEVICE, &graph).err().expect("an unknown operator is refused").to_string();
    assert!(e.contains("there_is_no_such_operator"), "{e}");
}

/// Parameters, values twice and values on the way may all be outputs.
pub fn every_output_is_told_once(backend: &dyn Backend) {
    let layout = f32s(&[2]);
    let mut g = G::default();
    let x = g.param(&layout);
    let y = g.scaled(x, 2.0, &layout);
    let z = g.sum(x, y, &layout);
    let told = run(backend, &g.finish(&[z, x, y, z]), vec![keep(upload(backend, &layout, &[1.0, -2.0]))]);
    for (i, expected) in [[3.0, -6.0], [1.0, -2.0], [2.0, -4.0], [3.0, -6.0]].iter().enumerate() {
        assert_eq!(output(backend, &told, i, &layout), expected);
    }
}

/// Runtime numbers are no part of the program.
pub fn numbers_come_with_each_run(backend: &dyn Backend) {
    let layout = f32s(&[2]);
    let mut g = G::default();
    let x = g.param(&layout);
    let y = g.scaled(x, 2.0, &layout);
    let (graph, _) = g.finish(&[y]);
    let program = backend.compile(DEVICE, &graph).unwrap_or_else(|e| panic!("compile: {e}"));
    for factor in [2.0f64, -0.5, 0.0] {
        let mut told = Told::default();
        let params = vec![keep(upload(backend, &layout, &[1.0, 4.0]))];
        program.execute(Inputs::new(params, vec![factor.to_bits()]), &mut told);
        assert_eq!(output(backend, &told, 0, &layout), [factor as f32, 4.0 * factor as f32]);
    }
}

/// Strides are part of a result.
pub fn results_have_the_recorded_layouts(backend: &dyn Backend) {
    let (turned, plain) = (strided(&[2, 3], &[1, 2]), f32s(&[2, 3]));
    let mut g = G::default();
    let (x, y) = (g.param(&turned), g.param(&plain));
    let (same, other) = (g.sum(x, x, &turned), g.sum(y, x, &plain));
    let memory = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let params = vec![keep(upload(backend, &turned, &memory)), keep(upload(backend, &plain, &[0.0; 6]))];
    let told = run(backend, &g.finish(&[same, other]), params);
    assert_eq!(output(backend, &told, 0, &turned), [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    assert_eq!(output(backend, &told, 1, &plain), [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
}

/// Whether donated or not, memory that somebody else holds keeps its contents.
pub fn inputs_somebody_holds_are_never_written(backend: &dyn Backend) {
    let layout = f32s(&[4]);
    let mut g = G::default();
    let x = g.param(&layout);
    let mut y = x;
    for _ in 0..4 {
        y = g.scaled(y, 2.0, &layout);
    }
    let program = g.finish(&[y]);
    for donated in [false, true] {
        let held = upload(backend, &layout, &[1.0, 2.0, 3.0, 4.0]);
        let told = run(backend, &program, vec![Input { buffer: Ok(held.clone()), donated }]);
        assert_eq!(output(backend, &told, 0, &layout), [16.0, 32.0, 48.0, 64.0]);
        assert_eq!(values(backend, &held, &layout), [1.0, 2.0, 3.0, 4.0], "donated: {donated}");
    }
    if backend.has_slices() {
        let (whole, part) = (upload(backend, &layout, &[1.0, 2.0, 3.0, 4.0]), f32s(&[2]));
        let slice = backend.slice(DEVICE, &whole, &part, 1).unwrap_or_else(|e| panic!("a slice of 4 elements: {e}"));
        let told = run(backend, &program, vec![Input { buffer: Ok(whole), donated: true }]);
        assert_eq!(output(backend, &told, 0, &layout), [16.0, 32.0, 48.0, 64.0]);
        assert_eq!(values(backend, &slice, &part), [2.0, 3.0], "a slice of what is donated");
    }
}

/// Reuse of donated memory changes no result, also where an input is used again later.
pub fn donated_inputs_give_the_same_results(backend: &dyn Backend) {
    let layout = f32s(&[3]);
    let mut g = G::default();
    let x = g.param(&layout);
    let a = g.scaled(x, 10.0, &layout);
    let b = g.sum(a, x, &layout);
    let c = g.sum(b, b, &layout);
    let program = g.finish(&[c, b]);
    for donated in [false, true] {
        let buffer = Ok(upload(backend, &layout, &[1.0, 2.0, 3.0]));
        let told = run(backend, &program, vec![Input { buffer, donated }]);
        assert_eq!(output(backend, &told, 0, &layout), [22.0, 44.0, 66.0]);
        assert_eq!(output(backend, &told, 1, &layout), [11.0, 22.0, 33.0]);
    }
}

/// An input may be a failure: what depends on it has its error, the rest is computed.
pub fn failures_poison_only_what_depends_on_them(backend: &dyn Backend) {
    let layout = f32s(&[1]);
    let mut g = G::default();
    let (good, bad) = (g.param(&layout), g.param(&layout));
    let fine = g.scaled(good, 3.0, &layout);
    let first = g.scaled(bad, 3.0, &layout);
    let second = g.sum(fine, first, &layout);
    let error = Arc::new(ExecError::new("conformance::failed", ErrorClass::Runtime, "ordered to fail"));
    let params = vec![keep(upload(backend, &layout, &[1.0])), Input { buffer: Err(error), donated: false }];
    let told = run(backend, &g.finish(&[fine, first, second]), params);
    assert_eq!(output(backend, &told, 0, &layout), [3.0]);
    for i in [1, 2] {
        let e = told.get(i).as_ref().expect_err("poisoned");
        assert!(e.message.contains("ordered to fail"), "{e}");
    }
}

/// `ltc::read_view` shows memory through any layout and offset.
pub fn views_read_what_they_show(backend: &dyn Backend) {
    let base = f32s(&[3, 4]);
    let memory: Vec<f32> = (0..12).map(|i| i as f32).collect();
    for (view, offset, expected) in [
        (strided(&[4, 3], &[1, 4]), 0, vec![0.0, 4.0, 8.0, 1.0, 5.0, 9.0, 2.0, 6.0, 10.0, 3.0, 7.0, 11.0]),
        (strided(&[2], &[4]), 6, vec![6.0, 10.0]),
        (strided(&[2, 2], &[8, 2]), 1, vec![1.0, 3.0, 9.0, 11.0]),
        (strided(&[3, 2], &[0, 1]), 10, vec![10.0, 11.0, 10.0, 11.0, 10.0, 11.0]),
        (strided(&[], &[]), 11, vec![11.0]),
        (strided(&[0, 2], &[2, 1]), 0, vec![]),
    ] {
        let mut g = G::default();
        let x = g.param(&base);
        let shown =
            g.call("ltc::read_view", ArgWriter::new().tensor().int(offset), &[x], std::slice::from_ref(&view))[0];
        // Computing with the view gives a plain result, which shows its elements in order.
        let plain = f32s(view.sizes());
        let mut args = ArgWriter::new();
        args.tensor().int(0);
        let copy = g.call("aten::clone", &mut args, &[shown], std::slice::from_ref(&plain))[0];
        let told = run(backend, &g.finish(&[copy, shown]), vec![keep(upload(backend, &base, &memory))]);
        assert_eq!(output(backend, &told, 0, &plain), expected, "{view} at {offset}");
        assert!(told.get(1).is_ok(), "a view may be an output");
    }
}

/// `ltc::write_view` replaces a region and leaves the old base alone.
pub fn views_write_what_they_show(backend: &dyn Backend) {
    let (base, part) = (f32s(&[3, 2]), f32s(&[2]));
    let mut g = G::default();
    let (x, value) = (g.param(&base), g.param(&part));
    let mut args = ArgWriter::new();
    args.tensor_with(ArgFlags::MUT).tensor().ints(&[2]).ints(&[4]).int(1);
    let written = g.call("ltc::write_view", &mut args, &[x, value], std::slice::from_ref(&base))[0];
    let params = vec![
        keep(upload(backend, &base, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0])),
        keep(upload(backend, &part, &[-1.0, -2.0])),
    ];
    let told = run(backend, &g.finish(&[written, x]), params);
    assert_eq!(output(backend, &told, 0, &base), [0.0, -1.0, 2.0, 3.0, 4.0, -2.0]);
    assert_eq!(output(backend, &told, 1, &base), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
}

/// A slice of a buffer is what a view of its value shows, and leaves the buffer alone. Backends without slices pass if
/// they refuse to make one.
pub fn parts_show_what_views_show(backend: &dyn Backend) {
    let base = f32s(&[4, 3]);
    let memory: Vec<f32> = (0..12).map(|i| i as f32).collect();
    let buffer = upload(backend, &base, &memory);
    for (layout, offset, expected) in [
        (f32s(&[2, 3]), 3, vec![3.0, 4.0, 5.0, 6.0, 7.0, 8.0]),
        (strided(&[2, 3], &[1, 2]), 6, vec![6.0, 8.0, 10.0, 7.0, 9.0, 11.0]),
        (f32s(&[]), 11, vec![11.0]),
    ] {
        let slice = backend.slice(DEVICE, &buffer, &layout, offset);
        if !backend.has_slices() {
            assert!(slice.is_err(), "a slice of a backend that says it has none");
            continue;
        }
        let slice = slice.unwrap_or_else(|e| panic!("{layout} from {offset} on: {e}"));
        let mut g = G::default();
        let x = g.param(&layout);
        let plain = f32s(layout.sizes());
        let doubled = g.scaled(x, 2.0, &plain);
        let told = run(backend, &g.finish(&[doubled]), vec![keep(slice)]);
        let halves: Vec<f32> = output(backend, &told, 0, &plain).iter().map(|x| x / 2.0).collect();
        assert_eq!(halves, expected, "{layout} from {offset} on");
    }
    let mut g = G::default();
    let x = g.param(&base);
    let same = g.scaled(x, 1.0, &base);
    let told = run(backend, &g.finish(&[same]), vec![keep(buffer.clone())]);
    assert_eq!(output(backend, &told, 0, &base), memory, "the buffer itself");
    let outside = backend.slice(DEVICE, &buffer, &f32s(&[2, 3]), 7);
    assert!(outside.is_err(), "a slice that ends outside of its buffer");
}

/// A state gives the same draws each time it is used, the next state gives others, and seeds begin anew.
pub fn draws_follow_generator_states(backend: &dyn Backend) {
    let layout = f32s(&[8]);
    let mut g = G::default();
    let seeded = g.call("ltc::seed", ArgWriter::new().number(7i64.into()), &[], &[state()])[0];
    let mut draw = |from| {
        let mut args = ArgWriter::new();
        args.ints(&[8]).int(DType::F32 as i64).none().device().none().generator();
        let results = g.call("aten::rand", &mut args, &[from], &[layout.clone(), state()]);
        (results[0], results[1])
    };
    let (first, next) = draw(seeded);
    let (again, _) = draw(seeded);
    let (second, _) = draw(next);
    let program = g.finish(&[first, again, second]);
    let read = || {
        let told = run(backend, &program, vec![]);
        [0, 1, 2].map(|i| output(backend, &told, i, &layout))
    };
    let [first, again, second] = read();
    assert_eq!(first, again, "a state is a value");
    assert!(first != second && first.iter().all(|x| (0.0..1.0).contains(x)), "{first:?} {second:?}");
    assert_eq!(read(), [first, again, second], "the seed decides");
}

/// Compiling and moving tensors happen on any thread, at the same time.
pub fn programs_are_compiled_on_any_thread(backend: &dyn Backend) {
    std::thread::scope(|scope| {
        for n in 1..5i64 {
            scope.spawn(move || {
                let layout = f32s(&[n]);
                let mut g = G::default();
                let x = g.param(&layout);
                let y = g.scaled(x, n as f64, &layout);
                let (graph, _) = g.finish(&[y]);
                backend.compile(DEVICE, &graph).unwrap_or_else(|e| panic!("compile: {e}"));
                upload(backend, &layout, &vec![1.0; n as usize]);
            });
        }
    });
}

/// Pointwise rows of the operator table whose arguments are tensors, and numbers with defaults: what the backend has of
/// them agrees with their expressions, and it has the arithmetic a small network needs.
pub fn pointwise_operators_compute_their_expressions(backend: &dyn Backend) {
    let layout = f32s(&[2, 3]);
    let operands =
        [[0.3f32, 0.45, 0.2, 0.6, 0.85, 0.7], [0.5, 0.9, 0.15, 0.25, 0.4, 0.65], [0.8, 0.1, 0.35, 0.55, 0.75, 0.95]];
    let mut has = Vec::new();
    for row in table::rows().iter().filter(|r| r.class == OpClass::Pointwise && r.results == 1) {
        let tensors = row.arguments.iter().filter(|a| a.kind == ArgKind::Tensor).count();
        let simple = row.arguments.iter().all(|a| !a.written && (a.kind == ArgKind::Tensor || a.default.is_some()));
        let floats = Layout::contiguous(DType::F32, &[2, 3]);
        let mut args = ArgWriter::new();
        for a in row.arguments {
            let number = a.default.and_then(|d| d.parse::<f64>().ok());
            match (a.kind, number) {
                (ArgKind::Tensor, _) => args.tensor(),
                (ArgKind::Scalar, Some(x)) => args.number(x.into()),
                (ArgKind::Float, Some(x)) => args.float(x),
                (ArgKind::Str, _) => args.str("none"),
                _ => args.none(),
            };
        }
        let (words, numbers) = args.clone().finish();
        let list = vec![&floats; tensors];
        let call = ltc_ir::rules::Call::decode(row.name, &words, &list, &numbers).expect("a well-formed call");
        let Some(result) = (row.rule)(&call).ok().and_then(|r| r.into_iter().next().flatten()) else { continue };
        if !simple || tensors > operands.len() || result.dtype() != DType::F32 {
            continue;
        }
        let mut g = G::default();
        let params: Vec<_> = (0..tensors).map(|_| g.param(&layout)).collect();
        let y = g.call(row.name, &mut args, &params, std::slice::from_ref(&layout));
        let program = g.finish(&y);
        let mut both: Vec<Vec<f32>> = Vec::new();
        for b in [&ReferenceBackend as &dyn Backend, backend] {
            if b.compile(DEVICE, &program.0).is_err() {
                break;
            }
            let inputs = operands[..tensors].iter().map(|v| keep(upload(b, &layout, v))).collect();
            let told = run(b, &program, inputs);
            // An operator the table's expression cannot say everything about may fail on the reference.
            let Ok(buffer) = told.get(0) else { break };
            both.push(values(b, buffer, &layout));
        }
        let [expected, got] = &both[..] else { continue };
        let close = |(x, y): (&f32, &f32)| (x - y).abs() <= 2e-5 * (1.0 + y.abs()) || x.is_nan() && y.is_nan();
        assert!(expected.iter().zip(got).all(close), "{}: {got:?} instead of {expected:?}", row.name);
        has.push(row.name);
    }
    for name in ["aten::add.Tensor", "aten::mul.Tensor", "aten::div.Tensor", "aten::relu", "aten::exp", "aten::sqrt"] {
        assert!(has.contains(&name), "a backend has {name}; of the table it has {has:?}");
    }
}
