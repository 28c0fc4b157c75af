use tch::{Device, Kind, Tensor};
fn main() {
    ltc_torch::init().unwrap();
    let _g = tch::no_grad_guard();
    let lazy = ltc_torch::to_lazy(&Tensor::randn([16], (Kind::Float, Device::Cpu))).unwrap();
    for _ in 0..3000 {
        let mut y = lazy.shallow_clone();
        for _ in 0..1000 {
            y = y + &lazy;
        }
    }
}
