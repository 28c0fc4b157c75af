//! Exact comparison of two eager tensors.

use tch::{Kind, Tensor};

/// What is visible without reading values: shape, dtype, strides.
///
/// # Errors
/// Says what differs.
pub fn same_meta(expected: &Tensor, got: &Tensor) -> Result<(), String> {
    if expected.kind() != got.kind() {
        return Err(format!("dtype {:?}, expected {:?}", got.kind(), expected.kind()));
    }
    if expected.size() != got.size() {
        return Err(format!("shape {:?}, expected {:?}", got.size(), expected.size()));
    }
    if expected.requires_grad() != got.requires_grad() {
        return Err(format!("requires_grad {}, expected {}", got.requires_grad(), expected.requires_grad()));
    }
    // Strides of dimensions of size 0 or 1, and of empty tensors, say nothing about memory.
    let visible = |t: &Tensor| -> Vec<Option<i64>> {
        let empty = t.numel() == 0;
        t.size().iter().zip(t.stride()).map(|(&n, s)| (n > 1 && !empty).then_some(s)).collect()
    };
    if visible(expected) != visible(got) {
        return Err(format!("strides {:?}, expected {:?}", got.stride(), expected.stride()));
    }
    Ok(())
}

/// Values bit by bit; any NaN equals any NaN, 0.0 differs from -0.0.
///
/// # Errors
/// Says which element differs, or what of shape and dtype.
pub fn same_values(expected: &Tensor, got: &Tensor) -> Result<(), String> {
    same_shape_and_kind(expected, got)?;
    let (a, b) = (words(expected), words(got));
    match a.iter().zip(&b).position(|(x, y)| x != y) {
        None => Ok(()),
        Some(i) => {
            let n = a.iter().zip(&b).filter(|(x, y)| x != y).count();
            let show = |w: u64| {
                if is_float(expected.kind()) { format!("{:?}", f64::from_bits(w)) } else { format!("{}", w as i64) }
            };
            Err(format!("element {i} is {}, expected {} ({n} of {} differ)", show(b[i]), show(a[i]), a.len()))
        }
    }
}

fn same_shape_and_kind(expected: &Tensor, got: &Tensor) -> Result<(), String> {
    if expected.size() != got.size() || expected.kind() != got.kind() {
        return Err(format!("{:?} {:?}, expected {:?} {:?}", got.kind(), got.size(), expected.kind(), expected.size()));
    }
    Ok(())
}

fn is_float(kind: Kind) -> bool {
    matches!(kind, Kind::Float | Kind::Double | Kind::Half | Kind::BFloat16)
}

fn words(t: &Tensor) -> Vec<u64> {
    if is_float(t.kind()) {
        let v = Vec::<f64>::try_from(t.detach().to_kind(Kind::Double).reshape([-1])).expect("a float vector");
        v.into_iter().map(|x| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() }).collect()
    } else {
        let v = Vec::<i64>::try_from(t.detach().to_kind(Kind::Int64).reshape([-1])).expect("an integer vector");
        v.into_iter().map(|x| x as u64).collect()
    }
}
