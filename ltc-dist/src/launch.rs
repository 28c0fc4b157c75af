//! What a launcher (torchrun, or a person) tells a process in its environment.

use std::str::FromStr;

use crate::{Error, store::check_rank};

/// This process's place among all.
#[derive(Debug, PartialEq)]
pub(crate) struct Launch {
    pub(crate) rank: usize,
    pub(crate) world: usize,
    /// Where the store is.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Whether this process serves it: torchrun's agent may do so already.
    pub(crate) serves: bool,
    /// Which start this is. After a restart by torchrun the store has the keys of earlier ones, too.
    pub(crate) attempt: u64,
}

impl Launch {
    /// From variables of the environment.
    ///
    /// # Errors
    /// Where one is missing or makes no sense.
    pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Launch, Error> {
        let wrong = |name, expected| {
            let value = variable(name);
            move || Error::Environment { name, value, expected }
        };
        let (rank, world) = (number(&variable, "RANK")?, number(&variable, "WORLD_SIZE")?);
        check_rank(rank, world).map_err(|_| wrong("RANK", "a number below WORLD_SIZE")())?;
        let host = variable("MASTER_ADDR").filter(|host| !host.is_empty());
        let host = host.ok_or_else(wrong("MASTER_ADDR", "the host of rank 0"))?;
        let port = variable("MASTER_PORT").and_then(|port| port.parse().ok());
        let port = port.ok_or_else(wrong("MASTER_PORT", "a port that is free on MASTER_ADDR"))?;
        let by_agent = variable("TORCHELASTIC_USE_AGENT_STORE").is_some_and(|v| v == "True");
        let attempt = match variable("TORCHELASTIC_RESTART_COUNT") {
            None => 0,
            Some(_) => number(&variable, "TORCHELASTIC_RESTART_COUNT")?,
        };
        Ok(Launch { rank, world, host, port, serves: rank == 0 && !by_agent, attempt })
    }
}

fn number<T: FromStr>(variable: &impl Fn(&str) -> Option<String>, name: &'static str) -> Result<T, Error> {
    let value = variable(name);
    let number = value.as_ref().and_then(|v| v.parse().ok());
    number.ok_or(Error::Environment { name, value, expected: "a number (torchrun sets it)" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(changes: &[(&str, Option<&str>)]) -> Result<Launch, String> {
        let plain = [("RANK", "0"), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "first.example"), ("MASTER_PORT", "29500")];
        let find = |name: &str| match changes.iter().find(|(n, _)| *n == name) {
            Some((_, value)) => value.map(str::to_owned),
            None => plain.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned()),
        };
        Launch::read(find).map_err(|e| e.to_string())
    }

    #[test]
    fn rank_0_serves_the_store_unless_an_agent_does() {
        let first = Launch { rank: 0, world: 2, host: "first.example".into(), port: 29500, serves: true, attempt: 0 };
        assert_eq!(read(&[]), Ok(first));
        assert!(!read(&[("RANK", Some("1"))]).unwrap().serves);
        let again = [("TORCHELASTIC_USE_AGENT_STORE", Some("True")), ("TORCHELASTIC_RESTART_COUNT", Some("3"))];
        let again = read(&again).unwrap();
        assert_eq!((again.serves, again.attempt), (false, 3));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let error = |name, value| read(&[(name, value)]).unwrap_err();
        assert_eq!(error("RANK", None), "RANK is not set: expected a number (torchrun sets it)");
        assert_eq!(error("WORLD_SIZE", Some("two")), "WORLD_SIZE is \"two\": expected a number (torchrun sets it)");
        assert_eq!(error("RANK", Some("2")), "RANK is \"2\": expected a number below WORLD_SIZE");
        assert_eq!(error("MASTER_ADDR", Some("")), "MASTER_ADDR is \"\": expected the host of rank 0");
        assert!(error("MASTER_PORT", Some("70000")).starts_with("MASTER_PORT is \"70000\""));
    }
}
