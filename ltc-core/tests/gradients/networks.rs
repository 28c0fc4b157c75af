//! Gradients of convolutions, pooling, normalisations and dropout.

use ltc_core::{Error, LazyTensor, tensor};
use ltc_ir::{OpCode as O, Scalar};

use crate::checks::{Checks, points};

pub(crate) fn of_planes(c: &mut Checks<'_>) {
    let dev = c.dev;
    let x = [points(dev, &[2, 4, 5, 5], -1.0, 1.0), points(dev, &[6, 2, 3, 3], -0.5, 0.5), points(dev, &[6], 0.0, 1.0)];
    let conv = |x: &[LazyTensor]| x[0].convolution(&x[1], Some(&x[2]), &[2, 1], &[1, 0], &[1, 2], false, &[0, 0], 2);
    c.like_differences("convolution", &conv, &x);
    let y = [points(dev, &[2, 6, 3, 4], -1.0, 1.0), x[1].clone(), points(dev, &[4], 0.0, 1.0)];
    let conv = |x: &[LazyTensor]| x[0].convolution(&x[1], Some(&x[2]), &[2, 1], &[1, 0], &[1, 2], true, &[1, 0], 2);
    c.like_differences("transposed convolution", &conv, &y);
    let x = &x[..1];
    c.like_differences("max_pool2d", &|x| x[0].max_pool2d([2, 2]), x);
    let max =
        tensor::MaxPool2dWithIndicesOptions { stride: &[1, 2], padding: &[1, 0], dilation: &[2, 1], ceil_mode: true };
    c.like_differences("max_pool2d", &|x| Ok(x[0].max_pool2d_with_indices_with(&[2, 2], max)?.0), x);
    c.like_differences("avg_pool2d", &|x| x[0].avg_pool2d(&[2, 2]), x);
    for divisor_override in [None, Some(3)] {
        let avg = tensor::AvgPool2dOptions {
            stride: &[1, 2],
            padding: &[1, 0],
            ceil_mode: true,
            count_include_pad: false,
            divisor_override,
        };
        c.like_differences("avg_pool2d", &|x| x[0].avg_pool2d_with(&[2, 2], avg), x);
    }
    c.like_differences("adaptive_avg_pool2d", &|x| x[0].adaptive_avg_pool2d(&[2, 3]), x);
    c.like_differences("pad", &|x| x[0].constant_pad_nd(&[1, 2, 0, -1]), x);
    let pad = tensor::ConstantPadNdOptions { value: Scalar::Float(0.5) };
    c.like_differences("pad", &|x| x[0].constant_pad_nd_with(&[1, 2, 0, -1], pad), x);
}

pub(crate) fn of_norms(c: &mut Checks<'_>) {
    let dev = c.dev;
    let m = [points(dev, &[3, 4], -1.0, 1.0), points(dev, &[4], 0.5, 1.5), points(dev, &[4], -0.5, 0.5)];
    c.like_differences("softmax", &|x| x[0].softmax(1), &m[..1]);
    c.like_differences("log_softmax", &|x| x[0].log_softmax(0), &m[..1]);
    let pair = [m[0].clone(), points(dev, &[3, 4], 0.1, 0.9)];
    let dtype = m[0].dtype();
    c.like_differences("softmax's gradient", &|x| x[0].softmax_backward_data(&x[1], 1, dtype), &pair);
    c.like_differences("log_softmax's gradient", &|x| x[0].log_softmax_backward_data(&x[1], 1, dtype), &pair);
    // Gradients of the statistics that come with a result are not dropped in silence.
    let x = m[0].clone().requiring_grad();
    let mean = x.native_layer_norm(&[4], None, None, 1e-5).expect("a norm").1;
    let error = mean.sum().and_then(|sum| sum.backward()).expect_err("no gradient").to_string();
    assert!(error.contains("the derivative of result 1 is not implemented"), "{error}");
    c.like_differences("layer_norm", &|x| x[0].layer_norm(&[4], Some(&x[1]), Some(&x[2]), 1e-2), &m);
    let groups = [points(dev, &[2, 4, 3], -1.0, 1.0), m[1].clone(), m[2].clone()];
    c.like_differences("group_norm", &|x| x[0].group_norm(2, Some(&x[1]), Some(&x[2]), 1e-2), &groups);
    let (mean, var) = (points(dev, &[4], -0.5, 0.5), points(dev, &[4], 0.5, 1.5));
    for train in [true, false] {
        let running = (!train).then_some((&mean, &var));
        let norm = |x: &[LazyTensor]| {
            let (mean, var) = running.unzip();
            Ok(x[0].native_batch_norm(Some(&x[1]), Some(&x[2]), mean, var, train, 0.3, 1e-2)?.0)
        };
        c.like_differences("batch_norm", &norm, &m);
    }
    let statistics = [m[0].clone(), mean, var];
    let norm = |x: &[LazyTensor]| Ok(x[0].native_batch_norm(None, None, Some(&x[1]), Some(&x[2]), false, 0.1, 1e-5)?.0);
    c.refused(O::NativeBatchNorm, "'running_mean'", &norm, &statistics);
}

pub(crate) fn of_dropout(c: &mut Checks<'_>) {
    let x = [points(c.dev, &[2, 3], 0.5, 1.0)];
    // Evaluation keeps all elements.
    c.like("dropout in evaluation", &|x| Ok(x[0].native_dropout(0.25, Some(false))?.0), &x, &[1.0; 6]);
    let mut run = || -> Result<(), Error> {
        for train in [Some(true), None] {
            let leaf = x[0].clone().requiring_grad();
            let y = leaf.native_dropout(0.25, train)?.0;
            y.sum()?.backward()?;
            let scale = y.div(&leaf)?.to_vec::<f64>()?;
            c.note(&y);
            let grad = leaf.grad().expect("a gradient").to_vec::<f64>()?;
            assert!(grad.iter().zip(scale).all(|(a, b)| (a - b).abs() < 1e-12), "{grad:?}");
        }
        Ok(())
    };
    run().expect("dropout");
}
