//! Sessions over the backend that logs its calls.

use std::sync::Arc;

use ltc_backend::{HostTensor, testing::RecordingBackend};
use ltc_core::{Config, Device, Session, TraceValue};
use ltc_ir::{DType, Layout};

/// A session, and its backend.
pub(crate) fn session(config: Config) -> (RecordingBackend, Session) {
    let backend = RecordingBackend::default();
    let session = Session::new(Arc::new(backend.clone()), config).expect("a session");
    (backend, session)
}

/// A value of so many numbers.
pub(crate) fn upload(dev: &Device, n: i64) -> TraceValue {
    let layout = Layout::contiguous(DType::F32, &[n]);
    dev.upload(&HostTensor { bytes: vec![0; layout.storage_bytes()], layout: layout.into() }).expect("an upload")
}
