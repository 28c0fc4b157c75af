//! Which instruction an operation is, for each width. Most are one.

use iced_x86::Code;

use super::vector::{Op, Width};

/// Rows of operation, AVX2 form, AVX-512 form.
macro_rules! table {
    ($op:expr, $width:expr; $($name:ident $ymm:ident $zmm:ident $(,$more:expr)*;)*) => {
        match ($op, $width) {
            $((Op::$name, Width::Ymm) => Some((Code::$ymm $(,$more)*)),
            (Op::$name, Width::Zmm) => Some((Code::$zmm $(,$more)*)),)*
            _ => None,
        }
    };
}

/// Operations that are one instruction of one or two operands; whether it has an immediate.
#[rustfmt::skip]
pub(super) fn plain(op: Op, width: Width) -> Option<(Code, bool)> {
    table! { op, width;
        AddPs VEX_Vaddps_ymm_ymm_ymmm256 EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er, false;
        SubPs VEX_Vsubps_ymm_ymm_ymmm256 EVEX_Vsubps_zmm_k1z_zmm_zmmm512b32_er, false;
        MulPs VEX_Vmulps_ymm_ymm_ymmm256 EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er, false;
        DivPs VEX_Vdivps_ymm_ymm_ymmm256 EVEX_Vdivps_zmm_k1z_zmm_zmmm512b32_er, false;
        MaxPs VEX_Vmaxps_ymm_ymm_ymmm256 EVEX_Vmaxps_zmm_k1z_zmm_zmmm512b32_sae, false;
        MinPs VEX_Vminps_ymm_ymm_ymmm256 EVEX_Vminps_zmm_k1z_zmm_zmmm512b32_sae, false;
        AddPd VEX_Vaddpd_ymm_ymm_ymmm256 EVEX_Vaddpd_zmm_k1z_zmm_zmmm512b64_er, false;
        SubPd VEX_Vsubpd_ymm_ymm_ymmm256 EVEX_Vsubpd_zmm_k1z_zmm_zmmm512b64_er, false;
        MulPd VEX_Vmulpd_ymm_ymm_ymmm256 EVEX_Vmulpd_zmm_k1z_zmm_zmmm512b64_er, false;
        DivPd VEX_Vdivpd_ymm_ymm_ymmm256 EVEX_Vdivpd_zmm_k1z_zmm_zmmm512b64_er, false;
        MaxPd VEX_Vmaxpd_ymm_ymm_ymmm256 EVEX_Vmaxpd_zmm_k1z_zmm_zmmm512b64_sae, false;
        MinPd VEX_Vminpd_ymm_ymm_ymmm256 EVEX_Vminpd_zmm_k1z_zmm_zmmm512b64_sae, false;
        And VEX_Vpand_ymm_ymm_ymmm256 EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32, false;
        Andn VEX_Vpandn_ymm_ymm_ymmm256 EVEX_Vpandnd_zmm_k1z_zmm_zmmm512b32, false;
        Or VEX_Vpor_ymm_ymm_ymmm256 EVEX_Vpord_zmm_k1z_zmm_zmmm512b32, false;
        Xor VEX_Vpxor_ymm_ymm_ymmm256 EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, false;
        AddD VEX_Vpaddd_ymm_ymm_ymmm256 EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32, false;
        SubD VEX_Vpsubd_ymm_ymm_ymmm256 EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32, false;
        MulD VEX_Vpmulld_ymm_ymm_ymmm256 EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32, false;
        MaxD VEX_Vpmaxsd_ymm_ymm_ymmm256 EVEX_Vpmaxsd_zmm_k1z_zmm_zmmm512b32, false;
        MinD VEX_Vpminsd_ymm_ymm_ymmm256 EVEX_Vpminsd_zmm_k1z_zmm_zmmm512b32, false;
        AddQ VEX_Vpaddq_ymm_ymm_ymmm256 EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64, false;
        SubQ VEX_Vpsubq_ymm_ymm_ymmm256 EVEX_Vpsubq_zmm_k1z_zmm_zmmm512b64, false;
        MulLow VEX_Vpmuludq_ymm_ymm_ymmm256 EVEX_Vpmuludq_zmm_k1z_zmm_zmmm512b64, false;
        SqrtPs VEX_Vsqrtps_ymm_ymmm256 EVEX_Vsqrtps_zmm_k1z_zmmm512b32_er, false;
        SqrtPd VEX_Vsqrtpd_ymm_ymmm256 EVEX_Vsqrtpd_zmm_k1z_zmmm512b64_er, false;
        AbsD VEX_Vpabsd_ymm_ymmm256 EVEX_Vpabsd_zmm_k1z_zmmm512b32, false;
        DToPs VEX_Vcvtdq2ps_ymm_ymmm256 EVEX_Vcvtdq2ps_zmm_k1z_zmmm512b32_er, false;
        PsToD VEX_Vcvttps2dq_ymm_ymmm256 EVEX_Vcvttps2dq_zmm_k1z_zmmm512b32_sae, false;
        RoundPs VEX_Vroundps_ymm_ymmm256_imm8 EVEX_Vrndscaleps_zmm_k1z_zmmm512b32_imm8_sae, true;
        RoundPd VEX_Vroundpd_ymm_ymmm256_imm8 EVEX_Vrndscalepd_zmm_k1z_zmmm512b64_imm8_sae, true;
        ShlD VEX_Vpslld_ymm_ymm_imm8 EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8, true;
        ShrD VEX_Vpsrld_ymm_ymm_imm8 EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8, true;
        SarD VEX_Vpsrad_ymm_ymm_imm8 EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8, true;
        ShlQ VEX_Vpsllq_ymm_ymm_imm8 EVEX_Vpsllq_zmm_k1z_zmmm512b64_imm8, true;
        ShrQ VEX_Vpsrlq_ymm_ymm_imm8 EVEX_Vpsrlq_zmm_k1z_zmmm512b64_imm8, true;
    }
}

