//! Data parallelism in two processes is training in one with the examples of both.

mod ranks;

use ltc_dist::{Error, Group, average_gradients, average_gradients_in, broadcast_parameters};
use ranks::{PLACES, Place, two_ranks, values};
use tch::{
    Device, Kind, Tensor,
    nn::{self, Module, OptimizerConfig},
};

const STEPS: usize = 4;
const EXAMPLES: i64 = 16;

fn network(store: &nn::VarStore) -> nn::Sequential {
    let root = store.root();
    nn::seq()
        .add(nn::linear(&root / "first", 6, 10, Default::default()))
        .add_fn(Tensor::tanh)
        .add(nn::linear(&root / "second", 10, 10, Default::default()))
        .add_fn(Tensor::tanh)
        .add(nn::linear(&root / "last", 10, 2, Default::default()))
}

/// The parameters after some steps; `group` averages gradients of each rank's share of the examples.
fn train(place: Place, kind: Kind, group: Option<(&Group, usize)>) -> Vec<f64> {
    // Each rank would begin with weights of its own.
    tch::manual_seed(group.map_or(5, |(group, _)| 5 + group.rank() as i64));
    let mut store = nn::VarStore::new(Device::Cpu);
    let network = network(&store);
    store.set_kind(kind);
    if place == Place::Ltc {
        ltc_torch::init().unwrap();
        ltc_torch::lazify(&mut store).unwrap();
    }
    if let Some((group, _)) = group {
        broadcast_parameters(&store, group).unwrap();
    }
    let mut optimizer = nn::Sgd { momentum: 0.9, ..Default::default() }.build(&store, 0.1).unwrap();
    tch::manual_seed(11);
    for _ in 0..STEPS {
        let (x, y) =
            (Tensor::randn([EXAMPLES, 6], (kind, Device::Cpu)), Tensor::randn([EXAMPLES, 2], (kind, Device::Cpu)));
        let (from, share) = group.map_or((0, EXAMPLES), |(group, _)| {
            let share = EXAMPLES / group.size() as i64;
            (share * group.rank() as i64, share)
        });
        let (x, y) = (place.put(&x.narrow(0, from, share)), place.put(&y.narrow(0, from, share)));
        optimizer.zero_grad();
        network.forward(&x).mse_loss(&y, tch::Reduction::Mean).backward();
        if let Some((group, bucket_bytes)) = group {
            average_gradients_in(&store, group, bucket_bytes).unwrap();
        }
        optimizer.step();
    }
    store.trainable_variables().iter().flat_map(|t| values(&t.detach())).collect()
}

#[test]
fn two_ranks_learn_what_one_process_learns() {
    two_ranks("two_ranks_learn_what_one_process_learns", |group| {
        for place in PLACES {
            for (kind, tolerance) in [(Kind::Double, 1e-14), (Kind::Float, 1e-6)] {
                let alone = train(place, kind, None);
                // All at once, some at once, and each alone.
                for bucket_bytes in [ltc_dist::BUCKET_BYTES, 500, 1] {
                    let together = train(place, kind, Some((&group, bucket_bytes)));
                    let apart = alone.iter().zip(&together).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                    assert!(apart <= tolerance, "{place:?} {kind:?} {bucket_bytes}: {apart:e}");
                }
            }
        }
        group.close().unwrap();
    });
}

fn gradient(t: &Tensor) -> Option<Vec<f64>> {
    let gradient = t.grad();
    gradient.defined().then(|| values(&gradient))
}

#[test]
fn gradients_that_some_ranks_lack_count_as_zeros() {
    two_ranks("gradients_that_some_ranks_lack_count_as_zeros", |group| {
        for place in PLACES {
            let parameters: Vec<Tensor> =
                (0..3).map(|_| place.put(&Tensor::from_slice(&[1.0f32, 2.0])).set_requires_grad(true)).collect();
            let mut loss = &parameters[0] * 4.0;
            if group.rank() == 0 {
                loss += &parameters[1] * 6.0;
            }
            loss.sum(Kind::Float).backward();
            average_gradients(&parameters, &group).unwrap();
            assert_eq!(gradient(&parameters[0]), Some(vec![4.0, 4.0]));
            assert_eq!(gradient(&parameters[1]), Some(vec![3.0, 3.0]), "{place:?}: zeros of rank 1 count");
            assert_eq!(gradient(&parameters[2]), None, "{place:?}: nobody has one");
        }
        group.close().unwrap();
    });
}

