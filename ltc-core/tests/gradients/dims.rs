//! Gradients of operators over dimensions: reductions, products, views, and what moves elements.

use ltc_core::{LazyTensor, tensor};
use ltc_ir::{DType, OpCode as O, Scalar};

use crate::checks::{Checks, points};

pub(crate) fn of_reductions(c: &mut Checks<'_>) {
    let x = [points(c.dev, &[2, 3, 4], -1.0, 2.0)];
    let wide = Some(DType::F64);
    c.like_differences("sum", &|x| x[0].sum_with(tensor::SumOptions { dtype: wide }), &x);
    c.like_differences("sum_dim", &|x| x[0].sum_dim(Some(&[0, -1])), &x);
    c.like_differences("mean", &|x| x[0].mean(), &x);
    c.like_differences("mean_dim", &|x| x[0].mean_dim(Some(&[1])), &x);
    c.like_differences("max", &|x| x[0].max(), &x);
    c.like_differences("min", &|x| x[0].min(), &x);
    c.like_differences("amin", &|x| x[0].amin(), &x);
    c.like_differences("max_dim", &|x| Ok(x[0].max_dim(1)?.0), &x);
    c.like_differences("std", &|x| x[0].std_correction(), &x);
    c.like_differences("logsumexp", &|x| x[0].logsumexp(&[1]), &x);
    c.like_differences("cumsum", &|x| x[0].cumsum_with(1, tensor::CumsumOptions { dtype: wide }), &x);
    for keepdim in [false, true] {
        let sum = tensor::SumDimOptions { keepdim, dtype: None };
        c.like_differences("sum_dim", &|x| x[0].sum_dim_with(Some(&[1]), sum), &x);
        let mean = tensor::MeanDimOptions { keepdim, dtype: None };
        c.like_differences("mean_dim", &|x| x[0].mean_dim_with(Some(&[-1, 0]), mean), &x);
        c.like_differences("amax", &|x| x[0].amax_with(tensor::AmaxOptions { dim: &[1], keepdim }), &x);
        c.like_differences("amin", &|x| x[0].amin_with(tensor::AminOptions { dim: &[0, 2], keepdim }), &x);
        c.like_differences("max_dim", &|x| Ok(x[0].max_dim_with(1, tensor::MaxDimOptions { keepdim })?.0), &x);
        c.like_differences("min_dim", &|x| Ok(x[0].min_dim_with(-1, tensor::MinDimOptions { keepdim })?.0), &x);
        c.like_differences("median", &|x| Ok(x[0].median_dim_with(1, tensor::MedianDimOptions { keepdim })?.0), &x);
        c.like_differences("mode", &|x| Ok(x[0].mode_with(tensor::ModeOptions { dim: 1, keepdim })?.0), &x);
        let (dim, correction) = (Some(&[1, 2][..]), Some(Scalar::Float(0.5)));
        let var = tensor::VarCorrectionOptions { dim, correction, keepdim };
        c.like_differences("var", &|x| x[0].var_correction_with(var), &x);
        let std = tensor::StdCorrectionOptions { dim, correction, keepdim };
        c.like_differences("std", &|x| x[0].std_correction_with(std), &x);
        let logsumexp = tensor::LogsumexpOptions { keepdim };
        c.like_differences("logsumexp", &|x| x[0].logsumexp_with(&[0, 2], logsumexp), &x);
    }
    for p in [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, f64::INFINITY, f64::NEG_INFINITY] {
        let norm = tensor::NormOptions { p: Scalar::Float(p) };
        c.like_differences(&format!("norm of {p}"), &|x| x[0].norm_with(norm), &x);
    }
    // Where norms have kinks, libtorch's gradients.
    let root = 0.793_700_525_984_1;
    for (p, slope) in [(0.5, 2.0), (1.0, 1.0), (1.5, root), (3.0, root * root), (f64::INFINITY, 0.5)] {
        let norm = tensor::NormOptions { p: Scalar::Float(p) };
        let kinks = |values: &[f64]| [LazyTensor::from_slice(c.dev, values, &[3]).expect("a tensor")];
        let name = format!("norm of {p} at kinks");
        c.like(&name, &|x| x[0].norm_with(norm), &kinks(&[0.0, 2.0, -2.0]), &[0.0, slope, -slope]);
        c.like(&name, &|x| x[0].norm_with(norm), &kinks(&[0.0; 3]), &[0.0; 3]);
    }
    let (s, l) = ([x[0].clone()], tensor::SortOptions { dim: 1, descending: true });
    c.like_differences("sort", &|x| Ok(x[0].sort_with(l)?.0), &s);
    let topk = tensor::TopkOptions { dim: 1, largest: false, sorted: false };
    c.like_differences("topk", &|x| Ok(x[0].topk_with(2, topk)?.0), &s);
}

