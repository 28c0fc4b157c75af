//! Every collective in two processes, against what it should give, on the CPU and on `ltc`.

mod ranks;

use std::time::Duration;

use ltc_dist::{Error, Group, Op, Store};
use ltc_torch::{Event, SyncReason};
use ranks::{PLACES, Place, TIMEOUT, two_ranks, values};
use tch::{Device, Kind, Tensor};

const KINDS: [Kind; 9] = [
    Kind::Uint8,
    Kind::Int8,
    Kind::Int,
    Kind::Int64,
    Kind::Half,
    Kind::BFloat16,
    Kind::Float,
    Kind::Double,
    Kind::Bool,
];

fn is_float(kind: Kind) -> bool {
    matches!(kind, Kind::Half | Kind::BFloat16 | Kind::Float | Kind::Double)
}

fn tensor(numbers: &[f64], kind: Kind, place: Place) -> Tensor {
    place.put(&Tensor::from_slice(numbers).to_kind(kind))
}

/// What ranks 0 and 1 hold: numbers that all dtypes have.
const HELD: [[f64; 4]; 2] = [[1.0, 2.0, 3.0, 6.0], [4.0, 2.0, 5.0, 3.0]];
const BOOLS: [[f64; 4]; 2] = [[0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0]];

fn held(kind: Kind, rank: usize) -> [f64; 4] {
    if kind == Kind::Bool { BOOLS[rank] } else { HELD[rank] }
}

fn combined(op: Op, a: f64, b: f64) -> f64 {
    let bits = |f: fn(u8, u8) -> u8| f64::from(f(a as u8, b as u8));
    match op {
        Op::Sum => a + b,
        Op::Average => (a + b) / 2.0,
        Op::Product => a * b,
        Op::Min => a.min(b),
        Op::Max => a.max(b),
        Op::BitAnd => bits(|a, b| a & b),
        Op::BitOr => bits(|a, b| a | b),
        Op::BitXor => bits(|a, b| a ^ b),
    }
}

fn ops_of(kind: Kind) -> Vec<Op> {
    let all = [Op::Sum, Op::Average, Op::Product, Op::Min, Op::Max, Op::BitAnd, Op::BitOr, Op::BitXor];
    let has = |op: &Op| match op {
        Op::Sum => kind != Kind::Bool,
        Op::Average => is_float(kind),
        Op::BitAnd | Op::BitOr | Op::BitXor => !is_float(kind),
        _ => true,
    };
    all.into_iter().filter(has).collect()
}

#[test]
fn reductions_of_every_dtype() {
    two_ranks("reductions_of_every_dtype", |group| {
        for place in PLACES {
            for kind in KINDS {
                for op in ops_of(kind) {
                    let expected: Vec<f64> = (0..4).map(|i| combined(op, held(kind, 0)[i], held(kind, 1)[i])).collect();
                    let mine = tensor(&held(kind, group.rank()), kind, place);
                    let part = group.reduce_scatter(&mine, op).unwrap();
                    assert_eq!((part.size(), part.f_kind().unwrap()), (vec![2], kind));
                    let at = 2 * group.rank();
                    assert_eq!(values(&part), expected[at..at + 2], "reduce_scatter {place:?} {kind:?} {op:?}");
                    assert_eq!(values(&mine), held(kind, group.rank()), "what is scattered stays");
                    group.all_reduce(&mine, op).unwrap();
                    assert_eq!(values(&mine), expected, "all_reduce {place:?} {kind:?} {op:?}");
                }
            }
        }
        group.close().unwrap();
    });
}

#[test]
fn copies_of_every_dtype() {
    two_ranks("copies_of_every_dtype", |group| {
        for place in PLACES {
            for kind in KINDS {
                let mine = tensor(&held(kind, group.rank()), kind, place).reshape([2, 2]);
                let all = group.all_gather(&mine).unwrap();
                assert_eq!((all.size(), all.f_kind().unwrap()), (vec![2, 2, 2], kind));
                assert_eq!(values(&all), [held(kind, 0), held(kind, 1)].concat(), "all_gather {place:?} {kind:?}");
                for root in 0..2 {
                    let copy = mine.copy();
                    group.broadcast(&copy, root).unwrap();
                    assert_eq!(values(&copy), held(kind, root), "broadcast {place:?} {kind:?}");
                }
            }
        }
        group.barrier().unwrap();
        group.close().unwrap();
    });
}

