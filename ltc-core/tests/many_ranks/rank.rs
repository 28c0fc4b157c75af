//! A rank: a session of its own, what it records, and the token that its collectives pass on.

use std::sync::Arc;

use ltc_backend::HostTensor;
use ltc_core::{Config, Device, Session, Storage, TraceValue};
use ltc_ir::{ArgFlags, ArgWriter, DType, Layout, LayoutRef, Op, Operands, Props, Scalar, Signature, SiteId, View};
use smallvec::SmallVec;

use crate::{backend::RankBackend, engine::Engine};

const ALL: View<'static> = View { dtype: DType::I64, sizes: &[1], strides: &[1], offset: 0 };

/// What orders collectives, and says what became of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Token {
    /// One for all of a rank's, as `torch.distributed` has here.
    One,
    /// A mistake: a new one for each.
    PerCall,
    /// A mistake: one that forgets that something before it failed.
    Forgetful,
}

/// How ranks go about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) token: Token,
    /// Others are said to wait for what is recorded.
    pub(crate) liveness: bool,
    /// Ranks join some collectives late, in real time.
    pub(crate) dawdles: bool,
    /// By which part computing takes longer, at most.
    pub(crate) uneven: f64,
}

pub(crate) struct Rank {
    pub(crate) number: usize,
    pub(crate) engine: Arc<Engine>,
    backend: RankBackend,
    session: Session,
    token: Storage,
    way: Way,
}

fn layout() -> LayoutRef {
    ALL.layout().into()
}

impl Rank {
    pub(crate) fn new(engine: &Arc<Engine>, number: usize, way: Way) -> Result<Self, String> {
        let backend = RankBackend::new(engine, number, way.dawdles, way.uneven);
        let session = Session::new(Arc::new(backend.clone()), Config::default()).map_err(|e| e.to_string())?;
        let token = Storage::with_value(upload(session.device(0).map_err(|e| e.to_string())?, 0)?);
        if way.token != Token::Forgetful {
            token.keep_failures();
        }
        Ok(Rank { number, engine: engine.clone(), backend, session, token, way })
    }

    pub(crate) fn device(&self) -> &Device {
        self.session.device(0).expect("it has one")
    }

    pub(crate) fn upload(&self, number: i64) -> Result<TraceValue, String> {
        upload(self.device(), number)
    }

    /// The time of this rank's clock.
    pub(crate) fn clock(&self) -> f64 {
        self.backend.clock()
    }

    /// Records a computation.
    pub(crate) fn compute(&self, op: &str, of: &[&TraceValue], number: f64) -> TraceValue {
        let mut args = ArgWriter::new();
        for _ in of {
            args.tensor();
        }
        let (words, numbers) = args.number(Scalar::Float(number)).finish();
        let signature = Signature::new(Op::intern(op, Props::NONE), words, SmallVec::from_iter([layout()]));
        let operands: Operands<_> = of.iter().map(|&value| value.clone()).collect();
        self.device().record(&signature, operands, numbers, SiteId::default())
    }

    /// Records a collective: its sum, or what `sim::finish` makes that of.
    pub(crate) fn collective(&self, op: &str, x: &TraceValue, label: i64, bytes: f64) -> Result<TraceValue, String> {
        let device = self.device();
        let token = match self.way.token {
            Token::PerCall => &Storage::with_value(self.upload(0)?),
            Token::One | Token::Forgetful => &self.token,
        };
        let mut args = ArgWriter::new();
        args.tensor().number(Scalar::Float(label as f64)).number(Scalar::Float(bytes));
        let (words, numbers) = args.tensor_with(ArgFlags::MUT).finish();
        let op = Op::intern(op, Props::MUTATES.and(Props::COLLECTIVE));
        let signature = Signature::new(op, words, SmallVec::from_iter([layout(), layout()]));
        let operands = Operands::from_iter([x.clone(), token.read(device, ALL, SiteId::default())]);
        let mut results = device.record_results(&signature, operands, numbers, SiteId::default());
        let result = results.pop().ok_or("a collective without result")?;
        let passed_on = results.pop().ok_or("a collective without token")?;
        token.write(device, ALL, passed_on, SiteId::default());
        if self.way.liveness {
            device.others_wait(|| true);
        }
        Ok(result)
    }

    /// Waits for a value.
    pub(crate) fn read(&self, value: &TraceValue, what: impl FnOnce() -> String) -> Result<i64, String> {
        self.engine.says(self.number, format!("reads {}", what()));
        let host = self.device().download(value).map_err(|e| e.to_string())?;
        self.engine.says(self.number, "records".into());
        let bytes: [u8; 8] = host.bytes.try_into().map_err(|_| "not a number".to_owned())?;
        Ok(i64::from_ne_bytes(bytes))
    }

    /// Waits for a value, which must be this.
    pub(crate) fn check(&self, value: &TraceValue, expected: i64, what: impl Fn() -> String) -> Result<(), String> {
        match self.read(value, &what)? {
            found if found == expected => Ok(()),
            found => Err(format!("rank {}: {} is {found}, not {expected}", self.number, what())),
        }
    }

    /// What the token has counted.
    pub(crate) fn collectives(&self) -> Result<i64, String> {
        self.read(&self.token.read(self.device(), ALL, SiteId::default()), || "its token".into())
    }
}

/// Other ranks learn that it is gone before its session waits for what it still has to do.
impl Drop for Rank {
    fn drop(&mut self) {
        self.engine.leave(self.number);
    }
}

pub(crate) fn get(device: &Device, storage: &Storage) -> TraceValue {
    storage.read(device, ALL, SiteId::default())
}

pub(crate) fn set(device: &Device, storage: &Storage, value: TraceValue) {
    storage.write(device, ALL, value, SiteId::default());
}

fn upload(device: &Device, number: i64) -> Result<TraceValue, String> {
    let host = HostTensor { layout: Layout::contiguous(DType::I64, &[1]).into(), bytes: number.to_ne_bytes().into() };
    device.upload(&host).map_err(|e| e.to_string())
}
