//! Samples: the positional arguments of a call, as text.
//!
//! | schema | text |
//! |---|---|
//! | `Tensor` | `[2,3]`, with dtype `i64[2,3]`, values below 5 `i64<5[2]`, strides `[2,3]{1,2}`; `none` |
//! | `Tensor` of certain values | `unit[..]` has values in (0, 1), `spd[..]` positive definite matrices |
//! | `Tensor[]`, `Tensor?[]` | `{[2] [3] none}` |
//! | numbers, `bool` | `2`, `2.5`, `true` |
//! | lists | `(1,2)`, `(true,false)`, `()`, `none` |
//! | `str`, `ScalarType` | `"add"`, `f64` |
//!
//! Arguments left out have the schema's defaults.

use ltc_ir::{
    DType, Scalar,
    table::{ArgKind, ArgSpec},
};

/// One argument.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// Absent.
    None,
    /// A tensor.
    Tensor(TensorSpec),
    /// Tensors, some absent.
    Tensors(Vec<Option<TensorSpec>>),
    /// A number, a boolean, an integer.
    Number(Scalar),
    /// Integers or booleans.
    Ints(Vec<i64>),
    /// A string.
    Str(String),
    /// An element type.
    DType(DType),
}

/// What a tensor argument looks like.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorSpec {
    /// Element type; `None` takes the tested one.
    pub dtype: Option<DType>,
    /// Values.
    pub fill: Fill,
    /// Sizes.
    pub sizes: Vec<i64>,
    /// Strides; `None` is row-major.
    pub strides: Option<Vec<i64>>,
}

/// Which values a tensor has.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Fill {
    /// Around 0, of both signs.
    Mixed,
    /// From 0 to below this.
    Below(i64),
    /// Between 0 and 1.
    Unit,
    /// Symmetric positive definite matrices.
    Definite,
}

fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0i32, 0, Vec::new());
    for (i, c) in text.char_indices() {
        match c {
            '[' | '(' | '{' => depth += 1,
            ']' | ')' | '}' => depth -= 1,
            c if c == separator && depth == 0 => {
                parts.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts.retain(|p| !p.is_empty());
    parts
}

/// The arguments of a sample, as many as the schema has.
///
/// # Errors
/// Says which argument is none of its kind, or that there are too many.
pub fn parse(text: &str, arguments: &[ArgSpec]) -> Result<Vec<Value>, String> {
    let given = split(text, ',');
    if given.len() > arguments.len() {
        return Err(format!("{} arguments, the schema has {}", given.len(), arguments.len()));
    }
    let parse = |(i, a): (usize, &ArgSpec)| match given.get(i) {
        Some(text) => value(text, a.kind),
        None => default(a),
    };
    arguments.iter().enumerate().map(parse).collect()
}

fn default(a: &ArgSpec) -> Result<Value, String> {
    match a.default {
        None if a.optional => Ok(Value::None),
        None => Err(format!("argument `{}` has no default", a.name)),
        Some("contiguous_format") if !a.optional => Ok(Value::Number(Scalar::Int(0))),
        Some("None" | "contiguous_format") => Ok(Value::None),
        Some("Mean") => Ok(Value::Number(Scalar::Int(1))),
        Some("long") => Ok(Value::DType(DType::I64)),
        Some("True") => Ok(Value::Number(Scalar::Bool(true))),
        Some("False") => Ok(Value::Number(Scalar::Bool(false))),
        Some(text) if text.starts_with('[') => value(&text.replace('[', "(").replace(']', ")"), a.kind),
        Some(text) => value(&text.replace('\'', "\""), a.kind),
    }
    .map_err(|e| format!("default of `{}`: {e}", a.name))
}

fn value(text: &str, kind: ArgKind) -> Result<Value, String> {
    if text == "none" {
        return Ok(Value::None);
    }
    let inside = |open: char, close: char| text.strip_prefix(open).and_then(|t| t.strip_suffix(close));
    Ok(match kind {
        ArgKind::Tensor if text.contains('[') => Value::Tensor(tensor(text)?),
        ArgKind::Tensor => Value::Number(number(text)?),
        ArgKind::Tensors | ArgKind::OptionalTensors => {
            let list = inside('{', '}').ok_or("a list of tensors stands in { }")?;
            let each = |t: &str| if t == "none" { Ok(None) } else { tensor(t).map(Some) };
            Value::Tensors(split(list, ' ').into_iter().map(each).collect::<Result<_, String>>()?)
        }
        ArgKind::Ints | ArgKind::Bools | ArgKind::Floats => {
            let list = inside('(', ')').ok_or("a list stands in ( )")?;
            let each = |t: &&str| match *t {
                "true" => Ok(1),
                "false" => Ok(0),
                t => t.parse().map_err(|_| format!("`{t}` is no integer")),
            };
            Value::Ints(split(list, ',').iter().map(each).collect::<Result<_, String>>()?)
        }
        ArgKind::Str => Value::Str(text.trim_matches('"').to_owned()),
        ArgKind::DType => Value::DType(DType::from_name(text).ok_or_else(|| format!("`{text}` is no dtype"))?),
        _ => Value::Number(number(text)?),
    })
}

fn number(text: &str) -> Result<Scalar, String> {
    match text {
        "true" => Ok(Scalar::Bool(true)),
        "false" => Ok(Scalar::Bool(false)),
        _ => {
            let int = text.parse().map(Scalar::Int);
            int.or_else(|_| text.parse().map(Scalar::Float)).map_err(|_| format!("`{text}` is no number"))
        }
    }
}

fn tensor(text: &str) -> Result<TensorSpec, String> {
    let (kind, rest) = text.split_once('[').ok_or_else(|| format!("`{text}` is no tensor"))?;
    let (sizes, rest) = rest.split_once(']').ok_or("sizes are not closed")?;
    let ints = |t: &str| -> Result<Vec<i64>, String> {
        split(t, ',').iter().map(|v| v.parse().map_err(|_| format!("`{v}` is no size"))).collect()
    };
    let strides = match rest.strip_prefix('{').and_then(|r| r.strip_suffix('}')) {
        Some(list) => Some(ints(list)?),
        None if rest.is_empty() => None,
        None => return Err(format!("`{rest}` is not understood")),
    };
    let (dtype, fill) = match kind.split_once('<') {
        Some((dtype, below)) => (dtype, Fill::Below(below.parse().map_err(|_| "a bound is an integer")?)),
        None if kind == "unit" => ("", Fill::Unit),
        None if kind == "spd" => ("", Fill::Definite),
        None => (kind, Fill::Mixed),
    };
    let named = DType::from_name(dtype);
    if named.is_none() && !dtype.is_empty() {
        return Err(format!("`{dtype}` is no dtype"));
    }
    Ok(TensorSpec { dtype: named, fill, sizes: ints(sizes)?, strides })
}
