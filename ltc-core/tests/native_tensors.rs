//! Native tensors over the reference backend: operators, views, indexing, errors, printing.

use std::sync::Arc;

use ltc_backend::{ReferenceBackend, testing::RecordingBackend};
use ltc_core::{Config, Device, Error, Index, LazyTensor, Session, tensor::ClampOptions};
use ltc_ir::{DType, ErrorClass};

fn session() -> Session {
    Session::new(Arc::new(ReferenceBackend), Config::default()).expect("a session")
}

fn ramp(dev: &Device, sizes: &[i64]) -> LazyTensor {
    let n: i64 = sizes.iter().product();
    LazyTensor::from_slice(dev, &(0..n).map(|i| i as f32).collect::<Vec<_>>(), sizes).expect("a tensor")
}

#[test]
fn operators_take_tensors_and_numbers() -> Result<(), Error> {
    let session = session();
    let dev = session.device(0)?;
    let x = ramp(dev, &[2, 3]);
    let y = 1.0 - (&x * 2.0 + &x) / 3;
    assert_eq!(y.to_vec::<f32>()?, [1.0, 0.0, -1.0, -2.0, -3.0, -4.0]);
    assert_eq!((2 * &x).sum()?.item()?, 30.0);
    assert_eq!(x.gt(2)?.to_vec::<bool>()?, [false, false, false, true, true, true]);
    let ints = LazyTensor::from_slice(dev, &[7i64, -7], &[2])?;
    assert_eq!((&ints % 4).to_vec::<i64>()?, [3, 1]);
    assert_eq!((&ints + 0.5).dtype(), DType::F32, "a number's kind counts, its precision does not");
    assert_eq!((&x + LazyTensor::scalar(dev, 1.0f64)?).dtype(), DType::F32, "a tensor without dimensions neither");
    assert_eq!(
        x.clamp_with(ClampOptions { min: Some(1i64.into()), max: None })?.to_vec::<f32>()?,
        [1.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    );
    Ok(())
}

#[test]
fn nothing_runs_until_a_value_is_read_and_the_second_step_compiles_nothing() -> Result<(), Error> {
    let backend = RecordingBackend::default();
    let session = Session::new(Arc::new(backend.clone()), Config::default())?;
    let dev = session.device(0)?;
    let x = ramp(dev, &[4]);
    backend.take_log();
    for step in 0..3 {
        let y = (&x * f64::from(step)).relu()?.sum()?;
        assert!(y.is_pending() && format!("{y:?}").contains("pending"));
        assert!(backend.take_log().is_empty());
        y.to_host()?;
        backend.take_log();
    }
    let m = session.metrics();
    assert_eq!((m.compiles, m.cache_hits), (1, 2));
    Ok(())
}

#[test]
fn a_view_is_read_once_for_a_call_and_its_gradient() -> Result<(), Error> {
    let session = session();
    let dev = session.device(0)?;
    let x = ramp(dev, &[2, 3]).requiring_grad();
    let y = x.transpose(0, 1)?.mul(3.0)?;
    assert_eq!(dev.pending_count(), 2, "a read and a product");
    y.sum()?.backward()?;
    assert_eq!(x.grad().expect("a gradient").to_vec::<f32>()?, [3.0; 6]);
    Ok(())
}

#[test]
fn a_result_that_looks_like_an_operand_shares_its_layout() -> Result<(), Error> {
    let session = session();
    let (x, row) = (ramp(session.device(0)?, &[2, 5, 7]), ramp(session.device(0)?, &[7]));
    let y = (&row + &x).relu()?;
    assert!(Arc::ptr_eq(y.layout(), x.layout()));
    assert!(!Arc::ptr_eq(y.gt(0.0)?.layout(), x.layout()), "another dtype");
    Ok(())
}

#[test]
fn threads_record_and_sync_side_by_side() -> Result<(), Error> {
    let session = session();
    let dev = session.device(0)?;
    let x = ramp(dev, &[4]);
    let run = &|thread: usize| -> Result<(), Error> {
        for step in 0..40 {
            let k = (thread * 40 + step) as f64;
            let y = (&x * k + &x).relu()?;
            if step % 3 == thread % 3 {
                dev.sync()?;
            }
            let z = if step % 2 == 0 { y.sum()? } else { (&y + &y).sum()? };
            assert_eq!(z.item()?, 6.0 * (k + 1.0) * (1.0 + (step % 2) as f64));
        }
        Ok(())
    };
    std::thread::scope(|s| {
        let threads: Vec<_> = (0..4).map(|t| s.spawn(move || run(t))).collect();
        threads.into_iter().try_for_each(|t| t.join().expect("no panic"))
    })
}

#[test]
fn writes_through_views_are_seen_by_every_alias() -> Result<(), Error> {
    let session = session();
    let x = ramp(session.device(0)?, &[3, 4]);
    let row = x.i(1)?;
    let column = x.i((.., 2))?;
    row.mul_(10.0)?;
    assert_eq!(column.to_vec::<f32>()?, [2.0, 60.0, 10.0]);
    x.t()?.i(2)?.fill_(-1.0)?;
    assert_eq!(x.to_vec::<f32>()?, [0.0, 1.0, -1.0, 3.0, 40.0, 50.0, -1.0, 70.0, 8.0, 9.0, -1.0, 11.0]);
    let copy = x.copy()?;
    x.zero_()?;
    assert_eq!((copy.i((2, 3))?.item()?, x.sum()?.item()?), (11.0, 0.0));
    assert!(row.shares_storage(&x) && !copy.shares_storage(&x));
    Ok(())
}

#[test]
fn indices_select_slice_and_gather() -> Result<(), Error> {
    let session = session();
    let dev = session.device(0)?;
    let x = ramp(dev, &[2, 3, 4]);
    assert_eq!(x.i((1, .., -1))?.to_vec::<f32>()?, [15.0, 19.0, 23.0]);
    assert_eq!(x.i((.., 1..=2, ..2))?.sizes(), [2, 2, 2]);
    assert_eq!(x.i((.., Index::New, 0))?.sizes(), [2, 1, 4]);
    let at = LazyTensor::from_slice(dev, &[2i64, 0], &[2])?;
    assert_eq!(x.i((0, &at, 1))?.to_vec::<f32>()?, [9.0, 1.0]);
    assert_eq!(x.i((.., &at))?.sizes(), [2, 2, 4]);
    assert_eq!(x.reshape(&[4, 6])?.i((-1, -2))?.item()?, 22.0);
    assert_eq!(x.permute(&[2, 0, 1])?.reshape(&[-1])?.i(1)?.item()?, 4.0);
    Ok(())
}

#[test]
fn mistakes_are_errors_of_the_call_with_libtorchs_class() -> Result<(), Error> {
    let session = session();
    let dev = session.device(0)?;
    let x = ramp(dev, &[2, 3]);
    for (result, class, text) in [
        (x.add(ramp(dev, &[4])), ErrorClass::Runtime, "must match the size of tensor b (4)"),
        (x.mm(&x), ErrorClass::Runtime, "cannot be multiplied (2x3 and 2x3)"),
        (x.select(2, 0), ErrorClass::Index, "Dimension out of range (expected to be in range of [-2, 1], but got 2)"),
        (x.t()?.view(&[6]), ErrorClass::Runtime, "view size is not compatible"),
        (x.gather(0, &x), ErrorClass::Runtime, "Expected dtype int64 for index"),
        (LazyTensor::cat(&[]), ErrorClass::Runtime, "non-empty list of"),
    ] {
        let e = result.expect_err(text);
        assert!(e.to_string().contains(text), "{e}");
        assert_eq!(e.class(), class, "{text}");
    }
    assert!(x.to_vec::<f64>().is_err() && x.item().is_err());
    let ints = LazyTensor::from_slice(dev, &[1i64, 2], &[2])?;
    let e = ints.add_(0.5).expect_err("no cast down").to_string();
    assert!(e.contains("result type Float can't be cast to the desired output type Long"), "{e}");
    assert!(
        ints.i(0)?.add_(&ints).expect_err("no growth").to_string().contains("doesn't match the broadcast shape [2]")
    );
    assert_eq!(session.metrics().executions, 0);
    Ok(())
}

/// Numbers for which sizes, offsets or counts do not fit into 64 bits: an error, or what there is; never memory that is
/// not the tensor's.
#[test]
fn huge_numbers_are_errors_of_the_call() -> Result<(), Error> {
    const MOST: i64 = i64::MAX;
    let session = session();
    let dev = session.device(0)?;
    let (row, image) = (ramp(dev, &[4]), ramp(dev, &[1, 4, 2, 2]));
    let half = 1 << 32;
    for (what, result) in [
        ("sizes and strides", row.as_strided(&[(1 << 33) + 1], &[1 << 31], 0)),
        ("a size", row.as_strided(&[1 << 62], &[4], 0)),
        ("a stride", row.as_strided(&[2], &[MOST], 0)),
        ("an offset", row.as_strided(&[2], &[1], MOST)),
        ("a negative offset", row.as_strided(&[2], &[1], -5)),
        ("the least offset", row.as_strided(&[2], &[1], i64::MIN)),
        ("repeats", row.repeat(&[1 << 62])),
        ("repeats of repeats", row.repeat(&[half, half])),
        ("pads", row.constant_pad_nd(&[MOST, 1])),
        ("a factor", image.pixel_shuffle(half)),
        ("a kernel", row.view(&[4, 1])?.col2im(&[2, 2], &[half, half], &[1, 1], &[0, 0], &[1, 1])),
        ("padding", image.im2col(&[2, 2], &[1, 1], &[1 << 62, 1 << 62], &[1, 1])),
        ("dilation", image.im2col(&[2, 2], &[MOST, MOST], &[0, 0], &[1, 1])),
        ("a negative size", image.upsample_nearest2d_backward(&[2, 2], &[1, 4, -2, 0])),
        ("a size of the device", LazyTensor::zeros(dev, &[half, half], DType::F32)),
        ("a window", image.max_pool2d([MOST, MOST])),
    ] {
        assert!(result.is_err(), "{what}: {result:?}");
    }
    assert!(row.split_with_sizes(&[MOST, MOST, 6], 0).is_err());
    assert_eq!(row.split(MOST, 0)?.len(), 1);
    assert_eq!(row.chunk(MOST, 0)?.len(), 4);
    assert_eq!(row.slice(0, None, None, MOST)?.to_vec::<f32>()?, [0.0]);
    assert_eq!(row.to_vec::<f32>()?, [0.0, 1.0, 2.0, 3.0]);
    Ok(())
}

#[test]
fn draws_are_reproducible_and_ordered() -> Result<(), Error> {
    let session = session();
    let dev = session.device(0)?;
    let draw = || -> Result<Vec<f32>, Error> {
        dev.manual_seed(7);
        let (a, b) = (LazyTensor::rand(dev, &[4], DType::F32)?, LazyTensor::randn(dev, &[2], DType::F32)?);
        let c = LazyTensor::randint(dev, 0, 5, &[3])?.to_dtype(DType::F32)?;
        LazyTensor::cat(&[&b, &a, &c])?.to_vec()
    };
    let first = draw()?;
    assert_eq!(first, draw()?);
    assert!(first[2..6].iter().all(|x| (0.0..1.0).contains(x)) && first[2] != first[3]);
    let p = LazyTensor::randperm(dev, 50)?;
    assert_eq!(p.sort()?.0.to_vec::<i64>()?, (0..50).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn arrays_go_in_and_come_out() -> Result<(), Error> {
    let session = session();
    let dev = session.device(0)?;
    let array = ndarray::Array2::from_shape_fn((2, 3), |(i, j)| (i * 10 + j) as i64);
    let x = LazyTensor::from_ndarray(dev, &array.t())?;
    assert_eq!(x.sizes(), [3, 2]);
    assert_eq!(x.t()?.to_ndarray::<i64>()?, array.into_dyn());
    assert_eq!(LazyTensor::from_slice(dev, &[true, false], &[2])?.to_vec::<bool>()?, [true, false]);
    assert!(LazyTensor::from_slice(dev, &[1.0f32], &[2]).is_err());
    Ok(())
}

#[test]
fn values_print_as_libtorch_prints_them() -> Result<(), Error> {
    let session = session();
    let dev = session.device(0)?;
    let x = LazyTensor::from_slice(dev, &[1.0f32, 2.5, -3.25, 4.0], &[2, 2])?;
    assert_eq!(x.to_string(), " 1.0000  2.5000\n-3.2500  4.0000\n[ LtcFloatType{2,2} ]");
    assert_eq!(ramp(dev, &[3]).to_string(), " 0\n 1\n 2\n[ LtcFloatType{3} ]");
    assert_eq!(LazyTensor::scalar(dev, 0.5f64)?.to_string(), "0.5\n[ LtcDoubleType{} ]");
    Ok(())
}

#[test]
fn tensors_are_recorded_on_many_threads() -> Result<(), Error> {
    let session = session();
    let x = ramp(session.device(0)?, &[100]);
    let sums: Vec<f64> = std::thread::scope(|scope| {
        let work = |i: i32| {
            let x = x.clone();
            move || (0..20).try_fold(x, |y, _| y.add(i)).and_then(|y| y.sum()?.item())
        };
        let threads: Vec<_> = (0..4).map(|i| scope.spawn(work(i))).collect();
        threads.into_iter().map(|t| t.join().expect("no panic")).collect::<Result<_, _>>()
    })?;
    assert_eq!(sums, [4950.0, 6950.0, 8950.0, 10950.0]);
    Ok(())
}
