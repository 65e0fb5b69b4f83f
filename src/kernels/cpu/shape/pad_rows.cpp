#include "core/threads.h"
#include "kernels/cpu/loop/copy_bytes.h"
#include "kernels/cpu/shape/pad.h"

namespace facula::cpu::FACULA_ISA {
namespace {

constexpr int64_t min_of(int64_t a, int64_t b) { return b < a ? b : a; }

template <class T>
void fill_run(T* to, int64_t n, T value) {
  for (int64_t i = 0; i < n; ++i) to[i] = value;
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
    if (plan.unit == 1 && begin < end && d.source[begin] >= 0) {
      const int64_t *source = d.source, step = d.in_stride;
      for (int64_t i = begin; i < end; ++i) to[i] = from[source[i] * step];
      return;
    }
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

  // Whether rows are long, and padded at their ends by less than a block of numbers each.
  static constexpr int64_t block = 16;
  bool narrow() const {
    const PadDim& d = plan.dims.back();
    const int64_t before = d.begin * plan.unit, after = (d.size - d.end) * plan.unit;
    const bool constant =
        (d.begin == 0 || d.source[0] < 0) && (d.end == d.size || d.source[d.size - 1] < 0);
    return constant && d.in_stride == plan.unit && d.end > d.begin && before <= block &&
           after <= block && d.size * plan.unit >= block;
  }
  // Such rows, [begin, end) along a dimension: a block of numbers at both ends, then what is
  // within.
  void narrow_rows(const T* from, T* to, const PadDim& along, int64_t begin, int64_t end) const {
    struct Block {
      T values[block];
    } numbers;
    for (T& v : numbers.values) v = value;
    const PadDim d = plan.dims.back();
    const int64_t length = d.size * plan.unit, step = along.out_stride, in_step = along.in_stride;
    const int64_t before = d.begin * plan.unit, first = d.source[d.begin] * d.in_stride;
    const auto bytes = static_cast<size_t>((d.end - d.begin) * plan.unit) * sizeof(T);
    const int64_t* source = along.source;
    T* place = to + begin * step;
    for (int64_t r = begin; r < end; ++r, place += step) {
      if (source[r] < 0) {
        fill_run(place, length, value);
        continue;
      }
      __builtin_memcpy(place, &numbers, sizeof numbers);
      __builtin_memcpy(place + length - block, &numbers, sizeof numbers);
      copy_bytes(reinterpret_cast<char*>(place + before),
                 reinterpret_cast<const char*>(from + source[r] * in_step + first), bytes);
    }
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
      if (inside && narrow()) {
        const int64_t count = min_of(along.size - at, end - r);
        narrow_rows(from + in, to + out, along, at, at + count);
        r += count;
        continue;
      }
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
