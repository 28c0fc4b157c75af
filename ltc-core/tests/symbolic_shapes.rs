//! One compiled program for many sizes: how often something is compiled, what values come out, what is assumed.

mod models;

use std::sync::Arc;

use ltc_backend::{ReferenceBackend, testing::RecordingBackend};
use ltc_core::{Config, Device, Error, LazyTensor, Session};
use ltc_ir::{Graph, OpClass, Symbolic, rules::Call};
use models::{Model, train};

fn session(symbolic: bool) -> Session {
    let mut config = Config::default();
    config.symbolic = symbolic;
    let session = Session::new(Arc::new(ReferenceBackend), config).expect("a session");
    session.record_events(true);
    session
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

/// Events that tell of sizes.
fn story(session: &Session) -> Vec<String> {
    let words = ["compile", "respecialise", "symbolic", "guard"];
    let told = session.take_events().into_iter().map(|e| e.to_string());
    told.filter(|e| words.iter().any(|w| e.starts_with(w)))
        .map(|e| e.split([':', ' ']).next().unwrap_or(&e).into())
        .collect()
}

#[test]
fn models_compile_at_most_twice_for_any_batch() -> Result<(), Error> {
    let sizes: Vec<i64> = (1..=16).collect();
    for model in [Model::Convnet, Model::Transformer, Model::Lengths] {
        let (on, off) = (session(true), session(false));
        let values = train(&on, model, &sizes)?;
        assert_eq!(bits(&values), bits(&train(&off, model, &sizes)?), "{model:?}");
        let story = story(&on);
        let count = |w: &str| story.iter().filter(|e| *e == w).count();
        // One more program reads the weights in the end.
        let programs = sizes.len();
        assert!(count("compile") <= 2, "{model:?}: {story:?}");
        assert_eq!(count("compile") + count("respecialise"), programs, "{model:?}: {story:?}");
        assert_eq!((on.metrics().respecialised, off.metrics().respecialised), (count("respecialise") as u64, 0));
        assert!(off.metrics().compiles as usize >= programs);
        // Sizes seen before cost nothing.
        assert_eq!(train(&on, model, &sizes)?.len(), values.len());
        assert!(on.metrics().respecialised <= 2 * programs as u64);
    }
    Ok(())
}

/// New results of a graph's operators by the table's rules, where they can be had without numbers.
fn agrees_with_rules(graph: &Graph) -> usize {
    let mut checked = 0;
    for node in graph.nodes() {
        let Some(row) = node.op().row().filter(|r| r.class != OpClass::Factory) else { continue };
        let operands: Vec<_> = node.operands.iter().map(|o| &**graph.layout(*o)).collect();
        let numbers = vec![0; node.number_count as usize];
        let call = Call::decode(row.name, node.words(), &operands, &numbers).expect("a well-formed call");
        let new = (row.rule)(&call).unwrap_or_else(|e| panic!("{}: {e}\n{graph}", row.name));
        let new: Vec<_> = new.into_iter().flatten().collect();
        assert!(node.results().iter().map(|l| &**l).take(new.len()).eq(new.iter()), "{}: {new:?}\n{graph}", row.name);
        checked += 1;
    }
    checked
}

/// Expressions are told from sizes seen; at sizes never seen they must be what the shape rules say.
#[test]
fn expressions_are_what_the_rules_infer() -> Result<(), Error> {
    for model in [Model::Convnet, Model::Transformer, Model::Lengths] {
        let session = session(true);
        train(&session, model, &[4, 6, 9])?;
        let mut checked = 0;
        for text in session.symbolic_graphs() {
            let symbolic = Symbolic::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
            symbolic.verify().unwrap_or_else(|e| panic!("{e}\n{text}"));
            for size in [2, 31, 64] {
                let graph = symbolic.instantiate(&vec![size; symbolic.symbols()]).expect("any size fits");
                checked += agrees_with_rules(&graph);
            }
        }
        assert!(checked > 100, "{model:?}: {checked}");
    }
    Ok(())
}

fn ramp(dev: &Device, sizes: &[i64]) -> Result<LazyTensor, Error> {
    let n: i64 = sizes.iter().product();
    LazyTensor::from_slice(dev, &(0..n).map(|i| i as f32).collect::<Vec<_>>(), sizes)
}

#[test]
fn sizes_are_symbols_and_one_is_not() -> Result<(), Error> {
    let session = session(true);
    let dev = session.device(0)?;
    let run = |n: i64, m: i64| -> Result<Vec<f32>, Error> {
        let y = ramp(dev, &[n, 3])?.add(ramp(dev, &[m, 3])?)?.sum_dim(Some(&[1]))?;
        assert_eq!(y.sizes(), [n.max(m)]);
        y.to_vec::<f32>()
    };
    for (n, m, expected) in [
        (4, 4, vec!["compile"]),
        (6, 6, vec!["symbolic", "respecialise"]),
        (9, 9, vec!["respecialise"]),
        (4, 4, vec![]),
        // A size of one broadcasts: its program is another.
        (1, 9, vec!["guard", "compile"]),
        (1, 5, vec!["guard", "symbolic", "respecialise"]),
        (1, 1, vec!["guard", "guard", "compile"]),
        (0, 0, vec!["guard", "guard", "guard", "compile"]),
        (20, 20, vec!["respecialise"]),
    ] {
        let values = run(n, m)?;
        let at = |i: i64| {
            ((0..3).map(|k| if n == 1 { k } else { 3 * i + k }).sum::<i64>()
                + (0..3).map(|k| if m == 1 { k } else { 3 * i + k }).sum::<i64>()) as f32
        };
        let wanted: Vec<f32> = (0..if n == 0 { 0 } else { n.max(m) }).map(at).collect();
        assert_eq!(values, wanted, "{n}, {m}");
        let story = story(&session);
        assert_eq!(story.last(), expected.last().map(|s| (*s).to_string()).as_ref(), "{n}, {m}: {story:?}");
        let kinds = |w: &str| story.iter().filter(|e| *e == w).count();
        for kind in ["compile", "respecialise", "symbolic"] {
            let wanted = expected.iter().filter(|e| **e == kind).count();
            assert_eq!(kinds(kind), wanted, "{kind} of {n}, {m}: {story:?}");
        }
        assert_eq!(
            kinds("guard") > 0,
            expected.contains(&"guard") && expected.contains(&"compile"),
            "{n}, {m}: {story:?}"
        );
    }
    let texts = session.symbolic_graphs();
    assert!(texts.iter().any(|t| t.starts_with("symbols(s0 = 4) where s0 > 1\ngraph(%p0: f32[s0, 3]")), "{texts:?}");
    assert!(session.metrics().to_string().contains("guards failed"));
    Ok(())
}

#[test]
fn sizes_that_were_equal_by_chance_are_told_apart() -> Result<(), Error> {
    let session = session(true);
    let dev = session.device(0)?;
    let run = |n: i64, m: i64| -> Result<Vec<f32>, Error> {
        LazyTensor::cat(&[&ramp(dev, &[n])?, &ramp(dev, &[m])?])?.neg()?.to_vec::<f32>()
    };
    for (n, m) in [(2, 2), (3, 3), (4, 7), (9, 5)] {
        let wanted: Vec<f32> = (0..n).chain(0..m).map(|i| -(i as f32)).collect();
        assert_eq!(run(n, m)?, wanted);
    }
    assert_eq!(story(&session), ["compile", "symbolic", "respecialise", "symbolic", "respecialise", "respecialise"]);
    let texts = session.symbolic_graphs();
    assert!(texts.iter().any(|t| t.contains("f32[s0 + s1]")), "{texts:?}");
    Ok(())
}

#[test]
fn quotients_and_what_the_program_slices_follow() -> Result<(), Error> {
    let session = session(true);
    let dev = session.device(0)?;
    for n in [8, 12, 9, 15, 40] {
        let x = ramp(dev, &[n, 2])?;
        let half = x.i(..n / 2)?.mul(2.0)?;
        let wanted: Vec<f32> = (0..n / 2 * 2).map(|i| 2.0 * i as f32).collect();
        assert_eq!(half.to_vec::<f32>()?, wanted);
    }
    assert_eq!(session.metrics().compiles, 1, "{:?}", story(&session));
    Ok(())
}

#[test]
fn a_backend_that_cannot_resize_compiles() -> Result<(), Error> {
    let session = Session::new(Arc::new(RecordingBackend::default()), Config::default())?;
    let dev = session.device(0)?;
    for n in [4, 5, 6] {
        ramp(dev, &[n])?.neg()?.to_host()?;
    }
    let m = session.metrics();
    assert_eq!((m.compiles, m.respecialised), (3, 0));
    Ok(())
}
