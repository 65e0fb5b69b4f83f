// The thread pool: parallel_for, whose chunks depend on the size of the work and not on the number
// of threads, so that results do not either.
#pragma once
#include <cstdint>
#include <memory>
#include <type_traits>

namespace facula {

// How many threads a parallel loop may use, the caller included. At first OMP_NUM_THREADS, else
// usable_cpus() of core/cgroup.h.
int num_threads();

// Sets it for the whole process; throws RuntimeError unless n > 0.
void set_num_threads(int n);

// Whether this thread is running a part of a parallel loop, so that a loop inside runs serially.
bool in_parallel_region();

// The smallest chunk that is worth waking a thread for, when one item takes `tenth_ns` tenths of a
// nanosecond. It depends on the machine, so results must not depend on it.
int64_t parallel_grain(int64_t tenth_ns);

namespace detail {
using ChunkFunction = void (*)(void* context, int64_t begin, int64_t end);
void run_chunks(int64_t n, int64_t grain, ChunkFunction function, void* context);
}  // namespace detail

// Calls body(begin, end) for each chunk of `grain` items of [0, n), on several threads when that is
// allowed and there is more than one chunk. Every `begin` is a multiple of `grain` however many
// threads there are, so begin / grain may index partial results. The first exception in the order
// of chunks is thrown to the caller; later chunks may be skipped. Between chunks the caller checks
// for interrupts (core/interrupts.h), which skip the chunks that have not begun.
template <class F>
void parallel_for(int64_t n, int64_t grain, F&& body) {
  if (n <= 0) return;
  if (n <= grain) {
    body(int64_t{0}, n);
    return;
  }
  using Body = std::remove_reference_t<F>;
  const auto call = [](void* context, int64_t begin, int64_t end) {
    (*static_cast<Body*>(context))(begin, end);
  };
  void* context = const_cast<void*>(static_cast<const void*>(std::addressof(body)));
  detail::run_chunks(n, grain, call, context);
}

}  // namespace facula
