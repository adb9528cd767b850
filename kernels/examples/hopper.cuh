// What the example kernels for Hopper share: mbarriers, TMA copies, matrix descriptors and wgmma, as inline PTX.
#pragma once

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

__device__ __forceinline__ unsigned shared_address(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void barrier_init(unsigned barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Makes initialised barriers visible to TMA, and to the other CTAs of a cluster.
__device__ __forceinline__ void barriers_ready() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
}

__device__ __forceinline__ void barrier_wait(unsigned barrier, unsigned parity) {
    asm volatile(
        "{\n\t.reg .pred p;\n"
        "again:\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n\t@!p bra again;\n\t}"
        ::"r"(barrier), "r"(parity) : "memory");
}

__device__ __forceinline__ void barrier_arrive(unsigned barrier) {
    asm volatile("{\n\t.reg .b64 state;\n\tmbarrier.arrive.shared::cta.b64 state, [%0];\n\t}" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void barrier_expect(unsigned barrier, unsigned bytes) {
    asm volatile("{\n\t.reg .b64 state;\n\tmbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;\n\t}"
                 ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void copy_tile(unsigned to, const TensorMap& map, unsigned barrier, int x, int y) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
        ::"r"(to), "l"(&map), "r"(barrier), "r"(x), "r"(y) : "memory");
}

// Matrix descriptor: rows of 128 bytes with 128-byte swizzle, groups of 8 rows 1024 bytes apart. `halves` is the distance
// of the next 128 bytes of a row, used where the columns are not the dimension that is summed over.
__device__ __forceinline__ unsigned long long matrix(unsigned address, unsigned halves = 16) {
    return (1ull << 62) | (static_cast<unsigned long long>(1024 >> 4) << 32)
           | (static_cast<unsigned long long>(halves >> 4) << 16) | ((address & 0x3FFFF) >> 4);
}

__device__ __forceinline__ void wgmma_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Until no more than so many groups are running.
template <int Running> __device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Running) : "memory");
}

#define HOPPER_D8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
                     "+f"(d[i + 6]), "+f"(d[i + 7])
// The 64 floats of a thread, for 64 x 128 results of a warpgroup.
#define HOPPER_D64 HOPPER_D8(0), HOPPER_D8(8), HOPPER_D8(16), HOPPER_D8(24), HOPPER_D8(32), HOPPER_D8(40), \
                   HOPPER_D8(48), HOPPER_D8(56)
#define HOPPER_WGMMA(shape_and_types)                                                  \
    "wgmma.mma_async.sync.aligned." shape_and_types " "                                \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "          \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "

// D += A B^T, both in shared memory and summed over their columns: 64 x 128, 32 bytes of each row.
#ifdef HOPPER_E4M3
__device__ __forceinline__ void wgmma_64x128(float (&d)[64], unsigned long long a, unsigned long long b) {
    asm volatile(HOPPER_WGMMA("m64n128k32.f32.e4m3.e4m3") "%64, %65, 1, 1, 1;" : HOPPER_D64 : "l"(a), "l"(b));
}
#else
__device__ __forceinline__ void wgmma_64x128(float (&d)[64], unsigned long long a, unsigned long long b) {
    asm volatile(HOPPER_WGMMA("m64n128k16.f32.bf16.bf16") "%64, %65, 1, 1, 1, 0, 0;" : HOPPER_D64 : "l"(a), "l"(b));
}
#endif

// A warpgroup's 64 x 128 results to rows of float, each scaled; `out` is the corner of the 64 rows.
__device__ __forceinline__ void store_64x128(const float (&d)[64], float* out, unsigned long long stride,
                                             float upper_scale = 1, float lower_scale = 1) {
    const unsigned thread = threadIdx.x % 128;
    float* const mine = out + (thread / 32 * 16 + thread % 32 / 4) * stride + thread % 4 * 2;
#pragma unroll
    for (unsigned j = 0; j < 16; ++j) {
        float2* const upper = reinterpret_cast<float2*>(mine + 8 * j);
        *upper = make_float2(d[4 * j] * upper_scale, d[4 * j + 1] * upper_scale);
        upper[4 * stride] = make_float2(d[4 * j + 2] * lower_scale, d[4 * j + 3] * lower_scale);  // 8 rows further
    }
}
