// What the text of kernels is made of. Two compilers read it: NVRTC for GPUs, and in tests the host's C++ compiler, which
// defines CUDA's words itself. It includes nothing. Functions hide CUDA's own of the same name; those are called by `::`.
#define D static __device__ __forceinline__

typedef unsigned char u8;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;

D u32 bits_of(f32 x) { return __float_as_uint(x); }
D f32 f32_of(u32 bits) { return __uint_as_float(bits); }
D f64 f64_of(u64 bits) { return __longlong_as_double((i64)bits); }

// Masks, of which the sign bit counts.
D u32 mask(bool is) { return is ? ~0u : 0u; }
D bool is_set(u32 mask) { return (i32)mask < 0; }

// Halves: what lies in memory. They are computed in single precision.
struct f16 { u16 bits; };
struct bf16 { u16 bits; };

D f32 half_value(u32 half) {
  const u32 magnitude = (half & 0x7fffu) << 13, sign = (half & 0x8000u) << 16;
  // Two to the power 112 moves the exponent, also of numbers below the normal ones.
  const f32 value = f32_of(magnitude) * f32_of(0x77800000u);
  return f32_of(sign | (magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : bits_of(value)));
}

// The nearest half, ties to even.
D u16 half_bits(f32 x) {
  const u32 sign = bits_of(x) >> 16 & 0x8000u, a = bits_of(x) & 0x7fffffffu;
  // Added to one half, a number below the normal ones is rounded to a whole number of the least half.
  const u32 small = bits_of(f32_of(a) + 0.5f) - 0x3f000000u;
  const u32 normal = (a - 0x38000000u + 0xfffu + (a >> 13 & 1u)) >> 13;
  const u32 finite = a < 0x38800000u ? small : normal;
  return (u16)(sign | (a > 0x7f800000u ? 0x7e00u : a >= 0x477ff000u ? 0x7c00u : finite));
}

template <class T> D T load(T x) { return x; }
D f32 load(f16 x) { return half_value(x.bits); }
D f32 load(bf16 x) { return f32_of((u32)x.bits << 16); }

template <class T> D void store(T& to, T x) { to = x; }
D void store(f16& to, f32 x) { to.bits = half_bits(x); }
D void store(bf16& to, f32 x) { to.bits = (u16)(bits_of(x) >> 16); }

// Elements that lie one after the other, read or written at once where their address allows it.
template <class T, int N> struct alignas(sizeof(T) * N) Pack { T x[N]; };

template <class T, int N> D bool is_whole(const T* at) { return (u64)at % sizeof(Pack<T, N>) == 0; }

// Of the last elements, of which there are fewer, the last is read again.
template <class T, int N> D void load_pack(Pack<T, N>& to, const T* from, i64 left, bool whole) {
  if (whole && left >= N) {
    to = *(const Pack<T, N>*)from;
  } else {
#pragma unroll
    for (int j = 0; j < N; j++) to.x[j] = from[j < left ? j : left - 1];
  }
}

template <class T, int N> D void store_pack(T* to, const Pack<T, N>& from, i64 left, bool whole) {
  if (whole && left >= N) {
    *(Pack<T, N>*)to = from;
  } else {
#pragma unroll
    for (int j = 0; j < N; j++) {
      if (j < left) to[j] = from.x[j];
    }
  }
}

// Operations. Signed integers wrap around, so they are computed unsigned; smaller ones are computed as `int`.
template <class T> D T neg(T x) { return -x; }
template <class T> D T add(T x, T y) { return x + y; }
template <class T> D T sub(T x, T y) { return x - y; }
template <class T> D T mul(T x, T y) { return x * y; }
D i32 neg(i32 x) { return (i32)(0u - (u32)x); }
D i64 neg(i64 x) { return (i64)(0ull - (u64)x); }
D i32 add(i32 x, i32 y) { return (i32)((u32)x + (u32)y); }
D i64 add(i64 x, i64 y) { return (i64)((u64)x + (u64)y); }
D i32 sub(i32 x, i32 y) { return (i32)((u32)x - (u32)y); }
D i64 sub(i64 x, i64 y) { return (i64)((u64)x - (u64)y); }
D i32 mul(i32 x, i32 y) { return (i32)((u32)x * (u32)y); }
D i64 mul(i64 x, i64 y) { return (i64)((u64)x * (u64)y); }
template <class T> D T div(T x, T y) { return x / y; }

D u8 abs(u8 x) { return x; }
D i32 abs(i32 x) { return x < 0 ? neg(x) : x; }
D i64 abs(i64 x) { return x < 0 ? neg(x) : x; }
D f32 abs(f32 x) { return ::fabsf(x); }
D f64 abs(f64 x) { return ::fabs(x); }

