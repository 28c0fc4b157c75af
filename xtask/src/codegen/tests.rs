//! What follows from one row, for operators that there are not.

use super::{emit, methods, native::Natives, table};

const YAML: &str = "
- func: throwaway(Tensor self, *, Scalar alpha=1) -> Tensor
- func: throwaway_(Tensor(a!) self, *, Scalar alpha=1) -> Tensor(a!)
- func: throwaway_sum.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
";

const TABLE: &str = "
[pointwise]
throwaway = { rule = 'float', expr = 'alpha * log1p(exp(self))', \
grad.self = 'grad * alpha * sigmoid(self)', dtypes = 'float' }
[reduction]
'throwaway_sum.dim' = { rule = 'sum_dim', reduce = { over = 'dim', results = ['sum(self * self)'] }, \
dtypes = 'float', samples = ['[2,3], (1), false'] }
";

#[test]
fn a_row_alone_gives_rule_expression_gradient_method_and_documentation() {
    let natives = Natives::parse(YAML).expect("operators");
    let rules = ["pointwise::float", "reduction::sum_dim"].map(str::to_owned).into();
    let rows = table::resolve(TABLE, &natives, &rules).expect("rows that resolve");
    let (table, methods, docs) = (emit::rows(&rows), methods::emit(&rows).expect("methods"), emit::docs(&rows));
    for (text, parts) in [
        (
            &table,
            &[
                "name: \"aten::throwaway\"",
                "rule: r::pointwise::float",
                "expr: Some(\"alpha * log1p(exp(self))\")",
                "gradients: &[(\"self\", \"grad * alpha * sigmoid(self)\")]",
                "(\"aten::throwaway_\", OpCode::Throwaway)",
                "name: \"aten::throwaway_sum.dim\"",
                "rule: r::reduction::sum_dim",
                "reduce: Some(",
                "\"sum(self * self)\"",
            ][..],
        ),
        (&methods, &["pub fn throwaway(&self", "pub fn throwaway_(&self", "pub fn throwaway_sum_dim(&self"]),
        (&docs, &["`throwaway`", "`throwaway_sum.dim`"]),
    ] {
        for part in parts {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }
}
