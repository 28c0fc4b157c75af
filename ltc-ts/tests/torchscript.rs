//! The printed forms: the listing, and TorchScript IR that real TorchScript runs to the same values.

mod common;

use std::{env, fs, path::PathBuf, process::Command};

use common::*;
use ltc_ir::{ArgFlags, ArgWriter, DType, Layout, LayoutRef, Scalar};
use tch::{Kind, Tensor};

#[test]
fn the_listing_shows_slots_frees_and_reuse() {
    let (l, row) = (f32s(&[3, 4]), f32s(&[4]));
    let mut g = G::default();
    let (x, y) = (g.param(&l), g.param(&l));
    let sum = g.add(x, y, &l);
    let twice = g.add_in_place(sum, y, &l);
    let kept = g.add_in_place(x, twice, &l);
    let top = g.read_view(kept, 0, &row);
    let args = ArgWriter::new().tensor().int(0).bool(true).clone();
    let max = g.call(
        "aten::max.dim",
        &args,
        &[kept],
        &[f32s(&[1, 4]), LayoutRef::new(Layout::contiguous(DType::I64, &[1, 4]))],
    );
    let rig = Rig::new(g.finish(&[top, max[0], x]));
    let text = rig.program.program().text();
    let listing: Vec<&str> = text.lines().take_while(|l| !l.starts_with("graph")).collect();
    assert_eq!(
        listing,
        [
            "# 2 inputs, 3 numbers, 6 steps, 9 slots, 3 outputs",
            "s0: f32[3, 4] = input  output 2",
            "s1: f32[3, 4] = input",
            "s2: f32[3, 4] = aten::add.Tensor(s0, s1, n0:i64)",
            "s3: f32[3, 4] = aten::add_.Tensor(s2!, s1, n1:i64)  free s2 s1",
            "s4: f32[3, 4] = aten::add_.Tensor(s0^, s3, n2:i64)  free s0 s3",
            "s8: f32[4] = ltc::read_view(s4, 0)",
            "s5: f32[4] = materialize(s8)  output 0  free s8",
            "s6: f32[1, 4], _: i64[1, 4] = aten::max.dim(s4, 0, true)  output 1  free s4",
        ]
    );
    assert_eq!(text, rig.program.program().text());
}

#[test]
fn what_torchscript_cannot_express_is_said() {
    let mut g = G::default();
    let x = g.param(&f32s(&[4]));
    let bytes = g.read_view(x, 0, &LayoutRef::new(Layout::contiguous(DType::I32, &[4])));
    let program = Rig::new(g.finish(&[bytes])).program;
    let reason = program.program().torchscript().expect_err("a dtype view");
    assert_eq!(reason, "ltc::read_view: a view that changes the element type");
    assert!(program.program().text().contains(&reason));
}

/// A program, its inputs, and what its results are.
struct Case {
    rig: Rig,
    inputs: Vec<Tensor>,
}

impl Case {
    fn new(g: G, outputs: &[ltc_ir::ValueId], inputs: &[&Tensor]) -> Case {
        Case { rig: Rig::new(g.finish(outputs)), inputs: inputs.iter().map(|t| t.copy()).collect() }
    }

    /// Python source that runs the printed program and prints one line per output.
    fn python(&self) -> String {
        let text = self.rig.program.program().torchscript().expect("a TorchScript form");
        let mut args: Vec<String> = self.inputs.iter().map(literal).collect();
        args.extend(numbers(&text, &self.rig.numbers));
        format!("run('''{text}''', [{}])\n", args.join(", "))
    }

    fn expected(&self) -> Vec<Vec<f64>> {
        let told = self.rig.run(&self.inputs.iter().collect::<Vec<_>>());
        (0..told.0.len()).map(|i| values(&told.tensor(i))).collect()
    }
}

fn values(t: &Tensor) -> Vec<f64> {
    Vec::try_from(t.to_kind(Kind::Double).contiguous().view(-1)).expect("numbers")
}

fn literal(t: &Tensor) -> String {
    let dtype = if t.kind() == Kind::Int64 { "int64" } else { "float32" };
    format!("torch.tensor({:?}, dtype=torch.float64).to(torch.{dtype}).reshape({:?})", values(t), t.size())
}

/// The runtime numbers as Python literals, typed by the graph's header.
fn numbers(text: &str, words: &[u64]) -> Vec<String> {
    let header = text.split_once("):").expect("a header").0;
    let typed = header.split(", ").filter_map(|input| input.split_once("%n")?.1.split_once(" : "));
    typed
        .map(|(at, ty)| {
            let word = words[at.parse::<usize>().expect("a position")];
            match ty {
                "float" => format!("{:?}", f64::from_bits(word)),
                "bool" => (if word == 0 { "False" } else { "True" }).into(),
                _ => (word as i64).to_string(),
            }
        })
        .collect()
}

/// Pointwise operators, wrapped numbers, writes in place, lists, strings.
fn pointwise() -> Case {
    let l = f32s(&[2, 6]);
    let mut g = G::default();
    let (x, y) = (g.param(&l), g.param(&l));
    let scaled = g.one("aten::mul.Tensor", ArgWriter::new().tensor().wrapped(Scalar::Float(1.5)), &[x], &l);
    let sum = g.add_in_place(scaled, y, &l);
    let again = g.add_in_place(x, sum, &l);
    let gelu = g.one("aten::gelu", ArgWriter::new().tensor().str("tanh"), &[again], &l);
    let clamp = ArgWriter::new().tensor().none().number(Scalar::Float(2.5)).clone();
    let clamped = g.one("aten::clamp", &clamp, &[gelu], &l);
    let joined =
        g.one("aten::cat", ArgWriter::new().tensors(&[true; 2], ArgFlags::NONE).int(1), &[clamped, x], &f32s(&[2, 12]));
    let parts = [f32s(&[2, 4]), f32s(&[2, 4]), f32s(&[2, 4])];
    let split = g.call("aten::split_copy.Tensor", ArgWriter::new().tensor().int(4).int(1), &[joined], &parts);
    let (written, read) = ([true; 2], [true; 2]);
    let foreach =
        ArgWriter::new().tensors(&written, ArgFlags::MUT).tensors(&read, ArgFlags::NONE).number(2i64.into()).clone();
    let both = g.call("aten::_foreach_add_.List", &foreach, &[split[0], split[1], split[1], split[2]], &parts[..2]);
    Case::new(g, &[sum, again, split[0], both[0], both[1], x], &[&ramp(&[2, 6]), &ramp(&[2, 6]).cos()])
}

