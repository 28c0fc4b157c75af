//! The libtorch backend passes what every backend has to pass.

ltc_backend::conformance!(ltc_ts::TsBackend::new(1));
