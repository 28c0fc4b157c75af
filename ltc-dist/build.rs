//! Lets tests and examples find libtorch when they run.

fn main() {
    ltc_build::link_args();
}