// The larger and the smaller; NaN if either is; the second of equal ones.
template <class T> D T max(T x, T y) { return x != x || x > y ? x : y; }
template <class T> D T min(T x, T y) { return x != x || x < y ? x : y; }

template <class T> D T bit_not(T x) { return ~x; }
template <class T> D T bit_and(T x, T y) { return x & y; }
template <class T> D T bit_or(T x, T y) { return x | y; }
template <class T> D T bit_xor(T x, T y) { return x ^ y; }
D u8 bool_not(u8 x) { return x ^ 1; }

template <class T> D u8 eq(T x, T y) { return x == y; }
template <class T> D u8 ne(T x, T y) { return x != y; }
template <class T> D u8 lt(T x, T y) { return x < y; }
template <class T> D u8 le(T x, T y) { return x <= y; }
template <class T> D T select(u8 c, T x, T y) { return c != 0 ? x : y; }

D f32 fma(f32 x, f32 y, f32 z) { return ::fmaf(x, y, z); }
D f64 fma(f64 x, f64 y, f64 z) { return ::fma(x, y, z); }
D f32 copysign(f32 x, f32 y) { return ::copysignf(x, y); }
D f64 copysign(f64 x, f64 y) { return ::copysign(x, y); }
D f32 sqrt(f32 x) { return ::sqrtf(x); }
D f64 sqrt(f64 x) { return ::sqrt(x); }
D f32 floor(f32 x) { return ::floorf(x); }
D f64 floor(f64 x) { return ::floor(x); }
D f32 ceil(f32 x) { return ::ceilf(x); }
D f64 ceil(f64 x) { return ::ceil(x); }
D f32 trunc(f32 x) { return ::truncf(x); }
D f64 trunc(f64 x) { return ::trunc(x); }
// Half to even.
D f32 round(f32 x) { return ::rintf(x); }
D f64 round(f64 x) { return ::rint(x); }
D f32 round_f16(f32 x) { return half_value(half_bits(x)); }

// Casts. Where an integer cannot hold a number it is what the GPU gives: the nearest one it holds.
template <class T> D u8 to_bool(T x) { return x != 0; }
template <class T> D u8 to_u8(T x) { return (u8)x; }
template <class T> D i32 to_i32(T x) { return (i32)x; }
template <class T> D i64 to_i64(T x) { return (i64)x; }
template <class T> D f32 to_f32(T x) { return (f32)x; }
template <class T> D f64 to_f64(T x) { return (f64)x; }
D i32 to_i32(f32 x) { return __float2int_rz(x); }
D i32 to_i32(f64 x) { return __double2int_rz(x); }
D i64 to_i64(f32 x) { return __float2ll_rz(x); }
D i64 to_i64(f64 x) { return __double2ll_rz(x); }
D u8 to_u8(f32 x) { return (u8)to_i32(x); }
D u8 to_u8(f64 x) { return (u8)to_i32(x); }

// In double precision these are the platform's.
D f64 exp(f64 x) { return ::exp(x); }
D f64 exp2(f64 x) { return ::exp2(x); }
D f64 expm1(f64 x) { return ::expm1(x); }
D f64 log(f64 x) { return ::log(x); }
D f64 log2(f64 x) { return ::log2(x); }
D f64 log10(f64 x) { return ::log10(x); }
D f64 log1p(f64 x) { return ::log1p(x); }
D f64 sin(f64 x) { return ::sin(x); }
D f64 cos(f64 x) { return ::cos(x); }
D f64 tan(f64 x) { return ::tan(x); }
D f64 sinh(f64 x) { return ::sinh(x); }
D f64 cosh(f64 x) { return ::cosh(x); }
D f64 tanh(f64 x) { return ::tanh(x); }
D f64 fmod(f64 x, f64 y) { return ::fmod(x, y); }

// Powers, with the short cuts of libtorch.
D f32 any_pow(f32 x, f32 y);
D f64 any_pow(f64 x, f64 y) { return ::pow(x, y); }
template <class T> D T pow(T x, T y) {
  if (y == (T)0) return (T)1;
  if (y == (T)1) return x;
  if (y == (T)2) return x * x;
  if (y == (T)3) return x * x * x;
  if (y == (T)0.5) return sqrt(x);
  if (y == (T)-0.5) return (T)1 / sqrt(x);
  if (y == (T)-1) return (T)1 / x;
  if (y == (T)-2) return (T)1 / (x * x);
  return any_pow(x, y);
}
