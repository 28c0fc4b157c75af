//! Programs run on the executor thread as they would on their caller's.

use ltc_torch::{Event, Options, to_cpu, to_lazy};
use tch::{Device, Kind, Tensor};

#[test]
fn a_program_runs_with_as_many_threads_as_its_caller_has() {
    let mut options = Options::from_env().expect("the environment makes sense");
    options.config.inline_execution = false;
    ltc_torch::init_with(options).expect("the device registers");
    let a = Tensor::randn([3_000_000], (Kind::Float, Device::Cpu));
    // Its last bits depend on the number of threads.
    let norm = |t: &Tensor| t.norm_scalaropt_dtype(3.0, Kind::Float);
    let lazy = to_lazy(&a).expect("to the device");
    ltc_torch::record_events(true).expect("initialised");
    let mut seen = Vec::new();
    for threads in [2, 1, 2, 1] {
        tch::set_num_threads(threads);
        let y = to_cpu(&norm(&lazy)).expect("a value");
        assert_eq!(y, norm(&a), "{threads} threads");
        seen.push(y.double_value(&[]));
    }
    assert_ne!(seen[0], seen[1], "this test would not see another number of threads");
    let events = ltc_torch::take_events().expect("initialised");
    let elsewhere = events.iter().filter(|e| matches!(e, Event::Execute { inline: false, .. })).count();
    assert_eq!(elsewhere, 4, "{events:?}");
}