#[test]
fn tensors_of_any_shape_and_stride() {
    two_ranks("tensors_of_any_shape_and_stride", |group| {
        let rank = group.rank() as f64;
        for place in PLACES {
            let whole = place.put(&(Tensor::arange(12, (Kind::Float, Device::Cpu)).view([3, 4]) + rank));
            let part = whole.slice(1, 1, 3, 1).tr();
            group.all_reduce(&part, Op::Sum).unwrap();
            assert_eq!(values(&part), [3.0, 11.0, 19.0, 5.0, 13.0, 21.0], "{place:?}: a view with gaps");
            assert_eq!(values(&whole.select(1, 0)), [rank, 4.0 + rank, 8.0 + rank], "{place:?}: what is beside it");
            assert_eq!(group.all_gather(&part).unwrap().size(), [2, 2, 3]);

            let number = place.put(&Tensor::from(rank + 1.0));
            group.all_reduce(&number, Op::Product).unwrap();
            assert_eq!(values(&number), [2.0], "{place:?}: no dimensions");
            assert_eq!(group.all_gather(&number).unwrap().size(), [2]);

            let none = place.put(&Tensor::zeros([0, 3], (Kind::Float, Device::Cpu)));
            group.all_reduce(&none, Op::Sum).unwrap();
            assert_eq!(group.reduce_scatter(&none, Op::Sum).unwrap().size(), [0, 3]);

            let weight = place.put(&Tensor::from_slice(&[rank, 1.0])).set_requires_grad(true);
            group.all_reduce(&weight, Op::Average).unwrap();
            assert_eq!(values(&weight.detach()), [0.5, 1.0], "{place:?}: what requires a gradient");
        }
        group.close().unwrap();
    });
}

/// Why programs were sent since events are kept.
fn syncs() -> Vec<SyncReason> {
    let events = ltc_torch::take_events().unwrap().into_iter();
    events.filter_map(|event| if let Event::Sync { reason, .. } = event { Some(reason) } else { None }).collect()
}

#[test]
fn collectives_of_ltc_are_recorded() {
    two_ranks("collectives_of_ltc_are_recorded", |group| {
        let x = tensor(&[1.0, 2.0], Kind::Float, Place::Ltc);
        ltc_torch::sync().unwrap();
        ltc_torch::wait().unwrap();
        ltc_torch::record_events(true).unwrap();
        let y = &x * 3.0;
        group.all_reduce(&y, Op::Sum).unwrap();
        let z = (&y + 1.0).sum(Kind::Float);
        assert_eq!(z.double_value(&[]), 20.0);
        let mut syncs = syncs();
        // Where this thread had to wait for a processor, what the other rank waits for was sent meanwhile.
        syncs.retain(|reason| *reason != SyncReason::OthersWait);
        assert!(syncs.len() <= 1, "one program has the collective in its middle: {syncs:?}");
        group.close().unwrap();
    });
}

#[test]
fn ranks_may_read_at_different_places() {
    two_ranks("ranks_may_read_at_different_places", |group| {
        let numbers: Vec<Tensor> = (0..6).map(|i| tensor(&[f64::from(i)], Kind::Double, Place::Ltc)).collect();
        for (i, x) in numbers.iter().enumerate() {
            group.all_reduce(x, Op::Sum).unwrap();
            if i % 2 == group.rank() {
                ltc_torch::sync().unwrap();
            }
        }
        let order: Vec<usize> = if group.rank() == 0 { (0..6).collect() } else { (0..6).rev().collect() };
        for i in order {
            assert_eq!(values(&numbers[i]), [2.0 * i as f64]);
        }
        group.close().unwrap();
    });
}

