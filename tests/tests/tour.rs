//! `docs/from-call-to-kernel.md` follows one small program through the system. Every dump in it is made here, and the
//! test fails where one is not what the system says; `LTC_TEST_BLESS=1` writes them.

use std::{collections::BTreeMap, fs, path::Path};

use ltc_ts::{Program, TsConfig};
use tch::{Device, Kind, Tensor};

/// The program of the tour: one layer, and a loss.
fn loss(x: &Tensor, weight: &Tensor, bias: &Tensor) -> Tensor {
    let hidden = x.linear(weight, Some(bias)).relu();
    let centred = &hidden - hidden.mean(Kind::Float);
    (&centred * &centred).sum(Kind::Float)
}

fn lazy(sizes: &[i64]) -> Result<Tensor, ltc_torch::Error> {
    let numbers = Tensor::arange(sizes.iter().product::<i64>(), (Kind::Float, Device::Cpu));
    ltc_torch::to_lazy(&(numbers.reshape(sizes) / 8.0 - 1.0))
}

/// What happened; not on which thread programs ran, which follows from times.
fn events() -> Result<String, ltc_torch::Error> {
    Ok(ltc_torch::take_events()?.iter().map(|e| format!("{e}\n").replace("execute inline", "execute")).collect())
}

/// Each stage's dump, by name.
fn dumps() -> Result<BTreeMap<&'static str, String>, ltc_torch::Error> {
    ltc_torch::init()?;
    let (x, weight, bias) = (lazy(&[4, 3])?, lazy(&[8, 3])?, lazy(&[8])?);
    ltc_torch::sync()?;
    let mut dumps = BTreeMap::new();

    let first = loss(&x, &weight, &bias);
    let pending = ltc_torch::computation(std::slice::from_ref(&first))?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").display().to_string() + "/";
    // How much of a function's path is told depends on the debug information.
    dumps.insert("recorded", pending.text_with_sites().replace(&root, "").replace(" in tour::", " in "));
    dumps.insert("canonical", pending.text());
    let program = Program::lower(pending.extracted.graph(), &TsConfig::default()).expect("it lowers");
    dumps.insert("lowered", program.listing());
    dumps.insert("kernels", program.kernels());

    ltc_torch::record_events(true)?;
    let value = first.double_value(&[]);
    dumps.insert("first run", events()? + &format!("{value:.4}\n"));
    let again = loss(&x, &weight, &bias).double_value(&[]);
    assert_eq!(again, value);
    dumps.insert("second run", events()?);
    ltc_torch::record_events(false)?;
    Ok(dumps)
}

/// The document with each dump between ``<!-- dump: NAME -->`` and the end of the code block after it.
fn with_dumps(document: &str, dumps: &BTreeMap<&'static str, String>) -> (String, Vec<String>) {
    let (mut text, mut met) = (String::new(), Vec::new());
    let mut rest = document;
    while let Some((before, after)) = rest.split_once("<!-- dump: ") {
        let (name, after) = after.split_once(" -->\n```text\n").expect("a marker is followed by a block of text");
        let (_, after) = after.split_once("```\n").expect("the block ends");
        let dump =
            dumps.get(name).unwrap_or_else(|| panic!("the document asks for a dump `{name}`, which there is not"));
        text += &format!("{before}<!-- dump: {name} -->\n```text\n{dump}```\n");
        met.push(name.to_owned());
        rest = after;
    }
    (text + rest, met)
}

#[test]
fn the_tour_shows_what_the_system_says() {
    let dumps = dumps().expect("the program runs");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/from-call-to-kernel.md");
    let document = fs::read_to_string(&path).expect("the document");
    let (text, met) = with_dumps(&document, &dumps);
    assert_eq!(met.len(), dumps.len(), "of {:?} the document shows {met:?}", dumps.keys());
    // The program, as it stands above.
    let source = include_str!("tour.rs");
    let shown = document.split("```rust\n").nth(1).and_then(|s| s.split("```").next()).expect("the program");
    assert!(source.contains(shown), "the document shows another program:\n{shown}");
    if std::env::var_os("LTC_TEST_BLESS").is_some() {
        fs::write(&path, &text).expect("it can be written");
    } else {
        assert_eq!(document, text, "run LTC_TEST_BLESS=1 cargo test -p ltc-tests --test tour");
    }
}
