//! Calls with one argument spoilt: where eager raises, the rule must raise the same class, and nowhere else.

use ltc_ir::{DType, Scalar};

use super::sample::{Fill, TensorSpec, Value};

/// Every argument spoilt in turn.
pub fn of(values: &[Value]) -> Vec<Vec<Value>> {
    // Kernels read memory by index values: none may point outside what other spoilt arguments leave.
    let tame: Vec<Value> = values.iter().map(tamed).collect();
    let mut all = Vec::new();
    for (i, v) in tame.iter().enumerate() {
        for spoilt in spoil(v) {
            let mut call = tame.clone();
            call[i] = spoilt;
            all.push(call);
        }
    }
    all
}

fn tame_tensor(t: &TensorSpec) -> TensorSpec {
    let fill = if matches!(t.fill, Fill::Below(_)) { Fill::Below(1) } else { t.fill };
    TensorSpec { fill, ..t.clone() }
}

fn tamed(v: &Value) -> Value {
    match v {
        Value::Tensor(t) => Value::Tensor(tame_tensor(t)),
        Value::Tensors(l) => Value::Tensors(l.iter().map(|t| t.as_ref().map(tame_tensor)).collect()),
        other => other.clone(),
    }
}

fn spoil(v: &Value) -> Vec<Value> {
    match v {
        Value::Tensor(t) => spoil_tensor(t).into_iter().map(Value::Tensor).collect(),
        Value::Tensors(list) => {
            let mut out = Vec::new();
            for (i, t) in list.iter().enumerate() {
                for s in t.iter().flat_map(spoil_tensor) {
                    let mut list = list.clone();
                    list[i] = Some(s);
                    out.push(Value::Tensors(list));
                }
            }
            out
        }
        Value::Number(Scalar::Int(_)) => [99, -99].map(|n| Value::Number(Scalar::Int(n))).to_vec(),
        Value::Ints(list) if !list.is_empty() => {
            let with = |n: i64| {
                let mut list = list.clone();
                list[0] = n;
                list
            };
            let shorter = list[1..].to_vec();
            let longer = [&list[..], &[1]].concat();
            [with(99), with(-99), shorter, longer].map(Value::Ints).to_vec()
        }
        _ => Vec::new(),
    }
}

fn spoil_tensor(t: &TensorSpec) -> Vec<TensorSpec> {
    let with = |sizes: Vec<i64>| TensorSpec { sizes, strides: None, ..t.clone() };
    let mut out = vec![with([&[1], &t.sizes[..]].concat())];
    if let Some((last, lead)) = t.sizes.split_last() {
        out.push(with([lead, &[last + 1]].concat()));
        out.push(with([lead, &[0]].concat()));
        out.push(with(t.sizes[1..].to_vec()));
        let mut grown = t.sizes.clone();
        grown[0] += 1;
        out.push(with(grown));
    }
    for dtype in [DType::I64, DType::F64, DType::Bool] {
        if t.dtype != Some(dtype) {
            out.push(TensorSpec { dtype: Some(dtype), ..t.clone() });
        }
    }
    out
}
