//! Whether an argument of a call has the default that its schema writes, and how its value reads.

use super::{ArgKind, ArgSpec};
use crate::{
    args::{Arg, scalar_words},
    dtype::DType,
    scalar::Scalar,
};

/// The integer that a schema writes: some have names.
fn integer(text: &str) -> Option<i64> {
    match text {
        "Mean" => Some(1),
        "contiguous_format" => Some(0),
        "long" => Some(DType::I64 as i64),
        _ => text.parse().ok(),
    }
}

/// The entries of a list as a schema writes it.
fn entries(text: &str) -> Option<impl Iterator<Item = &str>> {
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    Some(inner.split(',').map(str::trim).filter(|entry| !entry.is_empty()))
}

/// Whether a list has these entries.
fn lists<T: PartialEq>(text: &str, list: impl Iterator<Item = T>, read: impl Fn(&str) -> Option<T>) -> bool {
    entries(text).is_some_and(|entries| entries.map(read).eq(list.map(Some)))
}

/// Whether a number has this value, whatever its type is.
fn equals(text: &str, number: Option<Scalar>) -> bool {
    let Ok(wanted) = text.parse::<f64>() else { return false };
    match number {
        Some(Scalar::Bool(b)) => f64::from(u8::from(b)) == wanted,
        Some(Scalar::Int(i)) => i as f64 == wanted,
        Some(Scalar::Float(x) | Scalar::Complex(x, 0.0)) => x == wanted,
        Some(Scalar::Complex(..)) | None => false,
    }
}

fn number(dtype: DType, at: usize, numbers: &[u64]) -> Option<Scalar> {
    Scalar::from_words(dtype, numbers.get(at..)?)
}

fn string(words: &[u64], len: usize) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).take(len).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

impl ArgSpec {
    /// Whether a call without this argument means the same as one with this value, given the call's runtime numbers.
    /// Never so of an argument that has no default.
    pub fn is_default(&self, arg: &Arg<'_>, numbers: &[u64]) -> bool {
        let Some(text) = self.default else { return false };
        match *arg {
            // A device or a generator is recorded where none was given, too.
            Arg::None | Arg::Device | Arg::Generator { .. } => text == "None",
            Arg::Tensor { .. } | Arg::Tensors { .. } | Arg::Numbers { .. } => false,
            // One integer stands for a list of one.
            Arg::Int(v) if self.kind == ArgKind::Ints => lists(text, std::iter::once(v), integer),
            Arg::Int(v) => integer(text) == Some(v),
            Arg::Bool(b) => text == if b { "True" } else { "False" },
            Arg::Float { number: at } => equals(text, number(DType::F64, at, numbers)),
            Arg::Number { number: at, dtype } | Arg::HostScalar { number: at, dtype, .. } => {
                equals(text, number(dtype, at, numbers))
            }
            Arg::Str { words, len } => text.trim_matches(['"', '\'']) == string(words, len) && text != "None",
            Arg::Ints(v) => lists(text, v.iter().map(|&w| w as i64), integer),
            Arg::Floats(v) => lists(text, v.iter().map(|&w| f64::from_bits(w)), |t| t.parse().ok()),
            Arg::Bools(v) => lists(text, v.iter().map(|&w| w != 0), |t| t.to_lowercase().parse().ok()),
        }
    }
}