pub(crate) fn of_products(c: &mut Checks<'_>) {
    let dev = c.dev;
    let two = [points(dev, &[2, 3], -1.0, 2.0), points(dev, &[3, 4], -1.0, 2.0)];
    c.like_differences("mm", &|x| x[0].mm(&x[1]), &two);
    let batches = |x: &[LazyTensor]| x[0].unsqueeze(0)?.expand(&[2, 2, 3])?.matmul(&x[1]);
    c.like_differences("matmul of batches", &batches, &two);
    let vectors = [points(dev, &[2, 3], -1.0, 2.0), points(dev, &[3], -1.0, 2.0)];
    c.like_differences("mv", &|x| x[0].mv(&x[1]), &vectors);
    c.like_differences("dot", &|x| x[0].i(1)?.dot(&x[1]), &vectors);
    let three = [points(dev, &[4], -1.0, 2.0), two[0].clone(), two[1].clone()];
    let (beta, alpha) = (Scalar::Float(0.5), Scalar::Int(2));
    c.like_differences("addmm", &|x| x[0].addmm_with(&x[1], &x[2], tensor::AddmmOptions { beta, alpha }), &three);
    let batches = [points(dev, &[2, 3, 4], -1.0, 2.0), points(dev, &[2, 4, 2], -1.0, 1.0), points(dev, &[2], 0.0, 1.0)];
    c.like_differences("bmm", &|x| x[0].bmm(&x[1]), &batches[..2]);
    let options = tensor::BaddbmmOptions { beta, alpha };
    c.like_differences("baddbmm", &|x| x[2].baddbmm_with(&x[0], &x[1], options), &batches);
    c.like_differences("attention", &|x| x[0].attention(&x[0], &x[0], true), &batches[..1]);
}

