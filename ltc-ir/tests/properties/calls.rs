//! Calls of the operators of the table, made of bytes: most arguments are of the kinds the schema wants.
//!
//! Also what the fuzzer of arguments makes of its bytes (`ltc-ir/fuzz`).

use arbitrary::{Result, Unstructured};
use ltc_ir::{
    ArgFlags, ArgWriter, DType, Layout, Scalar,
    rules::Call,
    table::{self, ArgKind},
};

/// Asks an operator's shape rule; whatever it is given, it answers or refuses.
pub(crate) fn call(u: &mut Unstructured<'_>) -> Result<()> {
    let row = &table::rows()[usize::from(u.arbitrary::<u16>()?) % table::rows().len()];
    let (mut w, mut operands) = (ArgWriter::new(), Vec::new());
    for argument in row.arguments {
        // Now and then one of another kind, none at all, or nothing more.
        let kind = match u.int_in_range(0..=15)? {
            15 => *u.choose(&KINDS)?,
            14 => break,
            13 => {
                w.none();
                continue;
            }
            9..=12 if argument.optional => {
                w.none();
                continue;
            }
            _ => argument.kind,
        };
        write(u, kind, argument.written, &mut w, &mut operands)?;
    }
    let (words, numbers) = w.finish();
    let operands: Vec<&Layout> = operands.iter().collect();
    let Some(call) = Call::decode(row.name, &words, &operands, &numbers) else { return Ok(()) };
    for i in 0..=row.arguments.len() {
        let _ = (call.tensor(i), call.tensors(i), call.ints(i), call.bools(i), call.dtype(i), call.number(i));
    }
    let _ = (row.rule)(&call);
    Ok(())
}

const KINDS: [ArgKind; 14] = [
    ArgKind::Tensor,
    ArgKind::Tensors,
    ArgKind::OptionalTensors,
    ArgKind::Scalar,
    ArgKind::Scalars,
    ArgKind::Int,
    ArgKind::Ints,
    ArgKind::Bool,
    ArgKind::Bools,
    ArgKind::Float,
    ArgKind::Floats,
    ArgKind::Str,
    ArgKind::DType,
    ArgKind::Generator,
];

fn layout(u: &mut Unstructured<'_>) -> Result<Layout> {
    let dtype = if u.ratio(1, 2)? { DType::F32 } else { *u.choose(&DType::ALL)? };
    let rank = u.int_in_range(0..=5)?;
    let sizes: Vec<i64> = (0..rank).map(|_| u.int_in_range(0..=6)).collect::<Result<_>>()?;
    // As a libtorch tensor can be: no sizes below nothing, and no element beyond what 63 bits count.
    let mut strides: Vec<i64> = Layout::contiguous(dtype, &sizes).strides().to_vec();
    if u.ratio(1, 4)? {
        strides = (0..rank).map(|_| u.int_in_range(0..=40)).collect::<Result<_>>()?;
    }
    Ok(Layout::strided(dtype, &sizes, &strides))
}

fn int(u: &mut Unstructured<'_>) -> Result<i64> {
    if u.ratio(1, 8)? { u.arbitrary() } else { u.int_in_range(-4..=9) }
}

fn list<T>(u: &mut Unstructured<'_>, f: impl Fn(&mut Unstructured<'_>) -> Result<T>) -> Result<Vec<T>> {
    (0..u.int_in_range(0..=5)?).map(|_| f(u)).collect()
}

fn scalar(u: &mut Unstructured<'_>) -> Result<Scalar> {
    Ok(match u.int_in_range(0..=2)? {
        0 => Scalar::Int(int(u)?),
        1 => Scalar::Float(u.arbitrary()?),
        _ => Scalar::Bool(u.arbitrary()?),
    })
}

fn write(
    u: &mut Unstructured<'_>,
    kind: ArgKind,
    written: bool,
    w: &mut ArgWriter,
    operands: &mut Vec<Layout>,
) -> Result<()> {
    match kind {
        ArgKind::Tensor if u.ratio(1, 8)? => {
            w.wrapped(scalar(u)?);
        }
        ArgKind::Tensor => {
            w.tensor_with(if written { ArgFlags::MUT } else { ArgFlags::NONE });
            operands.push(layout(u)?);
        }
        ArgKind::Tensors | ArgKind::OptionalTensors => {
            let present: Vec<bool> = list(u, |u| u.ratio(7, 8))?;
            for _ in present.iter().filter(|p| **p) {
                operands.push(layout(u)?);
            }
            w.tensors(&present, ArgFlags::NONE);
        }
        ArgKind::Scalar => {
            w.number(scalar(u)?);
        }
        ArgKind::Scalars => {
            w.number_list(&list(u, scalar)?);
        }
        ArgKind::Int | ArgKind::Layout | ArgKind::MemoryFormat => {
            w.int(int(u)?);
        }
        ArgKind::DType => {
            w.int(u.int_in_range(-1..=30)?);
        }
        ArgKind::Ints => {
            w.ints(&list(u, int)?);
        }
        ArgKind::Bool => {
            w.bool(u.arbitrary()?);
        }
        ArgKind::Bools => {
            w.bools(&list(u, |u| u.arbitrary())?);
        }
        ArgKind::Float => {
            w.float(u.arbitrary()?);
        }
        ArgKind::Floats => {
            w.floats(&list(u, |u| u.arbitrary())?);
        }
        ArgKind::Str => {
            w.str(u.choose(&["", "none", "mean", "floor", "trunc", "é"])?);
        }
        ArgKind::Device => {
            w.device();
        }
        ArgKind::Generator => {
            w.generator();
            operands.push(Layout::contiguous(DType::RngState, &[]));
        }
        ArgKind::Other => {
            w.none();
        }
    }
    Ok(())
}

/// How many elements a triangle has follows from its sizes, however large they are.
#[test]
fn triangles_are_counted_without_looking_at_each_row() {
    let count = |op: &str, n: i64, m: i64, k: i64| {
        let (words, numbers) = ArgWriter::new().int(n).int(m).int(k).finish();
        let call = Call::decode(op, &words, &[], &numbers).expect("a call");
        let layout = (table::find(op).expect("a row").rule)(&call).ok()?.pop().flatten();
        layout.map(|l| l.sizes()[1])
    };
    for (n, m, k) in (0..6).flat_map(|n| (0..6).flat_map(move |m| (-8..8).map(move |k| (n, m, k)))) {
        let places = || (0..n).flat_map(|r| (0..m).map(move |c| c - r));
        assert_eq!(count("aten::tril_indices", n, m, k), Some(places().filter(|&d| d <= k).count() as i64));
        assert_eq!(count("aten::triu_indices", n, m, k), Some(places().filter(|&d| d >= k).count() as i64));
    }
    assert_eq!(count("aten::tril_indices", 1 << 40, 2, 0), Some((1 << 41) - 1));
    for op in ["aten::tril_indices", "aten::triu_indices"] {
        for (n, m, k) in [(i64::MAX, i64::MAX, i64::MAX), (i64::MAX, i64::MAX, i64::MIN), (i64::MAX, 7, -3)] {
            let _ = count(op, n, m, k);
        }
    }
}
