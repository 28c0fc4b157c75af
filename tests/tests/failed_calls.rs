//! After the exception of a call that failed on values, the state is what eager's would be: random programs and
//! training loops, recorded and compiled.

use std::cell::Cell;

use ltc_tests::{
    alone, cases,
    compare::same_values,
    faults::{BAD, agree_after_failure},
    seed, strategy,
    subject::{Lazy, Subject},
    training,
};
use proptest::{prelude::*, sample::select};
use tch::{
    Device, Kind, Tensor,
    nn::{self, ModuleT, OptimizerConfig},
};

fn check(
    program: &ltc_tests::program::Program,
    bad: (&str, usize, usize),
    behind: usize,
) -> Result<bool, TestCaseError> {
    let _alone = alone();
    let differ = |d| TestCaseError::fail(format!("{d}\n{bad:?}, {behind} behind\n{program:?}"));
    agree_after_failure(program, &Lazy::new(), bad, behind).map_err(differ)
}

thread_local! {
    static FAILED: Cell<u32> = const { Cell::new(0) };
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(300),
        failure_persistence: None,
        rng_seed: seed(),
        max_shrink_iters: 2000,
        ..Default::default()
    })]

    fn over_all_operators(
        program in strategy::programs(24),
        op in select(BAD),
        at in 0usize..24,
        slot in 0usize..12,
        behind in 0usize..8,
    ) {
        FAILED.set(FAILED.get() + u32::from(check(&program, (op, at, slot), behind)?));
    }

    fn over_views_and_writes(
        program in strategy::aliasing(24),
        op in select(BAD),
        at in 0usize..24,
        slot in 0usize..12,
        behind in 0usize..8,
    ) {
        FAILED.set(FAILED.get() + u32::from(check(&program, (op, at, slot), behind)?));
    }

    fn over_draws(
        program in strategy::drawing(24),
        op in select(BAD),
        at in 0usize..24,
        slot in 0usize..12,
        behind in 0usize..8,
    ) {
        FAILED.set(FAILED.get() + u32::from(check(&program, (op, at, slot), behind)?));
    }
}

