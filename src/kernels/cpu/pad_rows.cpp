#include "core/threads.h"
#include "kernels/cpu/copy_bytes.h"
#include "kernels/cpu/pad.h"

namespace facula::cpu::FACULA_ISA {
namespace {

// Padding is narrow most of the time: a vector loop would take longer to begin.
template <class T>
[[gnu::always_inline]] inline void fill_run(T* to, int64_t n, T value) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (int k = 0; k < 16; ++k) to[i + k] = value;
#pragma GCC unroll 1
  for (; i < n; ++i) {
    to[i] = value;
    asm volatile("" ::: "memory");
  }
}

template <class T>
struct Padder {
  const PadPlan& plan;
  T value;

  // A row of units.
  void row(const T* from, T* to) const {
    const PadDim& d = plan.dims.back();
    edge(d, 0, d.begin, from, to);
    if (d.end > d.begin) {
      const T* inner = from + d.source[d.begin] * d.in_stride;
      T* place = to + d.begin * plan.unit;
      const int64_t n = d.end - d.begin;
      if (d.in_stride == plan.unit)
        copy_bytes(reinterpret_cast<char*>(place), reinterpret_cast<const char*>(inner),
                   static_cast<size_t>(n * plan.unit) * sizeof(T));
      else
        for (int64_t i = 0; i < n; ++i) unit(inner + i * d.in_stride, place + i * plan.unit);
    }
    edge(d, d.end, d.size, from, to);
  }
  void edge(const PadDim& d, int64_t begin, int64_t end, const T* from, T* to) const {
    if (begin < end && d.source[begin] < 0 && d.source[end - 1] < 0)
      return fill_run(to + begin * plan.unit, (end - begin) * plan.unit, value);
#pragma GCC unroll 1
    for (int64_t i = begin; i < end; ++i) {
      if (d.source[i] < 0)
        fill_run(to + i * plan.unit, plan.unit, value);
      else
        unit(from + d.source[i] * d.in_stride, to + i * plan.unit);
    }
  }
  void unit(const T* from, T* to) const {
    if (plan.unit == 1)
      *to = *from;
    else
      copy_bytes(reinterpret_cast<char*>(to), reinterpret_cast<const char*>(from),
                 static_cast<size_t>(plan.unit) * sizeof(T));
  }

  // The rows from `begin` to `end`, counted over all dimensions but the last.
  void rows(const T* from, T* to, int64_t begin, int64_t end) const {
    const size_t outer = plan.dims.size() - 1;
    for (int64_t r = begin; r < end;) {
      // The last of the outer dimensions is walked along, the others are found out anew.
      int64_t rest = r, at = 0, in = 0, out = 0;
      bool inside = true;
      for (size_t d = outer; d-- > 0;) {
        const PadDim& dim = plan.dims[d];
        const int64_t place = rest % dim.size;
        rest /= dim.size;
        if (d + 1 == outer) {
          at = place;
          continue;
        }
        out += place * dim.out_stride;
        inside &= dim.source[place] >= 0;
        in += dim.source[place] * dim.in_stride;
      }
      if (outer == 0) return row(from, to);
      const PadDim& along = plan.dims[outer - 1];
      for (; at < along.size && r < end; ++at, ++r) {
        T* place = to + out + at * along.out_stride;
        if (inside && along.source[at] >= 0)
          row(from + in + along.source[at] * along.in_stride, place);
        else
          fill_run(place, plan.dims[outer].size * plan.unit, value);
      }
    }
  }
};

}  // namespace

void pad_rows(const PadPlan& plan, size_t itemsize, const void* from, void* to, const void* value) {
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < plan.dims.size(); ++d) rows *= plan.dims[d].size;
  const int64_t length = plan.dims.back().size * plan.unit;
  visit_size(itemsize, [&]<class T>(Type<T>) {
    const Padder<T> padder{plan, *static_cast<const T*>(value)};
    const int64_t grain = length >= 16384 ? 1 : 16384 / length;
    parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
      padder.rows(static_cast<const T*>(from), static_cast<T*>(to), begin, end);
    });
  });
}

}  // namespace facula::cpu::FACULA_ISA