pub(crate) fn of_views_and_joins(c: &mut Checks<'_>) {
    let x = [points(c.dev, &[2, 3, 4], -1.0, 2.0)];
    c.like_differences("view", &|x| x[0].view(&[6, 4])?.exp(), &x);
    c.like_differences("permute", &|x| x[0].permute(&[2, 0, 1])?.exp(), &x);
    c.like_differences("transpose", &|x| x[0].transpose(0, 2)?.reshape(&[-1])?.exp(), &x);
    c.like_differences("t", &|x| x[0].i(1)?.t()?.exp(), &x);
    c.like_differences("expand", &|x| x[0].unsqueeze(0)?.expand(&[3, 2, 3, 4]), &x);
    c.like_differences("select", &|x| x[0].i((1, .., -1)), &x);
    c.like_differences("slice", &|x| x[0].slice(2, Some(1), Some(4), 2), &x);
    c.like_differences("slice to the end", &|x| x[0].slice(2, Some(-3), None, 2), &x);
    c.like_differences("diagonal", &|x| x[0].diagonal(1, 1, 2), &x);
    c.like_differences("unfold", &|x| x[0].unfold(2, 3, 1)?.exp(), &x);
    c.like_differences("squeeze", &|x| Ok(x[0].unsqueeze(1)?.squeeze()), &x);
    c.like_differences("squeeze_dims", &|x| x[0].unsqueeze(1)?.squeeze_dims(&[1]), &x);
    c.like_differences("select's gradient", &|x| x[0].select_backward(&[2, 5, 3, 4], 1, 3), &x);
    c.like_differences("slice's gradient", &|x| x[0].slice_backward(&[2, 8, 4], 1, 1, 7, 2), &x);
    c.like_differences("repeat", &|x| x[0].repeat(&[2, 1, 3, 1]), &x);
    c.like_differences("flip", &|x| x[0].flip(&[0, 2]), &x);
    c.like_differences("tril", &|x| x[0].tril_with(tensor::TrilOptions { diagonal: 1 }), &x);
    c.like_differences("triu", &|x| x[0].triu_with(tensor::TriuOptions { diagonal: 1 }), &x);
    let cat = |x: &[LazyTensor]| LazyTensor::cat_with(&[&x[0], &x[0].exp()?], tensor::CatOptions { dim: 1 });
    c.like_differences("cat", &cat, &x);
    let stack = |x: &[LazyTensor]| LazyTensor::stack_with(&[&x[0], &x[0].exp()?], tensor::StackOptions { dim: 1 });
    c.like_differences("stack", &stack, &x);
    c.like_differences("chunk", &|x| x[0].chunk(2, -1)?[1].exp(), &x);
    c.like_differences("a copy", &|x| x[0].transpose(0, 1)?.contiguous()?.exp(), &x);
    let narrowed = |x: &[LazyTensor]| x[0].to_dtype(DType::F32)?.to_dtype(DType::F64);
    c.like("to_dtype", &narrowed, &[points(c.dev, &[2], -1.0, 1.0)], &[1.0, 1.0]);
}

pub(crate) fn of_indices(c: &mut Checks<'_>) {
    let dev = c.dev;
    let table = [points(dev, &[5, 3], -1.0, 1.0)];
    let at = LazyTensor::from_slice(dev, &[4i64, 0, 4], &[3]).expect("indices");
    c.like_differences("embedding", &|x| x[0].embedding(&at), &table);
    let embedding = tensor::EmbeddingOptions { padding_idx: -1, scale_grad_by_freq: false, sparse: false };
    let padded = tensor::EmbeddingOptions { padding_idx: 0, ..embedding };
    let mut expected = vec![0.0; 15];
    expected[12..].fill(2.0);
    c.like("embedding with padding", &|x| x[0].embedding_with(&at, padded), &table, &expected);
    expected[..3].fill(1.0);
    expected[12..].fill(1.0);
    let by_frequency = tensor::EmbeddingOptions { scale_grad_by_freq: true, ..embedding };
    c.like("embedding by frequency", &|x| x[0].embedding_with(&at, by_frequency), &table, &expected);
    let sparse = tensor::EmbeddingOptions { sparse: true, ..embedding };
    c.refused(O::Embedding, "sparse=true", &|x| x[0].embedding_with(&at, sparse), &table);
    c.like_differences("index_select", &|x| x[0].index_select(0, &at), &table);
    c.like_differences("index", &|x| x[0].i(&at), &table);
    c.like_differences("gather", &|x| x[0].gather(0, &at.unsqueeze(1)?), &table);
    let sparse = tensor::GatherOptions { sparse_grad: true };
    c.refused(O::Gather, "sparse_grad=true", &|x| x[0].gather_with(0, &at.unsqueeze(1)?, sparse), &table);
    let two = [table[0].clone(), points(dev, &[3, 1], -1.0, 1.0)];
    c.like_differences("scatter_add", &|x| x[0].scatter_add(0, &at.unsqueeze(1)?, &x[1]), &two);
    let apart = LazyTensor::from_slice(dev, &[4i64, 0, 2], &[3, 1]).expect("indices");
    c.like_differences("scatter", &|x| x[0].scatter(0, &apart, &x[1]), &two);
}