#[test]
fn ranks_that_differ_are_told() {
    two_ranks("ranks_that_differ_are_told", |group| {
        let of = |size: i64| vec![Tensor::ones([size], (Kind::Float, Device::Cpu)).set_requires_grad(true)];
        let error = broadcast_parameters(&of(2 + group.rank() as i64), &group).unwrap_err();
        assert!(matches!(error, Error::Disagreement(_)), "{error}");
        let error = average_gradients(&of(2 + group.rank() as i64), &group).unwrap_err();
        assert!(matches!(error, Error::Disagreement(_)), "{error}");
        let error = average_gradients_in(&of(2), &group, 100 + group.rank()).unwrap_err();
        assert!(matches!(error, Error::Disagreement(_)), "{error}");

        // One rank's gradient cannot be averaged: it says which, and the other does not wait for it.
        let kind = if group.rank() == 0 { Kind::ComplexFloat } else { Kind::Float };
        let one = vec![Tensor::ones([2], (kind, Device::Cpu)).set_requires_grad(true)];
        (&one[0] * &one[0]).abs().sum(Kind::Float).backward();
        let error = average_gradients(&one, &group).unwrap_err();
        match group.rank() {
            0 => assert!(error.to_string().contains("the gradient of tensor 0"), "{error}"),
            _ => assert!(matches!(error, Error::Disagreement(_)), "{error}"),
        }
        average_gradients(&of(2), &group).unwrap();
        group.close().unwrap();
    });
}

#[test]
fn statistics_are_given_to_all_ranks_too() {
    two_ranks("statistics_are_given_to_all_ranks_too", |group| {
        let store = nn::VarStore::new(Device::Cpu);
        nn::batch_norm1d(store.root() / "norm", 3, Default::default());
        let mean = store.variables().remove("norm.running_mean").unwrap();
        let _ = mean.shallow_clone().fill_(7.0 + group.rank() as f64);
        broadcast_parameters(&store, &group).unwrap();
        assert_eq!(values(&mean), [7.0; 3]);
        group.close().unwrap();
    });
}

#[test]
fn a_compiled_step_replays_its_collectives() {
    two_ranks("a_compiled_step_replays_its_collectives", |group| {
        ltc_torch::init().unwrap();
        let losses = |compiled: bool| {
            tch::manual_seed(3);
            let mut store = nn::VarStore::new(Device::Cpu);
            let network = network(&store);
            ltc_torch::lazify(&mut store).unwrap();
            broadcast_parameters(&store, &group).unwrap();
            let mut optimizer = nn::Sgd::default().build(&store, 0.1).unwrap();
            let x = Place::Ltc.put(&(Tensor::ones([4, 6], (Kind::Float, Device::Cpu)) * (1.0 + group.rank() as f64)));
            let mut step = |x: &[Tensor]| {
                let loss = network.forward(&x[0]).square().mean(Kind::Float);
                optimizer.zero_grad();
                loss.backward();
                average_gradients(&store, &group).unwrap();
                optimizer.step();
                let told = loss.detach().copy();
                group.all_reduce(&told, ltc_dist::Op::Average).unwrap();
                vec![told]
            };
            let inputs = [x];
            if !compiled {
                return (0..8).map(|_| values(&step(&inputs)[0])[0]).collect::<Vec<_>>();
            }
            let mut step = ltc_torch::compile_frozen(step);
            let losses = (0..8).map(|_| values(&step.call(&inputs, &[]).unwrap()[0])[0]).collect();
            assert!(step.counts().0 > 0, "replayed: {:?}", step.refusal());
            losses
        };
        assert_eq!(losses(true), losses(false));
        group.close().unwrap();
    });
}

#[test]
fn a_rank_that_reads_does_not_wait_for_one_that_does_not() {
    two_ranks("a_rank_that_reads_does_not_wait_for_one_that_does_not", |group| {
        let weight = vec![Place::Ltc.put(&Tensor::from_slice(&[1.0f64, 2.0])).set_requires_grad(true)];
        for step in 1..=5 {
            let mut gradient = weight[0].grad();
            if gradient.defined() {
                let _ = gradient.zero_();
            }
            (&weight[0] * f64::from(step + group.rank() as i32)).sum(Kind::Double).backward();
            // In the next step rank 1 is here, with nothing sent, while rank 0 reads what both have to send.
            average_gradients(&weight, &group).unwrap();
            if group.rank() == 0 {
                assert_eq!(values(&weight[0].grad()), [f64::from(step) + 0.5; 2]);
            }
        }
        group.close().unwrap();
    });
}
