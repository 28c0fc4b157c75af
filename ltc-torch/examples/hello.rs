//! First contact: what is recorded, what runs.
#![expect(clippy::print_stdout, reason = "an example talks to people")]

use tch::{Device, Kind, Tensor};

fn main() -> Result<(), ltc_torch::Error> {
    ltc_torch::init()?;
    let a = Tensor::randn([4, 6], (Kind::Float, Device::Cpu));
    let l = ltc_torch::to_lazy(&a)?;
    let y = (&l * 2.0 + 1.0).relu().sum(Kind::Float);
    let z = (&a * 2.0 + 1.0).relu().sum(Kind::Float);
    println!("{} {}", y.double_value(&[]), z.double_value(&[]));
    println!("{}", ltc_torch::metrics()?);
    Ok(())
}
