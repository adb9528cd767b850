// Hopper attention forward, bf16, head dim 128: O = softmax(Q K^T * scale) V, float sums and result, no mask, sm_90a.
//
// Warp-specialised: one thread of warpgroup 0 issues TMA copies of K and V into rings of STAGES stages; warpgroups 1 and 2
// each own 64 query rows and do, for every tile of 128 keys: S = Q K^T, softmax on S in registers, O += P V. Roles 0
// producer, 1 and 2 consumers; events as in attention_hopper.json.
//
// Q, K, V are [heads * length][128], row-major. Grid (query length / 128, heads), 384 threads, dynamic shared memory
// (1 + 2 * STAGES) * 32768 + 1024 bytes. Tensor maps: box 64 x 128, 128-byte swizzle. `trips` tiles of keys are used.
#include "examples/hopper.cuh"
#include "wsformat_stamp.cuh"

#ifndef STAGES
#define STAGES 2
#endif

constexpr unsigned TILE = 128, DIM = 128, HALF = 64;  // a row of 64 bf16 is what the swizzle spans
constexpr unsigned HALF_BYTES = TILE * HALF * 2, TILE_BYTES = 2 * HALF_BYTES;
constexpr unsigned ROWS = 64;  // of a warpgroup

// A tile of 128 rows in two halves of 64 columns.
__device__ __forceinline__ void copy_rows(unsigned to, const TensorMap& map, unsigned barrier, unsigned row) {
    barrier_expect(barrier, TILE_BYTES);
#pragma unroll
    for (unsigned half = 0; half < 2; ++half)
        copy_tile(to + half * HALF_BYTES, map, barrier, half * HALF, static_cast<int>(row));
}

// S (+)= Q K^T: both operands in shared memory, summed over their columns.
__device__ __forceinline__ void wgmma_shared(float (&d)[64], unsigned long long a, unsigned long long b, int add) {
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %66, 0;\n\t" HOPPER_WGMMA("m64n128k16.f32.bf16.bf16")
                 "%64, %65, p, 1, 1, 0, 0;\n\t}" : HOPPER_D64 : "l"(a), "l"(b), "r"(add));
}

