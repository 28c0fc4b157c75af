// Reductions. Each thread joins some elements of a row in their own type; what the threads of a row have is joined in
// a type that loses nothing, always in the same order, so that results depend on sizes alone.

struct Sum {
  template <class T> D T start(T) { return 0; }
  template <class T> D T join(T so_far, T x) { return add(so_far, x); }
  template <class T> D T widen(T x) { return x; }
  D f64 widen(f32 x) { return x; }
};

D f32 infinity(f32) { return f32_of(0x7f800000u); }
D f64 infinity(f64) { return f64_of(0x7ff0000000000000ull); }

struct Largest {
  template <class T> D T start(T x) { return -infinity(x); }
  template <class T> D T join(T so_far, T x) { return x > so_far || x != x ? x : so_far; }
  template <class T> D T widen(T x) { return x; }
};

struct Smallest {
  template <class T> D T start(T x) { return infinity(x); }
  template <class T> D T join(T so_far, T x) { return x < so_far || x != x ? x : so_far; }
  template <class T> D T widen(T x) { return x; }
};

D u64 word_of(f32 x) { return bits_of(x); }
D u64 word_of(f64 x) { return (u64)__double_as_longlong(x); }
D u64 word_of(i64 x) { return (u64)x; }

// The threads that share rows: how many rows a block has at a time, which of them this thread's is, and the elements
// this thread takes, the first and each `step` after it. All threads of a block reach a `reduce` together.

// A warp a row.
struct Warp {
  D int rows() { return (int)blockDim.x / 32; }
  D int row() { return (int)threadIdx.x / 32; }
  D int first() { return (int)threadIdx.x % 32; }
  D int step() { return 32; }

  template <class R, class T> D T reduce(T x, u64*) {
#pragma unroll
    for (int lanes = 1; lanes < 32; lanes *= 2) {
      const T other = __shfl_xor_sync(~0u, x, lanes);
      // The lower lane's comes first on both sides, so that all lanes have the same bits.
      x = threadIdx.x & lanes ? R::join(other, x) : R::join(x, other);
    }
    return x;
  }
};

// A block a row.
struct Block {
  D int rows() { return 1; }
  D int row() { return 0; }
  D int first() { return (int)threadIdx.x; }
  D int step() { return (int)blockDim.x; }

  template <class R, class T> D T reduce(T x, u64* shared) {
    T* const warps = (T*)shared;
    const int lane = (int)threadIdx.x % 32;
    x = Warp::reduce<R>(x, shared);
    __syncthreads();  // What the last reduction left has been read.
    if (lane == 0) warps[threadIdx.x / 32] = x;
    __syncthreads();
    x = lane < (int)blockDim.x / 32 ? warps[lane] : R::start(x);
    return Warp::reduce<R>(x, shared);
  }
};

// Rows whose elements lie beside those of the next row: a lane a row, and the warps of a block share its elements.
struct Columns {
  D int rows() { return 32; }
  D int row() { return (int)threadIdx.x % 32; }
  D int first() { return (int)threadIdx.x / 32; }
  D int step() { return (int)blockDim.x / 32; }

  template <class R, class T> D T reduce(T x, u64* shared) {
    T* const parts = (T*)shared;
    __syncthreads();  // What the last reduction left has been read.
    parts[threadIdx.x] = x;
    __syncthreads();
    x = parts[row()];
    for (int warp = 1; warp < step(); warp++) x = R::join(x, parts[row() + 32 * warp]);
    return x;
  }
};
