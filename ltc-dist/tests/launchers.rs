//! Ranks that torchrun starts, or somebody by hand.

mod ranks;

use std::{env, net::TcpListener, path::Path, process::Command};

use ltc_dist::{Group, Op};
use ranks::{PLACES, TEST, TIMEOUT, values};
use tch::Tensor;

/// What a rank of these tests does.
fn sums() {
    let group = Group::from_env_within(TIMEOUT).unwrap();
    assert_eq!(group.size(), 2);
    for place in PLACES {
        let x = place.put(&Tensor::from_slice(&[1.0 + group.rank() as f64]));
        group.all_reduce(&x, Op::Sum).unwrap();
        assert_eq!(values(&x), [3.0]);
    }
    group.close().unwrap();
}

#[test]
fn rank_0_serves_the_store_of_ranks_started_by_hand() {
    if env::var_os(TEST).is_some() {
        return sums();
    }
    for _ in 0..10 {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let ended = ranks::start("rank_0_serves_the_store_of_ranks_started_by_hand", free, false);
        if ended.iter().all(|rank| rank.status.success()) {
            return;
        }
        let said: String = ended.into_iter().map(|rank| rank.said).collect();
        // Another test may take the port before rank 0 listens at it.
        assert!(said.contains("EADDRINUSE"), "{said}");
    }
    panic!("ten ports in a row were taken");
}

#[test]
fn torchrun_starts_ranks() {
    if env::var_os(TEST).is_some() {
        return sums();
    }
    let torchrun = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.venv/bin/torchrun");
    if !torchrun.exists() {
        // A build by LIBTORCH alone has none.
        return;
    }
    let ran = Command::new(torchrun)
        .args(["--no-python", "--standalone", "--nproc-per-node", "2"])
        .arg(env::current_exe().unwrap())
        .args(["--exact", "torchrun_starts_ranks", "--nocapture"])
        .env(TEST, "torchrun_starts_ranks")
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let said = String::from_utf8_lossy(&ran.stdout);
    assert_eq!(said.matches("1 passed").count(), 2, "{said}");
}
