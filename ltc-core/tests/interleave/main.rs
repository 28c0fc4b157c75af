//! Threads that record, sync, wait and let go, in many orders: every wait ends, programs run in order, values are
//! right.
//!
//! `LTC_TEST_CASES` is how many orders each test tries (`make interleave` takes more), which follow from
//! `LTC_TEST_SEED`. A test that fails prints the order that it failed in.

mod model;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use ltc_core::{Argument, Config, Device, Session, Storage, TraceValue, faults};
use ltc_ir::{DType, SiteId, View};
use model::{Known, Model, layout, read, record};
use shuttle::{
    FailurePersistence, Runner,
    rand::Rng,
    scheduler::{PctScheduler, RandomScheduler},
    thread,
};

fn from_env(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|v| v.parse().ok())
}

fn settings(persistence: FailurePersistence) -> shuttle::Config {
    let mut config = shuttle::Config::new();
    // Recording and canonicalising take more than the default.
    config.stack_size = 1 << 20;
    config.silence_warnings = true;
    config.failure_persistence = persistence;
    config
}

/// Tries orders: half of them are any, half have few changes of threads, at any places.
fn explore(f: impl Fn() + Send + Sync + 'static) {
    let cases = from_env("LTC_TEST_CASES").unwrap_or(150) as usize;
    let seed = from_env("LTC_TEST_SEED").unwrap_or(1);
    let f = Arc::new(f);
    let (any, few) = (f.clone(), f);
    let config = || settings(FailurePersistence::Print);
    Runner::new(RandomScheduler::new_from_seed(seed, cases.div_ceil(2)), config()).run(move || any());
    Runner::new(PctScheduler::new_from_seed(seed, 3, cases.div_ceil(2)), config()).run(move || few());
}

const ALL: View<'static> = View { dtype: DType::F32, sizes: &[2], strides: &[1], offset: 0 };

fn device(session: &Session) -> &Device {
    session.device(0).expect("a device")
}

fn join(threads: impl IntoIterator<Item = thread::JoinHandle<()>>) {
    threads.into_iter().for_each(|t| t.join().expect("a thread"));
}

/// A chain of operations, a program each; the numbers go up from `first`.
fn chain(dev: &Device, from: &Known, first: u32, length: u32) -> Known {
    (first..first + length).fold(from.clone(), |value, number| {
        let next = Known::mix(dev, &[&value], number.into());
        drop(value);
        dev.sync().expect("a sync");
        next
    })
}

/// Whether the operations of this chain ran, each once and in order.
fn ran_in_order(model: &Model, first: u32, length: u32) {
    let ran: Vec<f64> = model.ran().into_iter().filter(|n| (first..first + length).any(|m| *n == m.into())).collect();
    let wanted: Vec<f64> = (first..first + length).map(f64::from).collect();
    assert_eq!(ran, wanted);
}

fn programs_are_sent_while_others_wait(config: &Config) {
    let (model, session) = Model::session(config.clone());
    let session = Arc::new(session);
    let dev = device(&session);
    let x = Known::upload(dev, 7);
    let pending = Known::mix(dev, &[&x], 1.0);
    let reader = {
        let (session, pending) = (session.clone(), pending.clone());
        thread::spawn(move || pending.check(device(&session)))
    };
    let waiter = {
        let session = session.clone();
        thread::spawn(move || device(&session).wait().expect("nothing fails"))
    };
    let end = chain(dev, &pending, 100, 3);
    drop(pending);
    end.check(dev);
    reader.join().expect("a reader");
    waiter.join().expect("a waiter");
    ran_in_order(&model, 100, 3);
}

#[test]
fn a_program_is_sent_while_another_thread_waits() {
    explore(|| programs_are_sent_while_others_wait(&Config::default()));
}

#[test]
fn whoever_waits_for_room_gets_it() {
    for depth in [0, 1] {
        let mut config = Config::default();
        (config.queue_depth, config.max_pending_nodes) = (depth, 2);
        explore(move || {
            let (model, session) = Model::session(config.clone());
            let session = Arc::new(session);
            let threads = [200, 300].map(|first| {
                let session = session.clone();
                thread::spawn(move || {
                    let dev = device(&session);
                    chain(dev, &Known::upload(dev, 3), first, 3).check(dev);
                })
            });
            join(threads);
            drop(session);
            [200, 300].iter().for_each(|&first| ran_in_order(&model, first, 3));
        });
    }
}

