// wsformat_stamp.cuh: time stamps inside a warp-specialised CUDA kernel, in the slot layout of wsformat.
//
// Header only, needs nothing but the compiler (nvcc or NVRTC, C++17, sm_70 or newer). Off is the default, and off means
// off: the kernel then compiles to the same machine code as a source without these lines, without the parameter too.
//
//     #include "wsformat_stamp.cuh"
//     __global__ void kernel(const float* a, float* b WSF_PARAM) {
//         WSF_BEGIN();                                  // all threads of the CTA
//         WSF_WRITER(threadIdx.x % 128 == 0);           // the one thread of each role that writes
//         for (unsigned k = 0; k < n; ++k) {
//             WSF_STAMP(0, 2, k);                       // role, event: constants. Iteration: any unsigned value
//             ...
//         }
//         WSF_ONCE(0, 5);                               // a stamp outside of loops
//         WSF_END();                                    // all threads of the CTA
//     }
//
// Build with -DWSF_STAMPS=1 and pass one wsf::Args more. Kernels that prefer a template to a macro take the arguments as
// a pack and use the class directly; wsf::Off is its "nothing":
//
//     template <class Config, class... Args> __global__ void kernel(float* b, Args... args) {
//         wsf::Recorder<Config> recorder(args...);
//         recorder.begin(); recorder.writer(threadIdx.x == 0); recorder.template stamp<0, 2>(k); recorder.end();
//     }
//
// What a launch records is fixed when it is compiled, because a test at run time costs even when it says no. Settings,
// as macros here and as members of a class derived from wsf::Defaults:
//
//     WSF_ROLES, WSF_EVENTS, WSF_ITERATIONS   size of the buffer of a CTA: slot = (role * events + event) * iterations
//                                             + recorded iteration; 3, 16, 64
//     WSF_EVENT_MASK                          the pass: bit e is set when this build makes the stamps of event e; all.
//                                             May depend on `role`: (role == 0 ? 0xb : 0x13). With 0 a build writes
//                                             start and end records only: the clean launch to compare with
//     WSF_FROM, WSF_STRIDE                    the window: iterations FROM, FROM + STRIDE, ...; 0, 1. WSF_ITERATIONS is
//                                             its count. A power of two as stride costs least
//     WSF_SINK                                0 global: a store to the buffer. 1 shared: to shared memory, copied by
//                                             WSF_END; disturbs least. 2 registers: for loops that are unrolled whole
//     WSF_CLOCK                               0 cycles, 32 bits (the low half of clock64). 1 cycles, 64 bits.
//                                             2 nanoseconds of the device's timer, 64 bits, in coarse steps
//     WSF_DEFER                               1: WSF_HOLD only reads the clock and WSF_STORE stores; 0: WSF_HOLD stores
//                                             at once, like WSF_STAMP; 1
//     WSF_BRANCH                              1: a branch around the store, as stamps are usually written. To compare
//     WSF_SHADOW                              1: stamps that this pass does not make still read the clock, so that a
//                                             pass keeps the timing of a launch with all stamps; 0
//
// In a tight loop, store where the warp waits anyway: WSF_HOLD(role, event, k) reads the clock into a register, and
// WSF_STORE(role, events, k), events a mask, stores what is held, as iteration k. Between the issue of asynchronous work
// and the wait for it the stores cost nothing; held values of the iteration before can be stored there as k - 1 (nothing
// is stored for iteration -1), and once more after the loop.
//
// A wait on bar.sync or __syncthreads() needs one line more, between the barrier and its stamp: WSF_PASSED(role, event).
// The warp issues what follows such a barrier, a clock read too, before it blocks there: without the line all waits look
// some 20 cycles long and what they cost appears as work behind them. An mbarrier's try_wait needs no such thing.
//
// Clocks of different SMs are put on one axis by readings of both clocks. Start and end of a CTA are read always;
// WSF_ANCHOR(i) reads once more in between, as anchor i (from 0), where the launch's wsf::Args has room for it. It
// branches: call it from a thread that works alone, such as a TMA producer at the start of a tile.
//
// A slot that holds 0 was not written. Iterations beyond the buffer are dropped, and the reader sees that they may have
// been: give the trip count on import.
#pragma once

