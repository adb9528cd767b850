// Hopper bf16 GEMM: C[M,N] = A[M,K] B[N,K]^T, float accumulation and result, one 128x128 tile a CTA, sm_90a.
//
// Warp-specialised: one thread of warpgroup 0 issues TMA copies into a ring of STAGES stages; warpgroups 1 and 2 each
// multiply 64 rows with wgmma. full[s] completes when the bytes of a stage are there, empty[s] when both consumers are
// done with it. Roles 0 producer, 1 and 2 consumers; events as in gemm_hopper.json.
//
// M and N multiples of 128, K a multiple of 64. Grid (N / 128, M / 128), 384 threads, dynamic shared memory
// STAGES * 32768 + 1024 bytes. Tensor maps: box 64 x 128, 128-byte swizzle.
#include "wsformat_stamp.cuh"

#ifndef STAGES
#define STAGES 4
#endif
#ifndef SPIN  // cycles that the producer wastes before each copy: a teaching case
#define SPIN 0
#endif

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

constexpr unsigned TILE = 128, TILE_K = 64;
constexpr unsigned OPERAND_BYTES = TILE * TILE_K * 2;
constexpr unsigned STAGE_BYTES = 2 * OPERAND_BYTES;
constexpr unsigned WARPGROUP_ROWS = 64;

__device__ __forceinline__ unsigned shared_address(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void barrier_init(unsigned barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
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

// Matrix descriptor: K-major, rows of 128 bytes with 128-byte swizzle, groups of 8 rows 1024 bytes apart.
__device__ __forceinline__ unsigned long long matrix(unsigned address) {
    return (1ull << 62) | (static_cast<unsigned long long>(1024 >> 4) << 32) | (1ull << 16) | ((address & 0x3FFFF) >> 4);
}

#define D8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
              "+f"(d[i + 6]), "+f"(d[i + 7])

__device__ __forceinline__ void wgmma_64x128x16(float (&d)[64], unsigned long long a, unsigned long long b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "%64, %65, 1, 1, 1, 0, 0;"
        : D8(0), D8(8), D8(16), D8(24), D8(32), D8(40), D8(48), D8(56)
        : "l"(a), "l"(b));
}

template <int Role>
__device__ __forceinline__ void consume(unsigned tiles, unsigned full, unsigned empty, unsigned trips, float* c,
                                        unsigned n WSF_INNER_PARAM) {
    const unsigned thread = threadIdx.x % 128;
    const unsigned long long a0 = matrix(tiles + (Role - 1) * WARPGROUP_ROWS * TILE_K * 2);
    const unsigned long long b0 = matrix(tiles + OPERAND_BYTES);
    float d[64];
#pragma unroll
    for (int i = 0; i < 64; ++i) d[i] = 0;
    unsigned stage = 0, phase = 0;
#pragma unroll 1
    for (unsigned k = 0; k < trips; ++k) {
        WSF_HOLD(Role, 0, k);
        barrier_wait(full + stage * 8, phase);
        WSF_HOLD(Role, 1, k);
        const unsigned long long a = a0 + stage * (STAGE_BYTES >> 4), b = b0 + stage * (STAGE_BYTES >> 4);
        WSF_HOLD(Role, 2, k);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (unsigned i = 0; i < TILE_K / 16; ++i) wgmma_64x128x16(d, a + 2 * i, b + 2 * i);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        // The tensor cores are at work now: what this and the end of the last iteration read is stored meanwhile.
        WSF_STORE(Role, 0x18, k - 1);
        WSF_STORE(Role, 0x07, k);
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        WSF_HOLD(Role, 3, k);
        if (thread == 0) barrier_arrive(empty + stage * 8);
        WSF_HOLD(Role, 4, k);
        if (++stage == STAGES) {
            stage = 0;
            phase ^= 1;
        }
    }
    WSF_STORE(Role, 0x18, trips - 1);
    WSF_STAMP(Role, 5, 0);
    const unsigned row = blockIdx.y * TILE + (Role - 1) * WARPGROUP_ROWS + thread / 32 * 16 + thread % 32 / 4;
    const unsigned column = blockIdx.x * TILE + thread % 4 * 2;
#pragma unroll
    for (unsigned j = 0; j < 16; ++j) {
        float2* const upper = reinterpret_cast<float2*>(c + static_cast<unsigned long long>(row) * n + column + 8 * j);
        *upper = make_float2(d[4 * j], d[4 * j + 1]);
        upper[4ull * n] = make_float2(d[4 * j + 2], d[4 * j + 3]);  // 8 rows further
    }
    WSF_STAMP(Role, 6, 0);
}

extern "C" __global__ void __launch_bounds__(384, 1)
    gemm_hopper(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b, float* c, unsigned n,
                unsigned trips WSF_PARAM) {
    extern __shared__ unsigned char dynamic[];
    __shared__ alignas(8) unsigned long long barriers[2 * STAGES];
    const unsigned tiles = (shared_address(dynamic) + 1023) / 1024 * 1024;
    const unsigned full = shared_address(barriers), empty = full + STAGES * 8;
    WSF_BEGIN();
    WSF_WRITER(threadIdx.x % 128 == 0);
    if (threadIdx.x == 0) {
        for (unsigned s = 0; s < STAGES; ++s) {
            barrier_init(full + s * 8, 1);
            barrier_init(empty + s * 8, 2);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
    }
    __syncthreads();
    const unsigned warpgroup = threadIdx.x / 128;
    if (warpgroup == 0) {
        if (threadIdx.x == 0) {
            unsigned stage = 0, phase = 1;
#pragma unroll 1
            for (unsigned k = 0; k < trips; ++k) {
                WSF_HOLD(0, 0, k);
                barrier_wait(empty + stage * 8, phase);
                WSF_HOLD(0, 1, k);
#if SPIN
                const long long start = clock64();
                while (clock64() - start < SPIN) {
                }
#endif
                WSF_HOLD(0, 2, k);
                const unsigned to = tiles + stage * STAGE_BYTES;
                barrier_expect(full + stage * 8, STAGE_BYTES);
                copy_tile(to, map_a, full + stage * 8, static_cast<int>(k * TILE_K), static_cast<int>(blockIdx.y * TILE));
                copy_tile(to + OPERAND_BYTES, map_b, full + stage * 8, static_cast<int>(k * TILE_K),
                          static_cast<int>(blockIdx.x * TILE));
                WSF_HOLD(0, 3, k);
                WSF_STORE(0, 0xf, k);
                if (++stage == STAGES) {
                    stage = 0;
                    phase ^= 1;
                }
            }
        }
    } else if (warpgroup == 1) {
        consume<1>(tiles, full, empty, trips, c, n WSF_INNER_ARG);
    } else {
        consume<2>(tiles, full, empty, trips, c, n WSF_INNER_ARG);
    }
    WSF_END();
}
