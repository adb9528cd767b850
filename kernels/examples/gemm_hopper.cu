// Hopper GEMM: C[M,N] = A[M,K] B[N,K]^T, bf16 or fp8 (e4m3), float accumulation and result, one 128x128 tile a CTA, sm_90a.
//
// Warp-specialised: one thread of warpgroup 0 issues TMA copies into a ring of STAGES stages; warpgroups 1 and 2 each
// multiply 64 rows with wgmma. full[s] completes when the bytes of a stage are there, empty[s] when both consumers are
// done with it. Roles 0 producer, 1 and 2 consumers; events as in gemm_hopper.json.
//
// M and N multiples of 128, rows of A and B multiples of 128 bytes. Grid (N / 128, M / 128), 384 threads, dynamic shared
// memory STAGES * 32768 + 1024 bytes. Tensor maps: boxes of 128 bytes x 128 rows, 128-byte swizzle.
#include "wsformat_stamp.cuh"

#ifndef STAGES
#define STAGES 4
#endif
#ifndef SPIN  // cycles that the producer wastes before each copy: a teaching case
#define SPIN 0
#endif
#ifndef IN_FLIGHT  // 1: the consumers leave one group of wgmma running while they wait for the next stage
#define IN_FLIGHT 0
#endif
#ifndef FP8
#define FP8 0
#endif
#if FP8
#define HOPPER_E4M3
#endif
#include "examples/hopper.cuh"

constexpr unsigned TILE = 128, ROW_BYTES = 128, TILE_K = FP8 ? 128 : 64;
constexpr unsigned OPERAND_BYTES = TILE * ROW_BYTES;
constexpr unsigned STAGE_BYTES = 2 * OPERAND_BYTES;
constexpr unsigned WARPGROUP_ROWS = 64;

template <int Role>
__device__ __forceinline__ void consume(unsigned tiles, unsigned full, unsigned empty, unsigned trips, float* c,
                                        unsigned n WSF_INNER_PARAM) {
    const unsigned thread = threadIdx.x % 128;
    const unsigned long long a0 = matrix(tiles + (Role - 1) * WARPGROUP_ROWS * ROW_BYTES);
    const unsigned long long b0 = matrix(tiles + OPERAND_BYTES);
    float d[64];
#pragma unroll
    for (int i = 0; i < 64; ++i) d[i] = 0;
    unsigned stage = 0, phase = 0;
#if IN_FLIGHT
    unsigned before = empty;  // the barrier to arrive on once the group in flight is done
#endif
#pragma unroll 1
    for (unsigned k = 0; k < trips; ++k) {
        WSF_HOLD(Role, 0, k);
        barrier_wait(full + stage * 8, phase);
        WSF_HOLD(Role, 1, k);
        const unsigned long long a = a0 + stage * (STAGE_BYTES >> 4), b = b0 + stage * (STAGE_BYTES >> 4);
        WSF_HOLD(Role, 2, k);
        wgmma_begin();
#pragma unroll
        for (unsigned i = 0; i < ROW_BYTES / 32; ++i) wgmma_64x128(d, a + 2 * i, b + 2 * i);
        wgmma_commit();
        // The tensor cores are at work now: what this and the end of the last iteration read is stored meanwhile.
        WSF_STORE(Role, 0x18, k - 1 - IN_FLIGHT);
        WSF_STORE(Role, 0x07, k);
        wgmma_wait<IN_FLIGHT>();
        WSF_HOLD(Role, 3, k - IN_FLIGHT);
#if IN_FLIGHT
        if (thread == 0 && k > 0) barrier_arrive(before);
        before = empty + stage * 8;
#else
        if (thread == 0) barrier_arrive(empty + stage * 8);
#endif
        WSF_HOLD(Role, 4, k - IN_FLIGHT);
        if (++stage == STAGES) {
            stage = 0;
            phase ^= 1;
        }
    }
#if IN_FLIGHT
    WSF_STORE(Role, 0x18, trips - 2);
    wgmma_wait<0>();
    WSF_HOLD(Role, 3, trips - 1);
    WSF_HOLD(Role, 4, trips - 1);
#endif
    WSF_STORE(Role, 0x18, trips - 1);
    WSF_ONCE(Role, 5);
    const unsigned long long row = blockIdx.y * TILE + (Role - 1) * WARPGROUP_ROWS;
    store_64x128(d, c + row * n + blockIdx.x * TILE, n);
    WSF_ONCE(Role, 6);
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
        barriers_ready();
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