#ifndef WSF_STAMPS
#define WSF_STAMPS 0
#endif
#ifndef WSF_ROLES
#define WSF_ROLES 3
#endif
#ifndef WSF_EVENTS
#define WSF_EVENTS 16
#endif
#ifndef WSF_ITERATIONS
#define WSF_ITERATIONS 64
#endif
#ifndef WSF_EVENT_MASK
#define WSF_EVENT_MASK ~0ull
#endif
#ifndef WSF_FROM
#define WSF_FROM 0
#endif
#ifndef WSF_STRIDE
#define WSF_STRIDE 1
#endif
#ifndef WSF_SINK
#define WSF_SINK 1
#endif
#ifndef WSF_CLOCK
#define WSF_CLOCK 0
#endif
#ifndef WSF_DEFER
#define WSF_DEFER 1
#endif
#ifndef WSF_BRANCH
#define WSF_BRANCH 0
#endif
#ifndef WSF_SHADOW
#define WSF_SHADOW 0
#endif

namespace wsf {

using Word = unsigned int;
using Long = unsigned long long;
using Half = unsigned short;

enum class Sink { global_memory, shared_memory, registers };
enum class Clock { cycles32, cycles64, nanoseconds };

// One record a CTA, 40 bytes: both clocks at its start and at its end, and the SM that it ran on. The timer is read
// between two readings of the SM's clock; how far these lie apart bounds when. At the start the second one is kept, at
// the end the first; the distance, in cycles, is 65535 where it is more, and 0 where it was not taken.
struct Record {
    Long globaltimer_start, clock_start, globaltimer_end, clock_end;
    Word sm;
    Half distance_start, distance_end;
};
static_assert(sizeof(Record) == 40, "the readers expect 40 bytes");

// One more reading in a CTA, 24 bytes: the clock, the timer, and the cycles from that clock to the one after the timer.
// Zero where none was made.
struct Anchor {
    Long globaltimer, clock;
    Word cta, distance;
};
static_assert(sizeof(Anchor) == 24, "the readers expect 24 bytes");

// The kernel's parameter. CTAs first_cta, first_cta + cta_step, ... are recorded, `ctas` of them, numbered
// x + grid_x * (y + grid_y * z); one CTA: (slots, records, n, 1, 1), all: (slots, records, 0, 1, number of CTAs).
// slots: ctas * roles * events * iterations words, zero before the launch; records: one a recorded CTA, and behind
// them `anchors` anchors a CTA, zero before the launch.
struct Args {
    void* slots;
    Record* records;
    Word first_cta, cta_step, ctas, anchors;
};

// Templates only because the members of a plain class become variables of the device, used or not.
template <bool Enabled> struct Settings {
    static constexpr bool enabled = Enabled;
    static constexpr int roles = WSF_ROLES, events = WSF_EVENTS, iterations = WSF_ITERATIONS;
    static __host__ __device__ constexpr Long event_mask([[maybe_unused]] int role) { return WSF_EVENT_MASK; }
    static constexpr Word from = WSF_FROM, stride = WSF_STRIDE;
    static constexpr Sink sink = static_cast<Sink>(WSF_SINK);
    static constexpr Clock clock = static_cast<Clock>(WSF_CLOCK);
    static constexpr bool defer = WSF_DEFER, branch = WSF_BRANCH, shadow = WSF_SHADOW;
};

using Defaults = Settings<true>;
using Off = Settings<false>;

__device__ __forceinline__ Long globaltimer() {
    Long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
    return t;
}

__device__ __forceinline__ Long clock64() {
    Long t;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(t)::"memory");
    return t;
}

// clock64 once the timer's value is there: the read of the timer takes its time, and a clock read that does not need the
// value would not wait for it.
__device__ __forceinline__ Long clock64_after(Long timer) {
    Long t;
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u64 p, %1, 0;\n\tmov.u64 %0, 0;\n\t@p mov.u64 %0, %%clock64;\n\t}"
                 : "=l"(t) : "l"(timer) : "memory");
    return t;
}

__device__ __forceinline__ Word this_cta() { return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z); }

__device__ __forceinline__ Word this_thread() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

template <bool Wide> struct Slot { using type = Word; };
template <> struct Slot<true> { using type = Long; };

template <class Config, bool Enabled = Config::enabled> class Recorder;

