//! The compiler for GPUs takes every operation, in every type, for every kind of GPU.

use std::path::PathBuf;

use ltc_ir::DType;

use super::{
    super::{Arch, LibraryError, Nvrtc, Source, ops::function, program},
    golden,
};
use crate::{
    Builder, ComputeType, KernelOp,
    cases::{CODES, Case, Data, Lie},
};

/// Kinds of GPUs: from the oldest that NVRTC 13 knows to the newest.
const ARCHS: [(u32, u32); 6] = [(7, 5), (8, 0), (8, 6), (9, 0), (10, 0), (12, 0)];

/// Where Python's packages lie, torch's among them.
fn packages() -> Option<PathBuf> {
    // Set for all tests of the workspace.
    PathBuf::from(std::env::var_os("LIBTORCH")?).canonicalize().ok()?.parent().map(PathBuf::from)
}

/// The compiler beside torch, in the folder `NVRTC_DIR` names, or of the system; `None` where there is none, after
/// saying so.
fn nvrtc() -> Option<Nvrtc> {
    let mut folders: Vec<PathBuf> = std::env::var_os("NVRTC_DIR").map(PathBuf::from).into_iter().collect();
    if let Some(packages) = packages() {
        folders.extend(["nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"].map(|folder| packages.join(folder)));
    }
    match Nvrtc::open(&folders) {
        Ok(nvrtc) => Some(nvrtc),
        Err(LibraryError::Missing(reason)) => {
            eprintln!("there is no NVRTC: text for GPUs is not compiled ({reason})");
            None
        }
        Err(e) => panic!("{e}"),
    }
}

/// A kernel of all operations on a type, of which there is one text: a compiler takes longer for many kernels.
fn all_operations(from: DType) -> Case {
    let ty = ComputeType::of(from).expect("a type kernels compute with");
    let types = [DType::F32, DType::F64, DType::I64, DType::I32, DType::U8, DType::Bool];
    let inputs = [from, from, from, DType::Bool].map(|dtype| (dtype, Lie::Dense));
    let mut b = Builder::new(false);
    let [x, y, z] = [0, 1, 2].map(|i| b.input(i, ty));
    let is = b.input(3, ComputeType::Bool);
    let mut values = Vec::new();
    for op in CODES.into_iter().filter(|&op| function(op, ty, ty).is_some()) {
        let args = if op == KernelOp::Select { [is, x, y] } else { [x, y, z] };
        values.push(b.op(op, &args[..op.arity()]));
    }
    values.extend(types.into_iter().filter(|to| *to != from).map(|to| b.cast(x, ComputeType::of(to).expect("one"))));
    let outputs = values.iter().map(|v| b.ty(*v).dtype()).collect();
    Case { inputs: inputs.to_vec(), outputs, ir: b.finish(&values) }
}

/// A program of kernels as they are met, and how many.
fn samples() -> (String, usize) {
    let mut sources = super::rows::samples();
    sources.extend(golden::silu().launches(golden::ROWS).each.into_iter().map(|launch| launch.source));
    (program(&sources), sources.len())
}

#[test]
fn every_operation_compiles_for_every_gpu() {
    let Some(nvrtc) = nvrtc() else { return };
    // One element a thread, lest there be several times as much to compile.
    let data = Data { rows: 1, columns: 1, shift: 0, seed: 1, in_place: false };
    let types = [DType::F32, DType::F64, DType::I64, DType::I32, DType::U8, DType::Bool];
    let launches = types.iter().flat_map(|from| all_operations(*from).launches(data).each);
    let sources: Vec<Source> = launches.map(|launch| launch.source).collect();
    for text in [program(&sources), samples().0] {
        for (major, minor) in ARCHS {
            let code = nvrtc.machine_code(&text, Arch { major, minor });
            let code = code.unwrap_or_else(|e| panic!("sm_{major}{minor}: {e}"));
            assert!(code.starts_with(b"\x7fELF"), "sm_{major}{minor}");
        }
    }
}

/// Values stay in registers: none is spilled to memory.
#[test]
fn kernels_fit_into_registers() {
    let Some(nvrtc) = nvrtc() else { return };
    let (text, count) = samples();
    for arch in [Arch { major: 8, minor: 0 }, Arch { major: 9, minor: 0 }] {
        let log = nvrtc.resources(&text, arch).expect("it compiles");
        assert_eq!(log.matches(" 0 bytes spill stores").count(), count, "{log}");
    }
    let portable = nvrtc.portable_code(&text, Arch { major: 8, minor: 0 }).expect("it compiles");
    assert!(String::from_utf8_lossy(&portable).contains(".target sm_80"));
}

#[test]
fn a_wrong_text_is_an_error_with_the_compilers_words() {
    let Some(nvrtc) = nvrtc() else { return };
    let source = Source { name: "wrong".to_owned(), text: "not CUDA C\n".to_owned() };
    match nvrtc.machine_code(&program([&source]), Arch { major: 8, minor: 0 }) {
        Err(LibraryError::Rejected { log }) => assert!(log.contains("kernels.cu") && log.contains("error"), "{log}"),
        other => panic!("{other:?}"),
    }
}