/// Comparisons, which AVX-512 gives as bits: whether there is an immediate, and whether lanes have 64 bits.
#[rustfmt::skip]
pub(super) fn compared(op: Op, width: Width) -> Option<(Code, bool, bool)> {
    table! { op, width;
        CmpPs VEX_Vcmpps_ymm_ymm_ymmm256_imm8 EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae, true, false;
        CmpPd VEX_Vcmppd_ymm_ymm_ymmm256_imm8 EVEX_Vcmppd_kr_k1_zmm_zmmm512b64_imm8_sae, true, true;
        EqD VEX_Vpcmpeqd_ymm_ymm_ymmm256 EVEX_Vpcmpeqd_kr_k1_zmm_zmmm512b32, false, false;
        GtD VEX_Vpcmpgtd_ymm_ymm_ymmm256 EVEX_Vpcmpgtd_kr_k1_zmm_zmmm512b32, false, false;
        EqQ VEX_Vpcmpeqq_ymm_ymm_ymmm256 EVEX_Vpcmpeqq_kr_k1_zmm_zmmm512b64, false, true;
        GtQ VEX_Vpcmpgtq_ymm_ymm_ymmm256 EVEX_Vpcmpgtq_kr_k1_zmm_zmmm512b64, false, true;
    }
}

/// Products added, to the place of a factor and to that of the sum.
pub(super) fn fused(op: Op, width: Width) -> Option<[Code; 2]> {
    Some(match (op, width) {
        (Op::FmaPs, Width::Ymm) => [Code::VEX_Vfmadd213ps_ymm_ymm_ymmm256, Code::VEX_Vfmadd231ps_ymm_ymm_ymmm256],
        (Op::FmaPs, Width::Zmm) => {
            [Code::EVEX_Vfmadd213ps_zmm_k1z_zmm_zmmm512b32_er, Code::EVEX_Vfmadd231ps_zmm_k1z_zmm_zmmm512b32_er]
        }
        (Op::FmaPd, Width::Ymm) => [Code::VEX_Vfmadd213pd_ymm_ymm_ymmm256, Code::VEX_Vfmadd231pd_ymm_ymm_ymmm256],
        (Op::FmaPd, Width::Zmm) => {
            [Code::EVEX_Vfmadd213pd_zmm_k1z_zmm_zmmm512b64_er, Code::EVEX_Vfmadd231pd_zmm_k1z_zmm_zmmm512b64_er]
        }
        _ => return None,
    })
}

/// An instruction between a vector and half of one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Half {
    Low(Code),
    High(Code),
    /// Two vectors to one.
    Narrow(Code),
}

/// Operations on halves of vectors.
pub(super) fn half(op: Op, width: Width) -> Option<Half> {
    let either = |ymm, zmm| if width == Width::Ymm { ymm } else { zmm };
    let signed = either(Code::VEX_Vpmovsxdq_ymm_xmmm128, Code::EVEX_Vpmovsxdq_zmm_k1z_ymmm256);
    let double = either(Code::VEX_Vcvtps2pd_ymm_xmmm128, Code::EVEX_Vcvtps2pd_zmm_k1z_ymmm256b32_sae);
    let whole = either(Code::VEX_Vcvtdq2pd_ymm_xmmm128, Code::EVEX_Vcvtdq2pd_zmm_k1z_ymmm256b32_er);
    Some(match op {
        Op::DToQLo => Half::Low(signed),
        Op::DToQHi => Half::High(signed),
        Op::PsToPdLo => Half::Low(double),
        Op::PsToPdHi => Half::High(double),
        Op::DToPdLo => Half::Low(whole),
        Op::DToPdHi => Half::High(whole),
        Op::PdToPsNarrow => {
            Half::Narrow(either(Code::VEX_Vcvtpd2ps_xmm_ymmm256, Code::EVEX_Vcvtpd2ps_ymm_k1z_zmmm512b64_er))
        }
        Op::PdToDNarrow => {
            Half::Narrow(either(Code::VEX_Vcvttpd2dq_xmm_ymmm256, Code::EVEX_Vcvttpd2dq_ymm_k1z_zmmm512b64_sae))
        }
        Op::QToDNarrow if width == Width::Zmm => Half::Narrow(Code::EVEX_Vpmovqd_ymmm256_k1z_zmm),
        _ => return None,
    })
}
