//! Lets examples find libtorch when they run, where they are built with it.

fn main() {
    if std::env::var_os("CARGO_FEATURE_LIBTORCH").is_some() {
        ltc_build::link_args();
    }
}