/// Views of views, written views, matrix products, several results, absent list entries.
fn views() -> Case {
    let (m, t) = (f32s(&[4, 6]), LayoutRef::new(Layout::strided(DType::F32, &[6, 4], &[1, 6])));
    let (rows, block) = (f32s(&[2, 6]), LayoutRef::new(Layout::strided(DType::F32, &[2, 3], &[6, 1])));
    let ints = LayoutRef::new(Layout::contiguous(DType::I64, &[2]));
    let mut g = G::default();
    let (x, i) = (g.param(&m), g.param(&ints));
    let transposed = g.read_view(x, 0, &t);
    let square = g.one("aten::mm", ArgWriter::new().tensor().tensor(), &[x, transposed], &f32s(&[4, 4]));
    let lower = g.read_view(x, 12, &rows);
    let inner = g.read_view(lower, 2, &block);
    let relu = g.relu(inner, &f32s(&[2, 3]));
    let written = g.write_view(x, relu, 1, &block, &m);
    let max = ArgWriter::new().tensor().int(1).bool(false).clone();
    let four = LayoutRef::new(Layout::contiguous(DType::I64, &[4]));
    let max = g.call("aten::max.dim", &max, &[written], &[f32s(&[4]), four]);
    let pick = ArgWriter::new().tensor().tensors(&[false, true], ArgFlags::NONE).clone();
    let picked = g.one("aten::index.Tensor", &pick, &[square, i], &f32s(&[4, 2]));
    let mean = ArgWriter::new().tensor().ints(&[0, 1]).bool(false).none().clone();
    let mean = g.one("aten::mean.dim", &mean, &[picked], &f32s(&[]));
    Case::new(g, &[square, relu, written, max[0], max[1], mean], &[&ramp(&[4, 6]), &Tensor::from_slice(&[3i64, 1])])
}

/// Generators: a seed, two draws, `out=` memory.
fn draws() -> Case {
    let l = f32s(&[20]);
    let mut g = G::default();
    let x = g.param(&l);
    let seed = g.one("ltc::seed", ArgWriter::new().number(7i64.into()), &[], &state());
    let normal = ArgWriter::new().tensor_with(ArgFlags::MUT).float(1.0).float(2.0).generator().clone();
    let first = g.call("aten::normal_", &normal, &[x, seed], &[l.clone(), state()]);
    let second = g.call("aten::normal_", &normal, &[x, first[1]], &[l.clone(), state()]);
    let fresh = ArgFlags::MUT.and(ArgFlags::FRESH);
    let out = ArgWriter::new().tensor().tensor().number(Scalar::Int(3)).tensor_with(fresh).clone();
    let sum = g.one("aten::add.out", &out, &[first[0], second[0]], &l);
    Case::new(g, &[first[0], second[0], sum], &[&ramp(&[20])])
}

const PRELUDE: &str = "import torch\n\
def run(text, inputs):\n\
\x20   f = torch._C._create_function_from_graph('f', torch._C.parse_ir(text))\n\
\x20   outs = f(*inputs)\n\
\x20   for o in outs if isinstance(outs, tuple) else [outs]:\n\
\x20       print(' '.join(repr(v) for v in o.double().flatten().tolist()))\n";

#[test]
fn real_torchscript_gives_the_same_values() {
    let Some(python) = python_with_torch() else {
        eprintln!("skipped: no python with torch found (looked in .venv, the active environment, PATH)");
        return;
    };
    let cases = [pointwise(), views(), draws()];
    let source: String = std::iter::once(PRELUDE.to_string()).chain(cases.iter().map(Case::python)).collect();
    let script = env::temp_dir().join(format!("ltc-torchscript-{}.py", std::process::id()));
    fs::write(&script, &source).expect("the script is written");
    let output = Command::new(&python).arg(&script).output().expect("python starts");
    fs::remove_file(&script).expect("the script is removed");
    assert!(output.status.success(), "{}\n{source}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8_lossy(&output.stdout);
    let printed: Vec<Vec<f64>> =
        printed.lines().map(|l| l.split(' ').map(|v| v.parse().expect("a number")).collect()).collect();
    let expected: Vec<Vec<f64>> = cases.iter().flat_map(Case::expected).collect();
    assert_eq!(printed, expected);
}

/// A Python that has torch: the workspace's own, the active environment's, the first in the path.
fn python_with_torch() -> Option<PathBuf> {
    let workspace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let environments = [Some(workspace.join(".venv")), env::var_os("VIRTUAL_ENV").map(PathBuf::from)];
    let inside = environments.into_iter().flatten().map(|e| e.join("bin/python3"));
    inside.chain([PathBuf::from("python3")]).find(|python| {
        let mut torch = Command::new(python);
        torch.args(["-c", "import importlib.util as u; exit(u.find_spec('torch') is None)"]);
        torch.output().is_ok_and(|o| o.status.success())
    })
}
