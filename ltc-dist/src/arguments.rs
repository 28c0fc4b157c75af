//! What collectives take, asked before anything is sent: an engine that refuses would do so on one rank, or later.

use tch::{Kind, Tensor};

use crate::{Error, Op};

/// The dtype of a tensor that takes part in `what`.
///
/// # Errors
/// Where it is not defined, or of a dtype that gloo does not carry.
pub(crate) fn kind_of(what: &str, tensor: &Tensor) -> Result<Kind, Error> {
    if !tensor.defined() {
        return Err(Error::Call(format!("{what} of a tensor that is not defined")));
    }
    let kind = tensor.f_kind()?;
    let is_known = matches!(
        kind,
        Kind::Uint8
            | Kind::Int8
            | Kind::Int
            | Kind::Int64
            | Kind::Half
            | Kind::BFloat16
            | Kind::Float
            | Kind::Double
            | Kind::Bool
    );
    if is_known { Ok(kind) } else { Err(Error::Call(format!("{what} of {kind:?}: gloo does not carry this dtype"))) }
}

/// Whether tensors of this dtype are combined that way.
///
/// # Errors
/// As [`kind_of`]; and where the result would be no value of the dtype.
pub(crate) fn check_op(what: &str, tensor: &Tensor, op: Op) -> Result<(), Error> {
    let kind = kind_of(what, tensor)?;
    let floating = matches!(kind, Kind::Half | Kind::BFloat16 | Kind::Float | Kind::Double);
    let why = match op {
        Op::Average if !floating => "the average of whole numbers is not one",
        Op::Sum if kind == Kind::Bool => "the sum of bools is no bool: Op::BitOr says whether one is true",
        Op::BitAnd | Op::BitOr | Op::BitXor if floating => "bits are combined of whole numbers",
        _ => return Ok(()),
    };
    Err(Error::Call(format!("{what} of {kind:?} by {op:?}: {why}")))
}

#[cfg(test)]
mod tests {
    use tch::Device;

    use super::*;

    fn error(kind: Kind, op: Op) -> Option<String> {
        check_op("all_reduce", &Tensor::zeros([2], (kind, Device::Cpu)), op).err().map(|e| e.to_string())
    }

    #[test]
    fn what_has_no_meaning_is_refused_in_words() {
        assert_eq!(error(Kind::Float, Op::Average), None);
        assert_eq!(error(Kind::Bool, Op::BitOr), None);
        assert_eq!(error(Kind::Int64, Op::Sum), None);
        assert!(error(Kind::Int64, Op::Average).unwrap().contains("Int64 by Average"));
        assert!(error(Kind::Bool, Op::Sum).unwrap().contains("Op::BitOr"));
        assert!(error(Kind::Half, Op::BitXor).unwrap().contains("whole numbers"));
        assert!(error(Kind::Int16, Op::Max).unwrap().contains("does not carry"));
        assert!(error(Kind::ComplexFloat, Op::Sum).unwrap().contains("does not carry"));
        assert!(check_op("all_reduce", &Tensor::new(), Op::Sum).unwrap_err().to_string().contains("not defined"));
    }
}