#[test]
fn a_failure_reaches_all_who_wait_and_nobody_else() {
    explore(|| {
        let (_, session) = Model::session(Config::default());
        let session = Arc::new(session);
        let dev = device(&session);
        let x = Known::upload(dev, 7);
        let storage = Storage::with_value(x.value.clone());
        let good = Known::mix(dev, &[&x], 1.0);
        storage.write(dev, ALL, good.value.clone(), SiteId(1));
        if shuttle::rand::thread_rng().r#gen() {
            dev.sync().expect("a sync");
        }
        let bad = Known { value: record(dev, "test::fail", &[&good], 2.0), number: 0 };
        storage.write(dev, ALL, record(dev, "test::mix", &[&bad], 3.0), SiteId(1));
        let readers = [0, 1].map(|_| {
            let (session, bad) = (session.clone(), bad.clone());
            thread::spawn(move || {
                let why = read(device(&session), &bad.value).expect_err("it failed").to_string();
                assert!(why.contains("ordered to fail"), "{why}");
            })
        });
        let waiter = {
            let session = session.clone();
            // It may come before the failure, or after somebody else was told.
            thread::spawn(move || drop(device(&session).wait()))
        };
        let after = {
            let session = session.clone();
            thread::spawn(move || {
                let dev = device(&session);
                let other = Known::upload(dev, 9);
                // A read is told of a failure before it, if nobody was; what is recorded behind the failing call is an
                // error.
                drop(read(dev, &Known::mix(dev, &[&other], 4.0).value));
            })
        };
        drop((bad, dev.sync()));
        join(readers);
        join([waiter, after]);
        drop(dev.wait());
        dev.wait().expect("one failure is told once");
        let now = storage.read(dev, ALL, SiteId(1));
        assert_eq!(read(dev, &now).expect("as before the call that failed"), good.number);
        good.check(dev);
        chain(dev, &Known { value: now, number: good.number }, 100, 2).check(dev);
    });
}

#[test]
fn everything_is_let_go_while_programs_run() {
    explore(|| {
        let (model, session) = Model::session(Config::default());
        let session = Arc::new(session);
        // Memory that keeps the device: the executor's own thread may be the one to drop the executor.
        let x = Known::keeping(device(&session), 5);
        let other = {
            let (session, x) = (session.clone(), x.clone());
            thread::spawn(move || {
                let end = chain(device(&session), &x, 200, 2);
                drop((session, x, end));
            })
        };
        let end = chain(device(&session), &x, 100, 2);
        drop(x);
        drop(session);
        drop(end);
        other.join().expect("a thread that lets go");
        // Operations whose results nobody holds when they are sent need not run.
        let ran = model.ran();
        assert!(ran.iter().all(|n| ran.iter().filter(|m| *m == n).count() == 1), "{ran:?}");
    });
}

#[test]
fn programs_run_in_order_wherever_they_run() {
    explore(|| {
        let (model, session) = Model::session(Config::default());
        let session = Arc::new(session);
        let threads = [200, 300].map(|first| {
            let session = session.clone();
            thread::spawn(move || {
                let dev = device(&session);
                let x = Known::upload(dev, 1);
                let mut values = vec![chain(dev, &x, first, 1)];
                // Of two operations: its caller runs it, once those before it are done, although it needs nothing of
                // them.
                values.push(Known::mix(dev, &[&Known::mix(dev, &[&x], (first + 1).into())], (first + 2).into()));
                dev.sync().expect("a sync");
                values.push(chain(dev, &x, first + 3, 1));
                values.iter().for_each(|v| v.check(dev));
            })
        });
        join(threads);
        [200, 300].iter().for_each(|&first| ran_in_order(&model, first, 4));
    });
}