// O += P V: P in registers, V summed over its rows.
__device__ __forceinline__ void wgmma_registers(float (&d)[64], const unsigned (&a)[4], unsigned long long b) {
    asm volatile(HOPPER_WGMMA("m64n128k16.f32.bf16.bf16") "{%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
                 : HOPPER_D64 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

__device__ __forceinline__ unsigned pack(float low, float high) {
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

__device__ __forceinline__ float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Over the four lanes that hold one row.
__device__ __forceinline__ float row_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
    return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}

__device__ __forceinline__ float row_sum(float x) {
    x += __shfl_xor_sync(~0u, x, 1);
    return x + __shfl_xor_sync(~0u, x, 2);
}

struct Barriers {
    unsigned q_full, k_full, k_empty, v_full, v_empty;
};

template <int Role>
__device__ __forceinline__ void consume(unsigned q, unsigned k, unsigned v, const Barriers& at, unsigned trips,
                                        float scale, float* out WSF_INNER_PARAM) {
    const unsigned thread = threadIdx.x % 128;
    const unsigned long long q0 = matrix(q + (Role - 1) * ROWS * HALF * 2);
    const unsigned long long k0 = matrix(k), v0 = matrix(v, HALF_BYTES);
    float o[64], s[64], highest[2] = {-1e30f, -1e30f}, sum[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < 64; ++i) o[i] = 0;
    WSF_ONCE(Role, 9);
    barrier_wait(at.q_full, 0);
    WSF_ONCE(Role, 10);
    unsigned stage = 0, phase = 0;
#pragma unroll 1
    for (unsigned n = 0; n < trips; ++n) {
        WSF_HOLD(Role, 0, n);
        barrier_wait(at.k_full + stage * 8, phase);
        WSF_HOLD(Role, 1, n);
        wgmma_begin();
#pragma unroll
        for (unsigned i = 0; i < DIM / 16; ++i) {
            const unsigned step = (i / 4 * HALF_BYTES + i % 4 * 32) >> 4;
            wgmma_shared(s, q0 + step, k0 + stage * (TILE_BYTES >> 4) + step, i > 0);
        }
        wgmma_commit();
        WSF_STORE(Role, 0x140, n - 1);
        WSF_STORE(Role, 0x003, n);
        wgmma_wait<0>();
        WSF_HOLD(Role, 2, n);
        if (thread == 0) barrier_arrive(at.k_empty + stage * 8);
        WSF_HOLD(Role, 7, n);
        unsigned p[8][4];
        {
            float top[2] = {highest[0], highest[1]};
#pragma unroll
            for (int i = 0; i < 64; ++i) top[i / 2 % 2] = fmaxf(top[i / 2 % 2], s[i]);
            float shift[2], shrink[2];
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                top[r] = row_max(top[r]);
                shift[r] = top[r] * scale;
                shrink[r] = exp2_fast(highest[r] * scale - shift[r]);
                highest[r] = top[r];
                sum[r] *= shrink[r];
            }
#pragma unroll
            for (int i = 0; i < 64; ++i) {
                s[i] = exp2_fast(s[i] * scale - shift[i / 2 % 2]);
                sum[i / 2 % 2] += s[i];
                o[i] *= shrink[i / 2 % 2];
            }
#pragma unroll
            for (int i = 0; i < 32; ++i) p[i / 4][i % 4] = pack(s[2 * i], s[2 * i + 1]);
        }
        WSF_HOLD(Role, 3, n);
        barrier_wait(at.v_full + stage * 8, phase);
        WSF_HOLD(Role, 5, n);
        wgmma_begin();
#pragma unroll
        for (unsigned i = 0; i < TILE / 16; ++i)
            wgmma_registers(o, p[i], v0 + stage * (TILE_BYTES >> 4) + i * (16 * HALF * 2 >> 4));
        wgmma_commit();
        WSF_STORE(Role, 0x0ac, n);
        wgmma_wait<0>();
        WSF_HOLD(Role, 6, n);
        if (thread == 0) barrier_arrive(at.v_empty + stage * 8);
        WSF_HOLD(Role, 8, n);
        if (++stage == STAGES) {
            stage = 0;
            phase ^= 1;
        }
    }
    WSF_STORE(Role, 0x140, trips - 1);
    WSF_ONCE(Role, 11);
    const float inverse[2] = {1 / row_sum(sum[0]), 1 / row_sum(sum[1])};
    store_64x128(o, out + (Role - 1) * ROWS * DIM, DIM, inverse[0], inverse[1]);
    WSF_ONCE(Role, 12);
}

extern "C" __global__ void __launch_bounds__(384, 1)
    attention_hopper(const __grid_constant__ TensorMap map_q, const __grid_constant__ TensorMap map_k,
                     const __grid_constant__ TensorMap map_v, float* out, float scale, unsigned keys,
                     unsigned trips WSF_PARAM) {
    extern __shared__ unsigned char dynamic[];
    __shared__ alignas(8) unsigned long long barriers[1 + 4 * STAGES];
    const unsigned q = (shared_address(dynamic) + 1023) / 1024 * 1024;
    const unsigned k = q + TILE_BYTES, v = k + STAGES * TILE_BYTES;
    const unsigned first = shared_address(barriers);
    const Barriers at = {first, first + 8, first + 8 * (1 + STAGES), first + 8 * (1 + 2 * STAGES),
                         first + 8 * (1 + 3 * STAGES)};
    WSF_BEGIN();
    WSF_WRITER(threadIdx.x % 128 == 0);
    if (threadIdx.x == 0) {
        barrier_init(at.q_full, 1);
        for (unsigned s = 0; s < STAGES; ++s) {
            barrier_init(at.k_full + s * 8, 1);
            barrier_init(at.v_full + s * 8, 1);
            barrier_init(at.k_empty + s * 8, 2);
            barrier_init(at.v_empty + s * 8, 2);
        }
        barriers_ready();
    }
    __syncthreads();
    const unsigned warpgroup = threadIdx.x / 128;
    const unsigned query = (blockIdx.y * gridDim.x + blockIdx.x) * TILE;
    if (warpgroup == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) {
            copy_rows(q, map_q, at.q_full, query);
            WSF_ONCE(0, 5);
            unsigned stage = 0, phase = 1;
#pragma unroll 1
            for (unsigned n = 0; n < trips; ++n) {
                const unsigned row = blockIdx.y * keys + n * TILE;
                WSF_HOLD(0, 0, n);
                barrier_wait(at.k_empty + stage * 8, phase);
                WSF_HOLD(0, 1, n);
                copy_rows(k + stage * TILE_BYTES, map_k, at.k_full + stage * 8, row);
                WSF_HOLD(0, 2, n);
                barrier_wait(at.v_empty + stage * 8, phase);
                WSF_HOLD(0, 3, n);
                copy_rows(v + stage * TILE_BYTES, map_v, at.v_full + stage * 8, row);
                WSF_HOLD(0, 4, n);
                WSF_STORE(0, 0x1f, n);
                if (++stage == STAGES) {
                    stage = 0;
                    phase ^= 1;
                }
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        float* const mine = out + static_cast<unsigned long long>(query) * DIM;
        if (warpgroup == 1) {
            consume<1>(q, k, v, at, trips, scale, mine WSF_INNER_ARG);
        } else {
            consume<2>(q, k, v, at, trips, scale, mine WSF_INNER_ARG);
        }
    }
    WSF_END();
}
