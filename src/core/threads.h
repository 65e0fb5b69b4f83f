// Our thread pool: one parallel loop, split by the problem's size and never by the thread count.
#pragma once
#include <cstdint>
#include <memory>
#include <type_traits>

namespace facula {

// How many threads a parallel loop may use, the caller included. At first OMP_NUM_THREADS, else
// the processors that affinity and control group leave to the process.
int num_threads();

// Sets it for the whole process; throws RuntimeError unless n > 0.
void set_num_threads(int n);

// Whether this thread is running a part of a parallel loop, so that a loop inside runs serially.
bool in_parallel_region();

// Items a chunk should have at least, so that it repays the waking of a thread, where an item costs
// `tenth_ns` tenths of a nanosecond. It depends on the machine: results must not depend on it.
int64_t parallel_grain(int64_t tenth_ns);

namespace detail {
using ChunkFunction = void (*)(void* context, int64_t begin, int64_t end);
void run_chunks(int64_t n, int64_t grain, ChunkFunction function, void* context);
}  // namespace detail

// Calls body(begin, end) for each chunk of `grain` items of [0, n), on several threads when that is
// allowed and there is more than one chunk. Every `begin` is a multiple of `grain` however many
// threads there are, so begin / grain may index partial results. The first exception in the order
// of chunks is thrown to the caller; chunks after it may be left out. Between chunks the caller
// looks for interrupts (core/interrupts.h), which leave out what is not begun.
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
