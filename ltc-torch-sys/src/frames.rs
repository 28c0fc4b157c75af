//! How the frames of the running program are laid out on its stack, by the descriptions that compilers write into
//! `.eh_frame` for exceptions (the x86-64 System V ABI supplement, section 6.2; DWARF 5, section 6.4). Read by `gimli`.

use std::ops::Range;

/// Where a frame begins and what it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) base: Base,
    /// From the base's value to the caller's top of stack; the return address is the word below that.
    pub(crate) offset: isize,
    /// Where the caller's frame pointer was saved, from the caller's top of stack; `None`: it is still in its register.
    pub(crate) saved: Option<isize>,
}

/// The register that a frame is described by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    Stack,
    Frame,
}

/// The registers that an unwinding starts with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub(crate) code: usize,
    pub(crate) stack: usize,
    pub(crate) frame: usize,
}

/// The word at an address on this thread's stack.
#[inline]
pub(crate) fn word(at: usize) -> usize {
    // SAFETY: the two callers, both in `callers.rs`, pass aligned addresses between this thread's stack pointer and its
    // stack's end (`unwind` checks; `is_now` compares stack pointers with those of a walk that was checked). These are
    // mapped for as long as the thread runs, any bits are a `usize`, and nobody else writes them meanwhile that Rust
    // knows of.
    unsafe { std::ptr::with_exposed_provenance::<usize>(at).read_volatile() }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod linux {
    use std::ffi::c_void;

    use gimli::{
        BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, NativeEndian, RegisterRule, UnwindContext,
        UnwindSection, X86_64,
    };

    use super::{Base, Frame, Range, Start};

    /// The registers of whoever this is inlined into.
    #[inline(always)]
    pub(crate) fn registers() -> Option<Start> {
        let (code, stack, frame): (usize, usize, usize);
        // SAFETY: it copies three registers, and touches neither memory nor flags.
        unsafe {
            std::arch::asm!(
                "lea {}, [rip]",
                "mov {}, rsp",
                "mov {}, rbp",
                out(reg) code,
                out(reg) stack,
                out(reg) frame,
                options(nomem, nostack, preserves_flags)
            );
        }
        Some(Start { code, stack, frame })
    }

    /// The addresses of this thread's own stack.
    pub(crate) fn stack_of_thread() -> Option<Range<usize>> {
        let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
        let (mut low, mut size) = (std::ptr::null_mut(), 0);
        // SAFETY: the attributes are initialised by the first call where it returns 0, read by the second, and freed
        // once.
        unsafe {
            if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
                return None;
            }
            let got = libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut low, &raw mut size);
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
            (got == 0).then(|| low as usize..low as usize + size)
        }
    }

    /// How the frame of the code at an address is laid out; `None` where nothing is said of it, or something out of the
    /// ordinary.
    pub(crate) fn describe(code: usize) -> Option<Frame> {
        let mut asked = Asked { code, frame: None };
        // SAFETY: `visit` is called with the pointer given here, before `dl_iterate_phdr` returns.
        unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut asked).cast()) };
        asked.frame
    }

    struct Asked {
        code: usize,
        frame: Option<Frame>,
    }

    /// Looks the address up in one library. 0: go on with the next one.
    extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, asked: *mut c_void) -> i32 {
        // SAFETY: the loader passes a description of a library that stays loaded during this call, and `describe`'s
        // pointer.
        let (asked, info) = unsafe { (&mut *asked.cast::<Asked>(), &*info) };
        if info.dlpi_phdr.is_null() || info.dlpi_phnum == 0 {
            return 0;
        }
        // SAFETY: the loader says how many program headers there are.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let range = |h: &libc::Elf64_Phdr| {
            let start = (info.dlpi_addr as usize).wrapping_add(h.p_vaddr as usize);
            start..start.wrapping_add(h.p_memsz as usize)
        };
        let loaded = || headers.iter().filter(|h| h.p_type == libc::PT_LOAD).map(range);
        if !loaded().any(|r| r.contains(&asked.code)) {
            return 0;
        }
        let index = headers.iter().find(|h| h.p_type == libc::PT_GNU_EH_FRAME).map(range);
        asked.frame = index.and_then(|index| {
            let segment = loaded().find(|r| r.contains(&index.start))?;
            read(asked.code, index, segment)
        });
        1
    }

    /// Reads the description of a frame from `.eh_frame_hdr`, at `index`, and from the `.eh_frame` it points to, in the
    /// same segment.
    fn read(code: usize, index: Range<usize>, segment: Range<usize>) -> Option<Frame> {
        let bytes = |r: Range<usize>| {
            // SAFETY: both ranges lie in a loaded, read-only segment of a library whose code is being run.
            let bytes =
                unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(r.start), r.len()) };
            EndianSlice::new(bytes, NativeEndian)
        };
        let bases = BaseAddresses::default().set_eh_frame_hdr(index.start as u64);
        let header = EhFrameHdr::from(bytes(index.start..segment.end)).parse(&bases, 8).ok()?;
        let gimli::Pointer::Direct(start) = header.eh_frame_ptr() else { return None };
        let start = usize::try_from(start).ok().filter(|s| segment.contains(s))?;
        let descriptions = EhFrame::from(bytes(start..segment.end));
        let bases = bases.set_eh_frame(start as u64);
        let mut context = UnwindContext::new();
        let by_offset = EhFrame::cie_from_offset;
        let table = header.table()?;
        let row = table.unwind_info_for_address(&descriptions, &bases, &mut context, code as u64, by_offset).ok()?;
        let (base, offset) = match *row.cfa() {
            CfaRule::RegisterAndOffset { register: X86_64::RSP, offset } => (Base::Stack, offset),
            CfaRule::RegisterAndOffset { register: X86_64::RBP, offset } => (Base::Frame, offset),
            _ => return None,
        };
        let saved = match row.register(X86_64::RBP) {
            Some(RegisterRule::Offset(offset)) => Some(offset as isize),
            None | Some(RegisterRule::SameValue) => None,
            Some(_) => return None,
        };
        // The return address stands below the caller's top of stack; nowhere, in the first frame of a thread.
        let returns = row.register(X86_64::RA) == Some(RegisterRule::Offset(-8));
        returns.then_some(Frame { base, offset: offset as isize, saved })
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) use linux::{describe, registers, stack_of_thread};

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod elsewhere {
    use super::{Frame, Range, Start};

    pub(crate) fn registers() -> Option<Start> {
        None
    }

    pub(crate) fn stack_of_thread() -> Option<Range<usize>> {
        None
    }

    pub(crate) fn describe(_code: usize) -> Option<Frame> {
        None
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub(crate) use elsewhere::{describe, registers, stack_of_thread};
