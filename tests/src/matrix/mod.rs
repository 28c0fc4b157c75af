//! The operator matrix: every row of the operator table against eager libtorch.
//!
//! The table's own columns say what to run: `dtypes`, and `samples`, each the positional arguments of a call (see
//! [`sample`]). Pointwise operators get theirs from the schema. Every call is made with the rule, which must answer
//! the kernel's own sizes, strides and dtypes, and again with each argument spoilt ([`mutant`]), where rule and kernel
//! must agree whether the call is an error and of what class.

pub mod call;
pub mod mutant;
pub mod sample;
pub mod value;

use std::collections::BTreeMap;

use ltc_ir::{
    DType, OpClass,
    table::{ArgKind, Row},
};
use serde::Deserialize;

use self::sample::Value;

/// The columns of a row that are about tests.
#[derive(Deserialize, Default, Clone, Debug)]
pub struct Columns {
    #[serde(default)]
    dtypes: Option<String>,
    #[serde(default)]
    samples: Vec<String>,
    /// Why the operator is not run.
    #[serde(default)]
    pub skip: Option<String>,
    /// Why spoilt calls are not made: the kernel would read memory it should not.
    #[serde(default)]
    pub unchecked: Option<String>,
    /// Relative tolerance of values.
    #[serde(default)]
    pub tolerance: Option<f64>,
}

/// A row with its test columns.
#[derive(Clone, Debug)]
pub struct Tested {
    /// The row.
    pub row: &'static Row,
    /// Its test columns.
    pub columns: Columns,
}

/// All rows.
pub fn table() -> Vec<Tested> {
    let text = include_str!("../../../ltc-ir/ops.toml");
    let sections: BTreeMap<String, BTreeMap<String, Columns>> = toml::from_str(text).expect("the table parses");
    let rows = sections.into_values().flatten();
    rows.map(|(name, columns)| {
        let row = ltc_ir::table::find(&format!("aten::{name}"));
        Tested { row: row.unwrap_or_else(|| panic!("{name} is not generated")), columns }
    })
    .collect()
}

impl Tested {
    /// Dtypes the operator is tested with; few of them when `quick`.
    pub fn dtypes(&self, quick: bool) -> Vec<DType> {
        use DType::{BF16, Bool, F16, F32, F64, I8, I16, I32, I64, U8};
        let float: &[DType] = if quick { &[F32, F64] } else { &[F32, F64, BF16, F16] };
        let whole: &[DType] = if quick { &[I64] } else { &[I64, I32, I16, I8, U8] };
        match self.columns.dtypes.as_deref().unwrap_or("f32") {
            "float" => float.to_vec(),
            "real" | "numeric" => [float, whole].concat(),
            "integral" => [whole, &[Bool]].concat(),
            "all" => [float, whole, &[Bool]].concat(),
            "bool" => vec![Bool],
            "f32" => vec![F32],
            other => panic!("{}: unknown set of dtypes {other}", self.row.name),
        }
    }

    /// Calls to make, as texts.
    pub fn samples(&self) -> Vec<String> {
        if !self.columns.samples.is_empty() || self.row.class != OpClass::Pointwise {
            return self.columns.samples.clone();
        }
        let tensors = self.row.arguments.iter().filter(|a| a.kind == ArgKind::Tensor && !a.optional).count();
        let number = self.row.arguments.iter().any(|a| a.kind == ArgKind::Scalar && a.default.is_none());
        pointwise_samples(tensors, number)
    }

    /// Arguments of a sample, defaults filled in.
    ///
    /// # Errors
    /// Says what of the sample does not fit the operator's schema.
    pub fn arguments(&self, sample: &str) -> Result<Vec<Value>, String> {
        sample::parse(sample, self.row.arguments).map_err(|e| format!("{} ({sample}): {e}", self.row.name))
    }
}

/// Shapes for operators of so many tensors: empty, 0-dim, size 1, broadcast, large, other strides, mixed dtypes,
/// numbers.
fn pointwise_samples(tensors: usize, number: bool) -> Vec<String> {
    let all = |shape: &str| vec![shape; tensors].join(", ");
    let mut samples: Vec<String> = [
        "[2,3]",
        "[]",
        "[0]",
        "[0,3]",
        "[1]",
        "[3,1,2]",
        "[70,65]",
        "[2,3]{1,2}",
        "[2,3]{0,1}",
        "[3]{2}",
        "[2,3,4,5]{60,1,15,3}",
        "[2,3,4]{1,2,6}",
        "[2,1,4]{1,9,2}",
    ]
    .map(all)
    .to_vec();
    if tensors == 2 && !number {
        samples.extend(
            [
                "[2,3], [3]",
                "[2,1], [1,3]",
                "[], [2]",
                "[2,3], []",
                "[0], [1]",
                "[2,3]{1,2}, [2,3]",
                "[2,3], [2,3]{1,2}",
                "[2,3,4,5]{60,1,15,3}, [1,3,1,1]",
                "[4,1,3], [2,1]{1,5}",
                "i64[2,3], [2,3]",
                "[2,3], i32[]",
                "f64[], [2]",
            ]
            .map(str::to_owned),
        );
    }
    if number {
        samples = samples.iter().flat_map(|s| [format!("{s}, 2"), format!("{s}, 1.5")]).collect();
    }
    samples
}
