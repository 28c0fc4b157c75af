//! Lets tests and benches find libtorch when they run.

fn main() {
    ltc_build::link_args();
}