#[test]
fn threads_that_share_storages_and_sync_see_what_was_written() {
    explore(|| {
        let (model, session) = Model::session(Config::default());
        let session = Arc::new(session);
        let dev = device(&session);
        let storages = Arc::new([3, 4].map(|n| Storage::with_value(Known::upload(dev, n).value)));
        let threads = [0, 1].map(|mine| {
            let (session, storages) = (session.clone(), storages.clone());
            thread::spawn(move || {
                let dev = device(&session);
                let mut number = mine as u64 + 3;
                for step in 0..3 {
                    // The other's, whatever it holds by now, beside the own one.
                    let seen = Known { value: storages[1 - mine].read(dev, ALL, SiteId(1)), number: 0 };
                    let unused = record(dev, "test::mix", &[&seen], 1000.0 + f64::from(step));
                    let own = Known { value: storages[mine].read(dev, ALL, SiteId(1)), number };
                    let next = Known::mix(dev, &[&own], f64::from(200 + 100 * mine as u32 + step));
                    drop(own);
                    storages[mine].write(dev, ALL, next.value, SiteId(1));
                    number = next.number;
                    drop((seen, unused));
                    dev.sync().expect("a barrier");
                }
                let end = storages[mine].read(dev, ALL, SiteId(1));
                assert_eq!(read(dev, &end).expect("a value"), number);
            })
        });
        join(threads);
        [200, 300].iter().for_each(|&first| ran_in_order(&model, first, 3));
    });
}

/// A read of a view whose data is there sends nothing. Meanwhile another thread's sync may give that data away.
#[test]
fn data_that_is_read_in_place_is_not_given_to_a_program() {
    explore(|| {
        let (_, session) = Model::session(Config::default());
        let session = Arc::new(session);
        let dev = device(&session);
        let known = chain(dev, &Known::upload(dev, 2), 100, 1).reshaped(dev);
        let other = {
            let session = session.clone();
            thread::spawn(move || device(&session).sync().expect("a sync"))
        };
        known.check(dev);
        other.join().expect("a thread that syncs");
    });
}

