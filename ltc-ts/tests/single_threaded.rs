//! What is too small for several threads starts none. Alone in its process, whose threads it lists.

mod common;

use std::collections::HashSet;
use std::ffi::OsString;
use std::thread;

use common::*;
use ltc_backend::{Executable as _, SingleThread};
use ltc_ir::ArgWriter;
use ltc_ts::{Fusion, RunStats, TsConfig};
use tch::{Device, Kind, Tensor};

/// Threads of this process by their numbers, where the system tells. Their count would not do: the team of a thread
/// that ended ends some time later.
fn threads() -> Option<HashSet<OsString>> {
    Some(std::fs::read_dir("/proc/self/task").ok()?.flatten().map(|task| task.file_name()).collect())
}

struct Ran {
    value: Tensor,
    stats: RunStats,
    /// Threads that were started.
    started: Option<usize>,
    /// As many as it may use, as it says itself, and what its thread was left with.
    cost: usize,
    single_thread: SingleThread,
    left: i32,
}

/// Runs `softmax(a @ b)` on a thread of its own, which has no team of threads yet; `asked`: on one thread.
fn run(config: TsConfig, a: &Tensor, b: &Tensor, asked: bool) -> Ran {
    let (a, b) = (a.copy(), b.copy());
    thread::spawn(move || {
        tch::set_num_threads(2);
        let mut g = G::default();
        let (rows, columns) = (a.size()[0], b.size()[1]);
        let (x, y, result) = (g.param(&f32s(&a.size())), g.param(&f32s(&b.size())), f32s(&[rows, columns]));
        let product = g.one("aten::mm", ArgWriter::new().tensor().tensor(), &[x, y], &result);
        // libtorch's kernel starts threads for the smallest tensors.
        let softmax = g.one("aten::_softmax", ArgWriter::new().tensor().int(1).bool(false), &[product], &result);
        let rig = Rig::with(config, g.finish(&[softmax]));
        let (inputs, before) = ([&a, &b].map(|t| keep(rig.buffer(t))), threads());
        let value = rig.execute_on(inputs.into(), asked).tensor(0);
        let started = threads().zip(before).map(|(now, before)| now.difference(&before).count());
        let cost = rig.program.cost().expect("a program of the CPU");
        let (cost, single_thread) = (cost.threads, cost.single_thread);
        Ran { value, stats: rig.stats(), started, cost, single_thread, left: tch::get_num_threads() }
    })
    .join()
    .expect("it runs")
}

#[test]
fn small_programs_start_no_threads_and_small_products_none_in_any() {
    tch::set_num_threads(2);
    let normal = |sizes: &[i64]| Tensor::randn(sizes, (Kind::Float, Device::Cpu));
    let (a, b) = (normal(&[32, 64]), normal(&[64, 48]));
    let expected = a.mm(&b).softmax(1, Kind::Float);
    let with = |fusion, single_thread_small| TsConfig { fusion, single_thread_small, ..TsConfig::default() };
    for (fusion, single_threaded, is_single) in
        [(Fusion::Full, true, true), (Fusion::Full, false, false), (Fusion::Exact, true, false)]
    {
        let ran = run(with(fusion, single_threaded), &a, &b, false);
        let stats = (ran.stats.single_threaded, ran.stats.small_products);
        assert_eq!(stats, if is_single { (1, 1) } else { (0, 0) }, "{fusion:?}");
        assert_eq!((ran.cost, ran.left), (if is_single { 1 } else { 2 }, 2), "{fusion:?}");
        if let Some(started) = ran.started {
            assert_eq!(started == 0, is_single, "{fusion:?}: {started} threads");
        }
        assert!(ran.value.allclose(&expected, 1e-5, 1e-6, false));
        if fusion == Fusion::Exact {
            assert_same(&ran.value, &expected);
        }
    }
    // Where several threads gain something they are used.
    let (a, b) = (normal(&[128, 128]), normal(&[128, 128]));
    let ran = run(with(Fusion::Full, true), &a, &b, false);
    assert_eq!((ran.stats.single_threaded, ran.stats.small_products, ran.cost), (0, 0, 2));
    assert!(ran.started.is_none_or(|n| n > 0));
    // Unless they are asked not to be, and bits may differ.
    let expected = a.mm(&b).softmax(1, Kind::Float);
    for (fusion, single_threaded, may) in
        [(Fusion::Full, true, true), (Fusion::Full, false, false), (Fusion::Exact, true, false)]
    {
        let ran = run(with(fusion, single_threaded), &a, &b, true);
        assert_eq!(
            (ran.single_thread != SingleThread::Never, ran.stats.single_threaded, ran.left),
            (may, u64::from(may), 2),
            "{fusion:?}"
        );
        // Bits of a product depend on threads, so a model decides: 2^21 multiplications take some 100 us.
        let saves = if let SingleThread::OtherBits { saves } = ran.single_thread { saves.as_micros() } else { 0 };
        assert_eq!((10..200).contains(&saves), may, "{saves} us");
        assert!(ran.started.is_none_or(|n| (n == 0) == may), "{fusion:?}: {:?} threads", ran.started);
        assert!(ran.value.allclose(&expected, 1e-5, 1e-6, false));
    }
    // A small product in a program that uses several threads elsewhere is the same product.
    let (a, b) = (normal(&[1024, 2]), normal(&[2, 64]));
    let ran = run(with(Fusion::Full, true), &a, &b, false);
    assert_eq!((ran.stats.single_threaded, ran.stats.small_products, ran.cost), (0, 1, 2));
}