// Off: no members, no code.
template <class Config> class Recorder<Config, false> {
  public:
    template <class... Args> __device__ __forceinline__ explicit Recorder(Args...) {}
    __device__ __forceinline__ void begin() {}
    __device__ __forceinline__ void writer(bool) {}
    template <int Role, int Event> __device__ __forceinline__ void stamp(Word) {}
    template <int Role, int Event> __device__ __forceinline__ void once() {}
    template <int Role, int Event> __device__ __forceinline__ void hold(Word) {}
    template <int Role, Long Events> __device__ __forceinline__ void store(Word) {}
    template <int Role> __device__ __forceinline__ void flush() {}
    template <int Role, int Event> __device__ __forceinline__ void passed() {}
    __device__ __forceinline__ void anchor(Word) {}
    __device__ __forceinline__ void end() {}
};

template <class Config> class Recorder<Config, true> {
    static constexpr bool wide = Config::clock != Clock::cycles32;
    using T = typename Slot<wide>::type;

    static_assert(Config::roles >= 1 && Config::roles <= 64, "a mask has 64 bits: at most 64 roles");
    static_assert(Config::events >= 1 && Config::events <= 64, "a mask has 64 bits: at most 64 events");
    static_assert(Config::iterations >= 1 && Config::stride >= 1, "iterations and stride are positive");

    static __host__ __device__ constexpr bool is_set(Long mask, int i) { return mask >> i & 1; }
    static __host__ __device__ constexpr int count(Long mask, int end) {
        int n = 0;
        for (int i = 0; i < end; ++i) n += is_set(mask, i);
        return n;
    }
    // Stamps of the pass, of all roles before this one and of its events before this one.
    static __host__ __device__ constexpr int before(int role, int event) {
        int n = 0;
        for (int r = 0; r < role; ++r) n += count(Config::event_mask(r), Config::events);
        return n + (event > 0 ? count(Config::event_mask(role), event) : 0);
    }
    static __host__ __device__ constexpr bool made(int role, int event) {
        return is_set(Config::event_mask(role), event);
    }

    template <int Role, int Event> static __host__ __device__ constexpr void check() {
        static_assert(Role >= 0 && Role < Config::roles, "role outside of the layout");
        static_assert(Event >= 0 && Event < Config::events, "event outside of the layout");
    }

    // Only what this pass stamps has room in shared memory or registers.
    static constexpr bool in_rows = Config::sink == Sink::shared_memory;
    static constexpr int row = Config::iterations + (in_rows ? 1 : 0);  // shared: a spare slot at the end
    static constexpr int kept = before(Config::roles, 0) * row;
    static constexpr int whole = Config::roles * Config::events * Config::iterations;
    static constexpr bool shared = Config::sink == Sink::shared_memory && kept > 0;
    static constexpr bool registers = Config::sink == Sink::registers && kept > 0;
    static constexpr bool defer = Config::defer && !registers && !Config::branch && kept > 0;

    template <int Role, int Event> static __host__ __device__ constexpr int place() {
        return (registers  ? count(Config::event_mask(Role), Event)
                : in_rows  ? before(Role, Event)
                           : Role * Config::events + Event) * row;
    }

    static __device__ __forceinline__ T* storage() {
        __shared__ T buffer[shared ? kept : 1];
        return buffer;
    }

  public:
    __device__ __forceinline__ explicit Recorder(const Args& args) : records_(args.records) {
        const Word n = (this_cta() - args.first_cta) / args.cta_step;
        recorded_ = this_cta() >= args.first_cta && n < args.ctas && (this_cta() - args.first_cta) % args.cta_step == 0;
        anchors_ = reinterpret_cast<Anchor*>(records_ + args.ctas) + (recorded_ ? n * args.anchors : 0);
        anchor_count_ = recorded_ ? args.anchors : 0;
        records_ += recorded_ ? n : 0;
        slots_ = static_cast<T*>(args.slots) + static_cast<Long>(recorded_ ? n : 0) * whole;
    }

    // All threads, before the first stamp: reads the clocks and empties the shared buffer. Synchronises the CTA.
    __device__ __forceinline__ void begin() {
        if (recorded_ && this_thread() == 0) {
            Word sm;
            asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
            const Long before = clock64(), timer = globaltimer(), clock = clock64_after(timer);
            records_->globaltimer_start = timer;
            records_->clock_start = clock;
            records_->sm = sm;
            records_->distance_start = half(static_cast<Word>(clock - before));
            records_->distance_end = 0;
        }
        if constexpr (shared) {
            const Word threads = blockDim.x * blockDim.y * blockDim.z;
            for (Word i = this_thread(); i < kept; i += threads) storage()[i] = 0;
            base_ = static_cast<Word>(__cvta_generic_to_shared(storage()));
        }
        if constexpr (registers) {
#pragma unroll
            for (int i = 0; i < register_count; ++i) held_[i] = 0;
        }
        if constexpr (kept > 0) __syncthreads();
    }

    // Whether this thread writes the stamps of the role that it plays from here on.
    __device__ __forceinline__ void writer(bool elected) {
        limit_ = elected && recorded_ ? Config::iterations : 0;
        // All bits or none, in a way that the compiler does not see through.
        asm volatile("sub.u32 %0, 0, %1;" : "=r"(bits_) : "r"(static_cast<Word>(elected && recorded_)));
    }

    // Reads the clock and stores, as stamp of that iteration.
    template <int Role, int Event> __device__ __forceinline__ void stamp(Word iteration) {
        check<Role, Event>();
        if constexpr (made(Role, Event)) {
            const Word slot = slot_of(iteration);
            if constexpr (registers) {
                // A constant index once the loop is unrolled, so the array stays in registers.
                if (slot < Config::iterations) held_[place<Role, Event>() + slot] = read();
            } else if constexpr (Config::branch) {
                if (slot < limit_) {
                    T* const to = shared ? storage() : slots_;
                    *const_cast<volatile T*>(to + place<Role, Event>() + slot) = read();
                }
            } else {
                store_one<place<Role, Event>() * static_cast<int>(sizeof(T))>(slot, limit_, read());
            }
        } else if constexpr (Config::shadow) {
            read();
        }
    }

    // After bar.sync or __syncthreads() and before this stamp: shared memory cannot be read before the warp has passed the
    // barrier, and what comes next needs the value that was read (one in 4 billion is read again).
    template <int Role, int Event> __device__ __forceinline__ void passed() {
        check<Role, Event>();
        if constexpr (made(Role, Event) || Config::shadow) {
            Word word = base_;
            if constexpr (!shared) {
                __shared__ Word unused;
                word = static_cast<Word>(__cvta_generic_to_shared(&unused));
            }
            asm volatile("{\n\t.reg .pred p;\n\t.reg .u32 w;\n\tld.volatile.shared.u32 w, [%0];\n\t"
                         "setp.eq.u32 p, w, 0x5f3759df;\n\t@p ld.volatile.shared.u32 w, [%0];\n\t}"
                         ::"r"(word) : "memory");
        }
    }

    // A stamp outside of loops: in the first slot, whatever window the loops are recorded in.
    template <int Role, int Event> __device__ __forceinline__ void once() { stamp<Role, Event>(Config::from); }

    // Reads the clock, for store() to store; at once where the sink gains nothing by waiting.
    template <int Role, int Event> __device__ __forceinline__ void hold(Word iteration) {
        check<Role, Event>();
        if constexpr (!defer) {
            stamp<Role, Event>(iteration);
        } else if constexpr (made(Role, Event)) {
            held_[Event] = read();
        } else if constexpr (Config::shadow) {
            read();
        }
    }

    // Stores what hold() read last for these events, as stamps of that iteration.
    template <int Role, Long Events> __device__ __forceinline__ void store(Word iteration) {
        if constexpr (defer) {
            const Word slot = slot_of(iteration);
            store_each<Role, Events, 0>(!shared || slot < Config::iterations ? slot : Config::iterations);
        }
    }

    // Registers sink: the writer of a role stores what it holds, at the end of its part of the kernel.
    template <int Role> __device__ __forceinline__ void flush() {
        if constexpr (registers) {
            if (limit_ == 0) return;
            int at = 0;
#pragma unroll
            for (int e = 0; e < Config::events; ++e) {
                if (!made(Role, e)) continue;
#pragma unroll
                for (int i = 0; i < Config::iterations; ++i, ++at)
                    slots_[(Role * Config::events + e) * Config::iterations + i] = held_[at];
            }
        }
    }

    // One thread: reads both clocks, as anchor i of its CTA.
    __device__ __forceinline__ void anchor(Word i) {
        if (i >= anchor_count_) return;
        const Long clock = clock64(), timer = globaltimer();
        anchors_[i] = {timer, clock, this_cta(), static_cast<Word>(clock64_after(timer) - clock)};
    }

    // All threads, after the last stamp: reads the clocks, then copies the shared buffer. Synchronises the CTA.
    __device__ __forceinline__ void end() {
        // A warp may run on past a barrier until something needs it: the clock is read only once the count is there.
        const bool everybody = __syncthreads_count(1) != 0;
        if (everybody && recorded_ && this_thread() == 0) {
            const Long clock = clock64(), timer = globaltimer();
            records_->clock_end = clock;
            records_->globaltimer_end = timer;
            records_->distance_end = half(static_cast<Word>(clock64_after(timer) - clock));
        }
        if constexpr (shared) {
            if (!recorded_) return;
            const Word threads = blockDim.x * blockDim.y * blockDim.z;
            const T* from = storage();
#pragma unroll 1
            for (int r = 0; r < Config::roles; ++r) {
#pragma unroll 1
                for (int e = 0; e < Config::events; ++e) {
                    if (!made(r, e)) continue;
                    T* const to = slots_ + (r * Config::events + e) * Config::iterations;
                    for (Word i = this_thread(); i < Config::iterations; i += threads) to[i] = from[i];
                    from += row;
                }
            }
        }
    }

  private:
    static __host__ __device__ constexpr int most_events() {
        int most = 1;
        for (int r = 0; r < Config::roles; ++r) {
            const int n = count(Config::event_mask(r), Config::events);
            most = n > most ? n : most;
        }
        return most;
    }
    static constexpr int register_count = registers ? most_events() * Config::iterations : Config::events;

    static __device__ __forceinline__ Half half(Word cycles) { return static_cast<Half>(cycles < 65535 ? cycles : 65535); }

    // The slot of an iteration, beyond every buffer where the window leaves it out.
    static __device__ __forceinline__ Word slot_of(Word iteration) {
        const Word slot = iteration - Config::from;
        if constexpr (Config::stride == 1) return slot;
        return slot % Config::stride == 0 ? slot / Config::stride : ~0u;
    }

    template <int Role, Long Events, int Event> __device__ __forceinline__ void store_each(Word slot) {
        if constexpr (Event < Config::events) {
            if constexpr (made(Role, Event) && is_set(Events, Event)) {
                constexpr int offset = place<Role, Event>() * static_cast<int>(sizeof(T));
                if constexpr (shared) {
                    store_held<offset, Event % 32>(slot, held_[Event]);
                } else {
                    store_one<offset>(slot, limit_, held_[Event]);
                }
            }
            store_each<Role, Events, Event + 1>(slot);
        }
    }

    static __device__ __forceinline__ T read() {
        if constexpr (Config::clock == Clock::nanoseconds) {
            return globaltimer();
        } else if constexpr (Config::clock == Clock::cycles64) {
            return clock64();
        } else {
            Word t;
            asm volatile("mov.u32 %0, %%clock;" : "=r"(t)::"memory");
            return t;
        }
    }

    // Each store has a predicate of its own, that is one for the whole loop: stores under one predicate become a branch,
    // and behind a branch the compiler no longer knows that the warp is converged. What lies outside of the buffer goes
    // to the spare slot of its row, so that nothing is compared on the way to the work.
    template <int Offset, int Bit> __device__ __forceinline__ void store_held(Word slot, T t) {
        const Word to = base_ + slot * static_cast<Word>(sizeof(T));
        if constexpr (wide) {
            asm volatile("{\n\t.reg .pred p;\n\t.reg .b32 b;\n\tand.b32 b, %0, %4;\n\tsetp.ne.u32 p, b, 0;\n\t"
                         "@p st.shared.u64 [%1 + %2], %3;\n\t}"
                         ::"r"(bits_), "r"(to), "n"(Offset), "l"(t), "n"(1u << Bit) : "memory");
        } else {
            asm volatile("{\n\t.reg .pred p;\n\t.reg .b32 b;\n\tand.b32 b, %0, %4;\n\tsetp.ne.u32 p, b, 0;\n\t"
                         "@p st.shared.u32 [%1 + %2], %3;\n\t}"
                         ::"r"(bits_), "r"(to), "n"(Offset), "r"(t), "n"(1u << Bit) : "memory");
        }
    }

    // A predicated store: no branch, so the warp stays together and the loop keeps its shape.
    template <int Offset> __device__ __forceinline__ void store_one(Word slot, Word limit, T t) {
        if constexpr (shared && !wide) {
            asm volatile("{\n\t.reg .pred p;\n\tsetp.lt.u32 p, %0, %1;\n\t@p st.shared.u32 [%2 + %3], %4;\n\t}"
                         ::"r"(slot), "r"(limit), "r"(base_ + slot * 4), "n"(Offset), "r"(t) : "memory");
        } else if constexpr (shared) {
            asm volatile("{\n\t.reg .pred p;\n\tsetp.lt.u32 p, %0, %1;\n\t@p st.shared.u64 [%2 + %3], %4;\n\t}"
                         ::"r"(slot), "r"(limit), "r"(base_ + slot * 8), "n"(Offset), "l"(t) : "memory");
        } else if constexpr (!wide) {
            asm volatile("{\n\t.reg .pred p;\n\tsetp.lt.u32 p, %0, %1;\n\t@p st.global.u32 [%2 + %3], %4;\n\t}"
                         ::"r"(slot), "r"(limit), "l"(slots_ + slot), "n"(Offset), "r"(t) : "memory");
        } else {
            asm volatile("{\n\t.reg .pred p;\n\tsetp.lt.u32 p, %0, %1;\n\t@p st.global.u64 [%2 + %3], %4;\n\t}"
                         ::"r"(slot), "r"(limit), "l"(slots_ + slot), "n"(Offset), "l"(t) : "memory");
        }
    }

    Record* records_;
    Anchor* anchors_;
    T* slots_;
    Word anchor_count_;
    bool recorded_;
    Word limit_ = 0;
    Word bits_ = 0;
    Word base_ = 0;
    T held_[register_count];
};

}  // namespace wsf

