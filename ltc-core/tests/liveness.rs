//! What other processes wait for is sent though its caller does nothing more.

use std::{sync::Arc, thread, time::Duration};

use ltc_backend::ReferenceBackend;
use ltc_core::{Config, Event, LazyTensor, Session, SyncReason};

fn session() -> Session {
    Session::new(Arc::new(ReferenceBackend), Config::default()).unwrap()
}

/// A value that depends on an operation, nothing of which has been sent.
fn pending(session: &Session) -> LazyTensor {
    let x = LazyTensor::from_slice(session.device(0).unwrap(), &[1.0f32, 2.0], &[2]).unwrap();
    (&x + 1.0).relu().unwrap()
}

/// Waits for what another thread does, for as long as a slow machine may take.
fn becomes(holds: impl Fn() -> bool) -> bool {
    (0..20_000).any(|_| {
        thread::park_timeout(Duration::from_millis(1));
        holds()
    })
}

#[test]
fn what_others_wait_for_is_sent_once_nothing_more_is_recorded() {
    let session = session();
    let device = session.device(0).unwrap();
    for _ in 0..3 {
        session.record_events(true);
        let value = pending(&session);
        device.others_wait(|| true);
        assert!(becomes(|| device.pending_count() == 0), "nobody sent it");
        let reasons: Vec<_> = session.take_events().into_iter().filter_map(reason).collect();
        assert_eq!(reasons, [SyncReason::OthersWait]);
        drop(value);
    }
}

#[test]
fn nothing_is_sent_that_nobody_waits_for_or_that_may_not_be_sent() {
    let session = session();
    let device = session.device(0).unwrap();
    let first = pending(&session);
    device.others_wait(|| true);
    device.sync().unwrap();
    // That sync took it: of what follows nobody was told.
    let second = pending(&session);
    assert!(!becomes_soon(|| device.pending_count() == 0));
    device.others_wait(|| false);
    assert!(!becomes_soon(|| device.pending_count() == 0));
    drop((first, second));
}

/// Whether it happens within several times what the watching thread waits for.
fn becomes_soon(holds: impl Fn() -> bool) -> bool {
    (0..150).any(|_| {
        thread::park_timeout(Duration::from_millis(1));
        holds()
    })
}

fn reason(event: Event) -> Option<SyncReason> {
    if let Event::Sync { reason, .. } = event { Some(reason) } else { None }
}