#[test]
fn one_store_serves_several_groups() {
    two_ranks("one_store_serves_several_groups", |first| {
        let second = Group::gloo(first.store(), first.rank(), 2, TIMEOUT).unwrap();
        for place in PLACES {
            let (a, b) = (tensor(&[1.0], Kind::Float, place), tensor(&[2.0], Kind::Float, place));
            first.all_reduce(&a, Op::Sum).unwrap();
            second.all_reduce(&b, Op::Sum).unwrap();
            assert_eq!((values(&a), values(&b)), (vec![2.0], vec![4.0]));
        }
        second.close().unwrap();
        let third = Group::gloo(first.store(), first.rank(), 2, TIMEOUT).unwrap();
        let c = tensor(&[3.0], Kind::Float, Place::Ltc);
        third.all_reduce(&c, Op::Sum).unwrap();
        assert_eq!(values(&c), [6.0], "a group in the place of one that is gone");
        assert!(Group::from_env().unwrap_err().to_string().contains("once"));
    });
}

fn call_error<T>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::Call(why)) => why,
        Err(other) => panic!("another error: {other:?}"),
        Ok(_) => panic!("no error"),
    }
}

#[test]
fn wrong_arguments_are_errors_of_the_call() {
    let second = Duration::from_secs(1);
    assert!(call_error(Store::tcp("127.0.0.1", 0, 1, second)).contains("host:port"));
    assert!(call_error(Store::tcp("127.0.0.1:0", 1, 1, second)).contains("no rank 1"));
    let store = Store::tcp("127.0.0.1:0", 0, 1, second).unwrap();
    assert!(matches!(Store::tcp(&format!("127.0.0.1:{}", store.port()), 0, 1, second), Err(Error::Torch(_))), "in use");
    assert!(call_error(Group::gloo(&store, 2, 2, second)).contains("no rank 2"));
    let group = Group::gloo(&store, 0, 1, second).unwrap();
    for place in PLACES {
        let whole = tensor(&[1.0, 2.0], Kind::Int64, place);
        let float = tensor(&[1.0, 2.0], Kind::Float, place);
        let bools = tensor(&[1.0, 0.0], Kind::Bool, place);
        assert!(call_error(group.all_reduce(&whole, Op::Average)).contains("Int64 by Average"));
        assert!(call_error(group.all_reduce(&bools, Op::Sum)).contains("BitOr"));
        assert!(call_error(group.reduce_scatter(&float, Op::BitAnd)).contains("Float by BitAnd"));
        assert!(call_error(group.reduce_scatter(&float.sum(Kind::Float), Op::Sum)).contains("first dimension"));
        assert!(call_error(group.broadcast(&float, 1)).contains("no rank 1"));
        for kind in [Kind::Int16, Kind::ComplexFloat] {
            let other = tensor(&[1.0], kind, place);
            assert!(call_error(group.all_gather(&other)).contains("does not carry"));
            assert!(call_error(group.broadcast(&other, 0)).contains("does not carry"));
        }
        // Nothing was sent: the group works.
        group.all_reduce(&float, Op::Sum).unwrap();
        assert_eq!(values(&float), [1.0, 2.0]);
    }
    assert!(call_error(group.all_reduce(&Tensor::new(), Op::Sum)).contains("not defined"));
    let sparse = Tensor::eye(2, (Kind::Float, Device::Cpu)).to_sparse(None, None::<&[i64]>, None);
    let refused = group.all_reduce(&sparse, Op::Sum).unwrap_err();
    assert!(refused.to_string().contains("dense tensors"), "{refused}");
    let meta = Tensor::from_slice(&[1.0f32]).expand([3], false);
    assert!(group.all_reduce(&meta, Op::Sum).is_err(), "elements that are one in memory cannot be written");
}

#[test]
fn a_rank_that_does_not_come_is_an_error() {
    let soon = Duration::from_millis(500);
    assert!(matches!(Store::tcp("127.0.0.1:0", 0, 2, soon), Err(Error::Torch(_))));
    // Nobody serves a store at port 1.
    assert!(matches!(Store::tcp("127.0.0.1:1", 1, 2, soon), Err(Error::Torch(_))));
    let store = Store::tcp("127.0.0.1:0", 0, 1, soon).unwrap();
    assert!(matches!(Group::gloo(&store, 0, 2, soon), Err(Error::Torch(_))));
}
