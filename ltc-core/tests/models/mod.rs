//! Two small models of native tensors, trained on batches of changing size.

use ltc_core::{
    Device, Error, LazyTensor, Session,
    nn::{Adam, Attention, BatchNorm2d, Conv2d, Conv2dConfig, Embedding, LayerNorm, Linear, Optimizer, Vars},
    tensor::Reduction,
};
use ltc_ir::DType;

/// Which model.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Model {
    /// Convolutions, batch normalisation, pooling, a linear layer; sizes are batches.
    Convnet,
    /// Embedding, causal attention, layer normalisation; sizes are batches.
    Transformer,
    /// The same, sizes are lengths.
    Lengths,
}

enum Net {
    Conv { first: Conv2d, norm: BatchNorm2d, second: Conv2d, output: Linear },
    Attention { table: Embedding, attention: Attention, norm: LayerNorm, output: Linear },
}

impl Net {
    fn new(model: Model, vars: &Vars) -> Result<Net, Error> {
        let config = Conv2dConfig { padding: 1, ..Conv2dConfig::default() };
        Ok(match model {
            Model::Convnet => Net::Conv {
                first: Conv2d::new(&vars.at("first"), 1, 3, 3, config)?,
                norm: BatchNorm2d::new(&vars.at("norm"), 3)?,
                second: Conv2d::new(&vars.at("second"), 3, 4, 3, config)?,
                output: Linear::new(&vars.at("output"), 4 * 4, 5)?,
            },
            _ => Net::Attention {
                table: Embedding::new(&vars.at("table"), 7, 8)?,
                attention: Attention::new(&vars.at("attention"), 8, 2, true)?,
                norm: LayerNorm::new(&vars.at("norm"), &[8])?,
                output: Linear::new(&vars.at("output"), 8, 7)?,
            },
        })
    }

    fn loss(&self, device: &Device, size: i64, length: i64) -> Result<LazyTensor, Error> {
        match self {
            Net::Conv { first, norm, second, output } => {
                let pixels: Vec<f32> = (0..size * 64).map(|i| ((i * 37 + size) % 101) as f32 / 50.0 - 1.0).collect();
                let labels: Vec<i64> = (0..size).map(|i| (i * 3 + size) % 5).collect();
                let x = LazyTensor::from_slice(device, &pixels, &[size, 1, 8, 8])?;
                let x = norm.forward(&first.forward(&x)?, true)?.relu()?.max_pool2d([2, 2])?;
                let x = second.forward(&x)?.relu()?.max_pool2d([2, 2])?.flatten(1, -1)?;
                output.forward(&x)?.cross_entropy(&LazyTensor::from_slice(device, &labels, &[size])?, Reduction::Mean)
            }
            Net::Attention { table, attention, norm, output } => {
                let tokens: Vec<i64> = (0..size * length).map(|i| (i * i + 3 * size) % 7).collect();
                let next: Vec<i64> = tokens.iter().map(|t| (t * 5 + 1) % 7).collect();
                let x = table.forward(&LazyTensor::from_slice(device, &tokens, &[size, length])?)?;
                let x = norm.forward(&x.add(attention.forward(&x)?)?)?;
                let y = output.forward(&x)?.reshape(&[size * length, 7])?;
                y.cross_entropy(&LazyTensor::from_slice(device, &next, &[size * length])?, Reduction::Mean)
            }
        }
    }
}

/// Trains one step per size; losses, then all weights.
pub(crate) fn train(session: &Session, model: Model, sizes: &[i64]) -> Result<Vec<f32>, Error> {
    let device = session.device(0)?;
    device.manual_seed(3);
    let vars = Vars::new(device);
    let net = Net::new(model, &vars)?;
    let mut optimizer = Adam::adamw(&vars, 0.01);
    let mut numbers = Vec::new();
    for &size in sizes {
        let loss = match model {
            Model::Lengths => net.loss(device, 3, size)?,
            _ => net.loss(device, size, 6)?,
        };
        optimizer.backward_step(&loss)?;
        numbers.push(loss.item()? as f32);
    }
    for (_, weight) in vars.all() {
        assert_eq!(weight.dtype(), DType::F32);
        numbers.extend(weight.to_vec::<f32>()?);
    }
    Ok(numbers)
}