#[test]
fn a_wait_that_is_given_up_changes_nothing() {
    explore(|| {
        faults::let_waits_time_out(true);
        let mut config = Config::default();
        config.queue_depth = 1;
        let (model, session) = Model::session(config);
        session.set_interrupt(|| shuttle::rand::thread_rng().r#gen());
        let session = Arc::new(session);
        let threads = [200, 300].map(|first| {
            let session = session.clone();
            thread::spawn(move || {
                let dev = device(&session);
                let mut value = Known::upload(dev, 1);
                for number in first..first + 3 {
                    value = Known::mix(dev, &[&value], number.into());
                    match dev.sync() {
                        Ok(()) | Err(ltc_core::Error::Interrupted) => {}
                        Err(other) => panic!("{other}"),
                    }
                    match read(dev, &value.value) {
                        Ok(number) => assert_eq!(number, value.number),
                        Err(ltc_core::Error::Interrupted) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
                // Somebody who does not give up.
                let number = loop {
                    match read(dev, &value.value) {
                        Err(ltc_core::Error::Interrupted) => thread::yield_now(),
                        number => break number,
                    }
                };
                assert_eq!(number.expect("a value"), value.number);
            })
        });
        join(threads);
        [200, 300].iter().for_each(|&first| ran_in_order(&model, first, 3));
        faults::let_waits_time_out(false);
    });
}

#[test]
fn a_session_is_held_while_others_use_it() {
    explore(|| {
        let (_, session) = Model::session(Config::default());
        let session = Arc::new(session);
        let user = {
            let session = session.clone();
            thread::spawn(move || {
                let dev = device(&session);
                chain(dev, &Known::upload(dev, 2), 100, 2).check(dev);
            })
        };
        for _ in 0..2 {
            device(&session).quiesce();
            let held = session.hold();
            thread::yield_now();
            drop(held);
        }
        user.join().expect("a user");
    });
}

#[test]
fn a_computation_runs_again_from_two_threads() {
    explore(|| {
        let (_, session) = Model::session(Config::default());
        let session = Arc::new(session);
        let dev = device(&session);
        let x = Known::upload(dev, 2);
        let y = Known::mix(dev, &[&x], 5.0);
        let (extracted, _) = dev.extract(std::slice::from_ref(&y.value)).expect("nobody else sends it");
        let extracted = Arc::new(extracted);
        let threads = [10, 20].map(|n| {
            let (session, extracted) = (session.clone(), extracted.clone());
            thread::spawn(move || {
                let dev = device(&session);
                let mut known = Known::upload(dev, n);
                for _ in 0..2 {
                    let data = known.value.inspect(|_, _| unreachable!("data"), Arc::clone);
                    let results = extracted.placeholders();
                    extracted.run([Argument::whole(data)].into_iter().collect(), &results).expect("a run");
                    let number = Known::mix(dev, &[&known], 5.0).number;
                    known = Known { value: results[0].clone(), number };
                }
                known.check(dev);
            })
        });
        y.check(dev);
        join(threads);
    });
}

/// A compiled step that is captured reads a value, which another thread may have sent: else it would be computed on the
/// side, but for the operators of this test, which others might notice.
#[test]
fn a_value_is_computed_aside_while_another_thread_sends_it() {
    explore(|| {
        let (_, session) = Model::session(Config::default());
        let session = Arc::new(session);
        let dev = device(&session);
        let x = Known::upload(dev, 2);
        let y = Known::mix(dev, &[&x], 5.0);
        let other = {
            let session = session.clone();
            thread::spawn(move || device(&session).sync().expect("a sync"))
        };
        if let Some(value) = dev.computed_aside(&y.value).expect("nothing fails") {
            Known { value, number: y.number }.check(dev);
        }
        other.join().expect("a thread");
        y.check(dev);
    });
}

/// What threads do at random, with values they share.
#[test]
fn threads_do_anything() {
    explore(|| {
        let mut config = Config::default();
        let mut random = shuttle::rand::thread_rng();
        config.queue_depth = random.gen_range(0..3);
        config.max_pending_nodes = [2, 5, 100_000][random.gen_range(0..3)];
        config.assume_faults = random.r#gen();
        let (_, session) = Model::session(config);
        let session = Arc::new(session);
        let first: Vec<Known> = (0..2).map(|n| Known::upload(device(&session), n)).collect();
        let shared = Arc::new(shuttle::sync::Mutex::new(first));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (session, shared) = (session.clone(), shared.clone());
                thread::spawn(move || act(device(&session), &shared))
            })
            .collect();
        drop(session);
        join(threads);
    });
}

fn act(dev: &Device, shared: &shuttle::sync::Mutex<Vec<Known>>) {
    let mut random = shuttle::rand::thread_rng();
    let pick = |random: &mut shuttle::rand::rngs::ThreadRng| {
        let known = shared.lock().expect("no panic");
        known[random.gen_range(0..known.len())].clone()
    };
    let own = Storage::uninit(Some(dev), layout());
    let mut written = None;
    for _ in 0..6 {
        let (a, b) = (pick(&mut random), pick(&mut random));
        match random.gen_range(0..10) {
            0..=2 => {
                let new = Known::mix(dev, &[&a, &b], random.gen_range(0.0..1.0));
                shared.lock().expect("no panic").push(new);
            }
            3 => {
                let mut known = shared.lock().expect("no panic");
                if known.len() > 2 {
                    let at = random.gen_range(0..known.len());
                    let gone = known.remove(at);
                    drop(known);
                    drop((a, b, gone));
                }
            }
            4 => dev.sync().expect("a sync"),
            5 => dev.sync_values(&[a.value.clone(), b.value.clone()]).expect("a sync of some"),
            6 => a.check(dev),
            7 => dev.wait().expect("nothing fails"),
            8 => {
                let reshaped = a.reshaped(dev);
                drop((a, b));
                reshaped.check(dev);
            }
            _ => {
                own.write(dev, ALL, a.value.clone(), SiteId(1));
                written = Some(a.number);
            }
        }
    }
    if let Some(number) = written {
        let value: TraceValue = own.read(dev, ALL, SiteId(1));
        assert_eq!(read(dev, &value).expect("a value"), number);
    }
}

/// The harness can fail: a notification that wakes nobody leaves somebody waiting, in one of the orders tried.
#[test]
fn a_lost_notification_is_found() {
    let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = count.clone();
    let run = |lost: Option<usize>, counted: Arc<std::sync::atomic::AtomicUsize>| {
        let scheduler = RandomScheduler::new_from_seed(1, 200);
        let body = move || {
            faults::lose_notification(lost);
            programs_are_sent_while_others_wait(&Config::default());
            counted.fetch_max(faults::notifications(), std::sync::atomic::Ordering::Relaxed);
        };
        let runner = Runner::new(scheduler, settings(FailurePersistence::None));
        catch_unwind(AssertUnwindSafe(|| runner.run(body)))
    };
    run(None, counted.clone()).expect("nothing is lost");
    let notifications = count.load(std::sync::atomic::Ordering::Relaxed);
    let found = (0..notifications).filter(|&n| run(Some(n), counted.clone()).is_err()).count();
    faults::lose_notification(None);
    // Most wake nobody, as nobody waits.
    assert!(found >= 3, "{found} of {notifications}");
}
