//! Ranks that torchrun starts.

mod ranks;

use std::{env, path::Path, process::Command};

use ltc_dist::{Group, Op};
use ranks::{PLACES, TEST, TIMEOUT, values};
use tch::Tensor;

#[test]
fn torchrun_starts_ranks() {
    if env::var_os(TEST).is_some() {
        let group = Group::from_env_within(TIMEOUT).unwrap();
        assert_eq!(group.size(), 2);
        for place in PLACES {
            let x = place.put(&Tensor::from_slice(&[1.0 + group.rank() as f64]));
            group.all_reduce(&x, Op::Sum).unwrap();
            assert_eq!(values(&x), [3.0]);
        }
        return group.close().unwrap();
    }
    let torchrun = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.venv/bin/torchrun");
    if !torchrun.exists() {
        // A build by LIBTORCH alone has none.
        return;
    }
    let ran = Command::new(torchrun)
        .args(["--no-python", "--nproc-per-node", "2", "--master-port", &ranks::free_port().to_string()])
        .arg(env::current_exe().unwrap())
        .args(["--exact", "torchrun_starts_ranks", "--nocapture"])
        .env(TEST, "torchrun_starts_ranks")
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let said = String::from_utf8_lossy(&ran.stdout);
    assert_eq!(said.matches("1 passed").count(), 2, "{said}");
}