/// The value of an argument in a message, given the call's runtime numbers.
pub fn shown(arg: &Arg<'_>, numbers: &[u64]) -> String {
    let of = |dtype, at| number(dtype, at, numbers).map_or("a number".to_owned(), |n| n.to_string());
    match *arg {
        Arg::None => "None".into(),
        Arg::Device => "a device".into(),
        Arg::Generator { .. } => "a generator".into(),
        Arg::Tensor { .. } => "a tensor".into(),
        Arg::Tensors { len, .. } => format!("a list of {len} tensors"),
        Arg::Int(v) => v.to_string(),
        Arg::Bool(b) => b.to_string(),
        Arg::Float { number: at } => of(DType::F64, at),
        Arg::Number { number: at, dtype } | Arg::HostScalar { number: at, dtype, .. } => of(dtype, at),
        Arg::Str { words, len } => format!("{:?}", string(words, len)),
        Arg::Ints(v) => format!("{:?}", v.iter().map(|&w| w as i64).collect::<Vec<_>>()),
        Arg::Floats(v) => format!("{:?}", v.iter().map(|&w| f64::from_bits(w)).collect::<Vec<_>>()),
        Arg::Bools(v) => format!("{:?}", v.iter().map(|&w| w != 0).collect::<Vec<_>>()),
        Arg::Numbers { dtypes, first_number } => {
            let mut at = first_number;
            let mut each = |&code: &u64| {
                let dtype = u8::try_from(code).ok().and_then(DType::from_code)?;
                at += scalar_words(dtype);
                Some(of(dtype, at - scalar_words(dtype)))
            };
            format!("[{}]", dtypes.iter().filter_map(&mut each).collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        args::{ArgReader, ArgWriter},
        table::{ArgKind as K, arg},
    };

    /// Whether what is written is the default of an argument of this kind, and how it reads.
    fn seen(
        kind: K,
        default: Option<&'static str>,
        write: impl Fn(&mut ArgWriter) -> &mut ArgWriter,
    ) -> (bool, String) {
        let mut w = ArgWriter::new();
        write(&mut w);
        let (words, numbers) = w.finish();
        let value = ArgReader::new(&words).next().expect("an argument");
        (arg("x", kind, true, false, default).is_default(&value, &numbers), shown(&value, &numbers))
    }

    #[test]
    fn values_are_told_from_defaults() {
        type Write<'w> = &'w dyn Fn(&mut ArgWriter) -> &mut ArgWriter;
        let cases: [(K, &'static str, Write<'_>, Write<'_>); 14] = [
            (K::Int, "Mean", &|w| w.int(1), &|w| w.int(2)),
            (K::Int, "-1", &|w| w.int(-1), &|w| w.none()),
            (K::Int, "None", &|w| w.none(), &|w| w.int(0)),
            (K::DType, "long", &|w| w.int(DType::I64 as i64), &|w| w.int(DType::F32 as i64)),
            (K::Bool, "False", &|w| w.bool(false), &|w| w.bool(true)),
            (K::Bool, "None", &|w| w.none(), &|w| w.bool(false)),
            (K::Float, "1", &|w| w.float(1.0), &|w| w.float(f64::NAN)),
            (K::Scalar, "0.01", &|w| w.number(Scalar::Float(0.01)), &|w| w.number(Scalar::Float(0.02))),
            (K::Scalar, "1", &|w| w.number(Scalar::Bool(true)), &|w| w.number(Scalar::Complex(1.0, 1.0))),
            (K::Scalar, "1.0", &|w| w.number(Scalar::Int(1)), &|w| w.number(Scalar::Int(0))),
            (K::Str, "'none'", &|w| w.str("none"), &|w| w.str("tanh")),
            (K::Ints, "[]", &|w| w.ints(&[]), &|w| w.ints(&[0])),
            (K::Ints, "[1,1]", &|w| w.ints(&[1, 1]), &|w| w.ints(&[1, 1, 1])),
            (K::Tensor, "None", &|w| w.none(), &|w| w.tensor()),
        ];
        for (kind, default, same, other) in cases {
            assert!(seen(kind, Some(default), same).0, "{kind:?} {default}");
            assert!(!seen(kind, Some(default), other).0, "{kind:?} {default}: {}", seen(kind, Some(default), other).1);
            assert!(!seen(kind, None, same).0, "what has no default is never at it");
        }
        // Of a list, one integer is one entry, and an absent one is no empty one.
        assert!(seen(K::Ints, Some("[1]"), |w| w.int(1)).0);
        assert!(!seen(K::Ints, Some("[]"), |w| w.none()).0);
        assert!(!seen(K::Str, Some("None"), |w| w.str("None")).0);
    }

    #[test]
    fn every_default_of_the_table_is_the_value_of_some_argument() {
        for (row, spec) in super::super::rows().iter().flat_map(|row| row.arguments.iter().map(move |a| (row, a))) {
            let Some(text) = spec.default else { continue };
            let number = text.parse::<f64>().unwrap_or(f64::NAN);
            let mut w = ArgWriter::new();
            let _ = match (spec.kind, text) {
                (_, "None") => w.none(),
                (K::Ints, _) => w.ints(&entries(text).into_iter().flatten().filter_map(integer).collect::<Vec<_>>()),
                (K::Bool, _) => w.bool(text == "True"),
                (K::Float, _) => w.float(number),
                (K::Scalar, _) => w.number(Scalar::Float(number)),
                (K::Str, _) => w.str(text.trim_matches(['"', '\''])),
                _ => w.int(integer(text).unwrap_or(i64::MIN)),
            };
            let (words, numbers) = w.finish();
            let value = ArgReader::new(&words).next().expect("an argument");
            assert!(spec.is_default(&value, &numbers), "{} {}={text}", row.name, spec.name);
        }
    }

    #[test]
    fn values_read_as_they_are_written() {
        assert_eq!(seen(K::Str, None, |w| w.str("tanh")).1, "\"tanh\"");
        assert_eq!(seen(K::Ints, None, |w| w.ints(&[2, -1])).1, "[2, -1]");
        assert_eq!(seen(K::Float, None, |w| w.float(0.5)).1, "0.5");
        assert_eq!(seen(K::Scalars, None, |w| w.number_list(&[Scalar::Int(1), Scalar::Bool(true)])).1, "[1, true]");
    }
}