type Model = fn(&nn::Path<'_>) -> nn::SequentialT;

fn words(p: &nn::Path<'_>) -> nn::SequentialT {
    nn::seq_t()
        .add_fn(|x| x.narrow(1, 0, 3).abs().to_kind(Kind::Int64))
        .add(nn::embedding(p / "e", 12, 8, Default::default()))
        .add_fn_t(|x, train| x.flatten(1, -1).dropout(0.3, train))
        .add(nn::linear(p / "f", 24, 5, Default::default()))
}

/// Trains with a bad batch (a label out of range) in some steps. Losses, then the variables. Not in the first: what an
/// optimiser makes in a step that fails is an error. Nor with Adam, which counts steps on the host, where nothing is
/// undone.
fn train(model: Model, which: &str, lazy: bool, bad: &[usize], compiled: bool) -> Vec<Tensor> {
    tch::manual_seed(5);
    let mut vs = nn::VarStore::new(Device::Cpu);
    let net = model(&vs.root());
    let x = Tensor::randn([16, 20], (Kind::Float, Device::Cpu));
    let y = Tensor::randint(5, [16], (Kind::Int64, Device::Cpu));
    let wrong = y.full_like(99);
    tch::manual_seed(9);
    let put = |t: &Tensor| if lazy { ltc_torch::to_lazy(t).expect("to the device") } else { t.shallow_clone() };
    if lazy {
        ltc_torch::manual_seed(9).expect("seed");
        ltc_torch::lazify(&mut vs).expect("variables move");
    }
    let mut opt = match which {
        "sgd" => nn::Sgd { momentum: 0.9, dampening: 0.0, wd: 1e-4, nesterov: true }.build(&vs, 0.05),
        _ => nn::RmsProp::default().build(&vs, 1e-3),
    }
    .expect("an optimiser");
    let (x, y, wrong) = (put(&x), put(&y), put(&wrong));
    let mut losses = Vec::new();
    let mut call = |inputs: &[Tensor]| -> Result<Tensor, tch::TchError> {
        let loss = net.forward_t(&inputs[0], true).f_log_softmax(-1, None)?;
        let loss = loss.f_nll_loss(&inputs[1], None::<Tensor>, tch::Reduction::Mean, -100)?;
        opt.zero_grad();
        loss.f_backward()?;
        opt.step();
        Ok(loss.detach())
    };
    let mut read = |loss: Result<Tensor, tch::TchError>, is_bad: bool| {
        let loss = loss.map_err(|e| e.to_string()).and_then(|l| ltc_torch::to_cpu(&l).map_err(|e| e.to_string()));
        assert_eq!(loss.is_err(), is_bad, "{which}: {loss:?}");
        if let Err(e) = &loss {
            assert!(e.contains("Target 99 is out of bounds"), "{e}");
        }
        losses.extend(loss);
    };
    let batch = |step: usize| [x.shallow_clone(), if bad.contains(&step) { &wrong } else { &y }.shallow_clone()];
    if compiled {
        let mut step =
            ltc_torch::compile_frozen(|inputs: &[Tensor]| vec![call(inputs).expect("recording does not fail")]);
        for i in 0..12 {
            let loss =
                step.call(&batch(i), &[]).map(|mut l| l.remove(0)).map_err(|e| tch::TchError::Torch(e.to_string()));
            read(loss, bad.contains(&i));
        }
        assert!(step.counts().0 >= 6, "{:?} {:?}", step.counts(), step.refusal());
    } else {
        for i in 0..12 {
            let loss = call(&batch(i));
            read(loss, bad.contains(&i));
        }
    }
    let mut variables: Vec<_> = vs.variables().into_iter().collect();
    variables.sort_by(|a, b| a.0.cmp(&b.0));
    losses.extend(variables.into_iter().map(|(_, t)| ltc_torch::to_cpu(&t.detach()).expect("a value")));
    losses
}

#[test]
fn a_bad_batch_costs_one_batch() {
    let _alone = alone();
    Lazy::new().mark();
    for (model, name) in [(training::mlp as Model, "mlp"), (training::conv, "conv"), (words, "words")] {
        for which in ["sgd", "rmsprop"] {
            for bad in [&[1][..], &[4], &[7, 8, 10]] {
                let eager = train(model, which, false, bad, false);
                let lazy = train(model, which, true, bad, false);
                assert_eq!(eager.len(), lazy.len());
                for (i, (a, b)) in eager.iter().zip(&lazy).enumerate() {
                    same_values(a, b).unwrap_or_else(|e| panic!("{name}, {which}, bad {bad:?}, value {i}: {e}"));
                }
            }
        }
    }
}

#[test]
fn a_bad_batch_of_a_compiled_step_costs_one_batch() {
    let _alone = alone();
    Lazy::new().mark();
    for (model, name) in [(training::mlp as Model, "mlp"), (training::conv, "conv"), (words, "words")] {
        for bad in [&[6][..], &[7, 8, 10]] {
            let eager = train(model, "sgd", false, bad, false);
            let lazy = train(model, "sgd", true, bad, true);
            assert_eq!(eager.len(), lazy.len());
            for (i, (a, b)) in eager.iter().zip(&lazy).enumerate() {
                same_values(a, b).unwrap_or_else(|e| panic!("{name}, bad {bad:?}, value {i}: {e}"));
            }
        }
    }
}

#[test]
fn memory_that_nobody_wrote_is_there_after_a_failed_call_before_its_first_use() {
    let _alone = alone();
    let lazy = Lazy::new();
    let _no_grad = tch::no_grad_guard();
    type Call = fn(&Tensor) -> Tensor;
    let uses: [(&str, Call); 4] = [
        ("read", |e| e + 1),
        ("part read", |e| e.slice(0, 0, 1, 1) + 1),
        ("read and written", |e| e.shallow_clone().g_add_scalar_(1.0)),
        ("part written", |e| e.slice(0, 0, 1, 1).fill_(2.0)),
    ];
    // Of one result, and of a result and a generator's state.
    let fails: [(&str, Call); 2] = [
        ("index 99", |x| x.gather(0, &x.new_full([1], 99, (Kind::Int64, x.device())), false)),
        ("p_in", |x| (x + 1).bernoulli()),
    ];
    let cases = [0, 5].into_iter().flat_map(|length| uses.iter().map(move |used| (length, used)));
    let cases = cases.flat_map(|(length, used)| fails.iter().map(move |fail| (length, used, fail)));
    for (length, (name, used), (words, fail)) in cases {
        let x = lazy.put(&Tensor::ones([4], (Kind::Float, Device::Cpu)));
        let mut e = x.new_empty([length], (Kind::Float, x.device()));
        let bad = fail(&x);
        let after = used(&e);
        let told = lazy.get(&bad).expect_err("its values are wrong");
        assert!(told.to_string().contains(words), "{told}");
        assert!(lazy.get(&after).is_err() || name.ends_with("written"), "{name}: eager never made it");
        let got = lazy.get(&e).unwrap_or_else(|told| panic!("{name} of {length}: {told}"));
        assert_eq!(got.size(), [length]);
        let one = lazy.get(&(&e.zero_() + 1)).expect("a value");
        assert_eq!(Vec::<f32>::try_from(&one).expect("floats"), vec![1.0; length as usize], "{name}");
    }
}

#[test]
fn random_programs_go_on_as_eager_ones_after_a_call_that_failed() {
    over_all_operators();
    over_views_and_writes();
    over_draws();
    assert!(FAILED.get() > 300, "{} failed calls", FAILED.get());
}