// The macros. WSF_PARAM stands after the last parameter, WSF_ONLY_PARAM where there is no other.
// A device function that stamps takes WSF_INNER_PARAM after its last parameter and is given WSF_INNER_ARG; inline it.
#if WSF_STAMPS
#define WSF_PARAM , ::wsf::Args wsf_args
#define WSF_ONLY_PARAM ::wsf::Args wsf_args
#define WSF_INNER_PARAM , ::wsf::Recorder<::wsf::Defaults>& wsf_
#define WSF_INNER_ARG , wsf_
#define WSF_BEGIN()                                  \
    ::wsf::Recorder<::wsf::Defaults> wsf_(wsf_args); \
    wsf_.begin()
#define WSF_WRITER(elected) wsf_.writer(elected)
#define WSF_STAMP(role, event, iteration) wsf_.template stamp<(role), (event)>(iteration)
#define WSF_ONCE(role, event) wsf_.template once<(role), (event)>()
#define WSF_PASSED(role, event) wsf_.template passed<(role), (event)>()
#define WSF_HOLD(role, event, iteration) wsf_.template hold<(role), (event)>(iteration)
#define WSF_STORE(role, events, iteration) wsf_.template store<(role), (events)>(iteration)
#define WSF_FLUSH(role) wsf_.template flush<(role)>()
#define WSF_ANCHOR(i) wsf_.anchor(i)
#define WSF_END() wsf_.end()
#else
#define WSF_PARAM
#define WSF_ONLY_PARAM
#define WSF_INNER_PARAM
#define WSF_INNER_ARG
#define WSF_BEGIN() static_assert(true, "")
#define WSF_WRITER(elected) static_assert(true, "")
#define WSF_STAMP(role, event, iteration) static_assert(true, "")
#define WSF_ONCE(role, event) static_assert(true, "")
#define WSF_PASSED(role, event) static_assert(true, "")
#define WSF_HOLD(role, event, iteration) static_assert(true, "")
#define WSF_STORE(role, events, iteration) static_assert(true, "")
#define WSF_FLUSH(role) static_assert(true, "")
#define WSF_ANCHOR(i) static_assert(true, "")
#define WSF_END() static_assert(true, "")
#endif
