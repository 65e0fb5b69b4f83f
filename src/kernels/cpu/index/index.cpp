#include "kernels/cpu/index/index.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <vector>

#include "core/threads.h"
#include "kernels/cpu/index/masks.h"
#include "kernels/cpu/index/rows.h"
#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/loop/loop.h"
#include "kernels/cpu/loop/row_copies.h"
#include "kernels/cpu/loop/stored.h"

namespace facula::cpu {
namespace {

// Elements that one task handles.
constexpr int64_t moved_elements = 16384;

// --- offsets

template <class I>
void add_offsets(const IndexedDim& d, size_t itemsize, bool first, int64_t* to, IndexError error) {
  const Tensor flat = contiguous(*d.index);
  const I* from = flat.data<I>();
  const int64_t step = d.stride * static_cast<int64_t>(itemsize), lowest = d.wrap ? -d.size : 0;
  const auto fill = std::is_same_v<I, int32_t> ? FACULA_OF_ISA(index_offsets_narrow)
                                               : FACULA_OF_ISA(index_offsets);
  parallel_for(flat.numel(), moved_elements, [&](int64_t begin, int64_t end) {
    if (fill(from + begin, end - begin, {lowest, d.size, step, first}, to + begin)) return;
    for (int64_t i = begin; i < end; ++i)
      if (from[i] < lowest || from[i] >= d.size) throw error(from[i], d);
  });
}

// --- moving

Tensor part_of(const Tensor& t, size_t dim, int64_t begin, int64_t length) {
  IntVec sizes(t.sizes());
  sizes[dim] = length;
  return alias_tensor(t, sizes, t.strides(), t.storage_offset() + begin * t.strides()[dim]);
}

// The largest dimension that is not indexed: parts of it never meet.
std::optional<size_t> free_dim(const Tensor& to, const Tensor& offsets) {
  std::optional<size_t> best;
  for (size_t d = 0; d < offsets.sizes().size(); ++d) {
    if (to.strides()[d] == 0 || offsets.sizes()[d] < 2) continue;
    if (!best || offsets.sizes()[d] > offsets.sizes()[*best]) best = d;
  }
  return best;
}

// Whether the plan is one list of offsets, each of which moves a dense row.
bool moves_dense_rows(const LoopPlan& plan, int64_t itemsize) {
  if (plan.sizes().size() != 2) return false;
  const auto steps = [&](int operand) -> const IntVec& { return plan.strides(operand); };
  return steps(0)[0] == sizeof(int64_t) && steps(0)[1] == 0 && steps(1)[1] == itemsize &&
         steps(2)[1] == itemsize;
}

DenseRows dense_rows(const LoopPlan& plan) {
  return {reinterpret_cast<const int64_t*>(plan.data(0)),
          plan.data(1),
          plan.data(2),
          plan.strides(1)[0],
          plan.strides(2)[0],
          plan.sizes()[1],
          plan.sizes()[0]};
}

// With the contiguous offsets (or indices) first, merging keeps the order of the positions that
// they hold.
LoopPlan scatter_plan(const Tensor& to, const Tensor& offsets, const Tensor& values) {
  LoopPlan plan(offsets.sizes());
  plan.add(offsets);
  plan.add(to);
  plan.add(values);
  plan.simplify();
  return plan;
}

void scatter_in_order(const Tensor& to, const Tensor& offsets, const Tensor& values,
                      const Scattering& how, const void* context) {
  LoopPlan plan = scatter_plan(to, offsets, values);
  if (!how.dense || !moves_dense_rows(plan, static_cast<int64_t>(to.itemsize())))
    return plan.run_serially(how.row, context);
  how.dense(dense_rows(plan));
}

// Bounds of `parts` ranges of places, each of which takes about as many of the offsets; none where
// all of them lie within less than `least` bytes, or many at one place.
std::vector<int64_t> range_bounds(const int64_t* offsets, int64_t n, int64_t parts, int64_t least) {
  constexpr int64_t samples = 64;  // for each part
  std::vector<int64_t> seen(static_cast<size_t>(samples * parts));
  for (size_t k = 0; k < seen.size(); ++k)
    seen[k] = offsets[static_cast<size_t>(n) * k / seen.size()];
  std::ranges::sort(seen);
  if (seen.back() - seen.front() < least) return {};
  std::vector<int64_t> bounds(static_cast<size_t>(parts) + 1, INT64_MIN);
  for (size_t k = 1; k < bounds.size(); ++k) bounds[k] = seen[(k * samples) % seen.size()];
  bounds.back() = INT64_MAX;
  if (std::ranges::adjacent_find(bounds) != bounds.end()) return {};
  return bounds;
}

// One list of offsets of elements, or of dense rows, that may meet anywhere: each task takes a
// range of places and passes over what goes to others. So what meets stays in order, whatever the
// ranges. False where that would not pay.
bool scatter_by_ranges(const Tensor& to, const Tensor& offsets, const Tensor& values,
                       const Scattering& how) {
  constexpr int64_t most_threads = 16, least_bytes = 1 << 18, least_rows = 1024;
  const int64_t threads = std::min<int64_t>(num_threads(), most_threads);
  if (!how.between || threads < 2 || in_parallel_region()) return false;
  const LoopPlan plan = scatter_plan(to, offsets, values);
  const bool rows = moves_dense_rows(plan, static_cast<int64_t>(to.itemsize()));
  if (plan.strides(1)[0] != 0 || plan.strides(0)[0] != sizeof(int64_t)) return false;
  const int64_t n = plan.sizes()[0];
  if (rows ? n < least_rows : plan.sizes().size() != 1 || n <= 2 * moved_elements) return false;
  const auto* list = reinterpret_cast<const int64_t*>(plan.data(0));
  // Finding a range's rows costs little beside moving them: more ranges than threads are balanced.
  const int64_t parts = rows ? 2 * threads : threads;
  const std::vector<int64_t> bounds = range_bounds(list, n, parts, rows ? 1 : least_bytes);
  if (bounds.empty()) return false;
  char* const data[] = {plan.data(0), plan.data(1), plan.data(2)};
  const int64_t steps[] = {sizeof(int64_t), 0, plan.strides(2)[0]};
  parallel_for(parts, 1, [&](int64_t part, int64_t) {
    const int64_t low = bounds[static_cast<size_t>(part)],
                  end = bounds[static_cast<size_t>(part) + 1];
    const OffsetRange range{low, static_cast<uint64_t>(end) - static_cast<uint64_t>(low)};
    if (rows)
      how.dense_between(range, dense_rows(plan));
    else
      how.between(range, data, steps, n);
  });
  return true;
}

// Elements that may be written twice stay in one task, so no two tasks meet and the order is fixed.
void run_scatter(const Tensor& to, const Tensor& offsets, const Tensor& values,
                 const Scattering& how, const void* context = nullptr) {
  const int64_t total = offsets.numel();
  if (total == 0) return;
  const std::optional<size_t> dim = free_dim(to, offsets);
  if (total > moved_elements && scatter_by_ranges(to, offsets, values, how)) return;
  if (!dim || total <= moved_elements) return scatter_in_order(to, offsets, values, how, context);
  const int64_t n = offsets.sizes()[*dim],
                parts = std::min(n, (total + moved_elements - 1) / moved_elements);
  // Wide enough parts keep rows long where the free dimension is the innermost; threads take
  // narrower ones. What meets in an element stays in order, so the width changes no result.
  const int64_t two_lines = 128 / static_cast<int64_t>(to.itemsize());
  const int64_t least = num_threads() > 1 ? two_lines : std::max<int64_t>(64, two_lines);
  const int64_t length = std::max<int64_t>((n + parts - 1) / parts, std::min(n, least));
  parallel_for((n + length - 1) / length, 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const int64_t first = k * length, size = std::min(length, n - first);
      scatter_in_order(part_of(to, *dim, first, size), part_of(offsets, *dim, first, size),
                       part_of(values, *dim, first, size), how, context);
    }
  });
}

// Rows that all read at the same offsets, as of chosen columns. False where the plan (out, offsets,
// from) is another.
bool gather_by_shared_offsets(const LoopPlan& plan, size_t itemsize) {
  const auto item = static_cast<int64_t>(itemsize);
  if (plan.sizes().size() != 2) return false;
  const IntVec &to = plan.strides(0), &at = plan.strides(1), &from = plan.strides(2);
  if (to[1] != item || at[0] != 0 || at[1] != sizeof(int64_t) || from[1] != 0) return false;
  const SharedOffsets rows{
      plan.data(0), plan.data(2), reinterpret_cast<const int64_t*>(plan.data(1)),
      to[0],        from[0],      plan.sizes()[1]};
  const auto gather = FACULA_OF_ISA(gather_columns);
  const int64_t grain = std::max<int64_t>(1, moved_elements / rows.width);
  parallel_for(plan.sizes()[0], grain,
               [&](int64_t begin, int64_t end) { gather(itemsize, rows, begin, end); });
  return true;
}

template <class T>
T divided(T v, int64_t count) {
  if constexpr (std::is_same_v<T, bool>) {
    return v;
  } else if constexpr (std::is_integral_v<T>) {
    const int64_t wide = static_cast<int64_t>(v), whole = wide / count;
    return static_cast<T>(whole - (wide % count < 0));
  } else {
    return v / T(static_cast<double>(count));
  }
}

template <class T>
void divide_row(const void*, char* const* data, const int64_t* steps, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t count = *reinterpret_cast<const int64_t*>(data[1] + i * steps[1]);
    T& to = *reinterpret_cast<T*>(data[0] + i * steps[0]);
    if (count > 1) to = divided(to, count);
  }
}

// Throws for the first index outside: a row found that there is one.
[[noreturn]] void throw_outside(const IndexedDim& d, IndexError error) {
  const int64_t lowest = d.wrap ? -d.size : 0;
  const Tensor all = contiguous(converted(*d.index, DType::Int64));
  for (int64_t i = 0; i < all.numel(); ++i)
    if (const int64_t v = all.data<int64_t>()[i]; v < lowest || v >= d.size) throw error(v, d);
  throw error(d.size, d);  // somebody has changed it since
}

// --- masks

template <class F>
void dispatch_values(DType d, F&& f) {
  dispatch<FloatingTypes, IntegralTypes, bool, ComplexTypes, WideUnsignedTypes, SmallComplexTypes>(
      d, "nonzero_count_cpu", f);
}

template <class T>
bool is_nonzero(T v) {
  if constexpr (is_complex_v<T>)
    return v.re != 0 || v.im != 0;
  else
    return v != T(0);
}

constexpr int64_t most_places = 256;

// Which of n <= most_places elements are not zero, as bytes; a mask's are taken as they are.
template <class T>
const uint8_t* flags_of(const T* p, int64_t n, uint8_t* room) {
  if constexpr (std::is_same_v<T, bool>) {
    return reinterpret_cast<const uint8_t*>(p);
  } else {
    for (int64_t i = 0; i < n; ++i) room[i] = is_nonzero(p[i]);
    return room;
  }
}

template <class T>
int64_t count_in(const T* p, int64_t n) {
  const auto count = FACULA_OF_ISA(count_set);
  if constexpr (std::is_same_v<T, bool>) return count(reinterpret_cast<const uint8_t*>(p), n);
  uint8_t room[most_places];
  int64_t found = 0;
  for (int64_t at = 0; at < n; at += most_places) {
    const int64_t run = std::min(most_places, n - at);
    found += count(flags_of(p + at, run, room), run);
  }
  return found;
}

// How many elements that are not zero come before each chunk; one more entry with the total.
template <class T>
std::vector<int64_t> starts_of(const T* p, int64_t n) {
  const int64_t chunks = (n + moved_elements - 1) / moved_elements;
  std::vector<int64_t> starts(static_cast<size_t>(chunks) + 1);
  parallel_for(n, moved_elements, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at += moved_elements)
      starts[static_cast<size_t>(at / moved_elements) + 1] =
          count_in(p + at, std::min(end - at, moved_elements));
  });
  for (size_t k = 1; k < starts.size(); ++k) starts[k] += starts[k - 1];
  return starts;
}

// Calls body(first element, end, how many were found before, how many are here) for each chunk.
template <class T, class Body>
void for_found(const T* p, int64_t n, Body&& body) {
  const std::vector<int64_t> starts = starts_of(p, n);
  parallel_for(n, moved_elements, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at += moved_elements) {
      const auto k = static_cast<size_t>(at / moved_elements);
      body(at, std::min(end, at + moved_elements), starts[k], starts[k + 1] - starts[k]);
    }
  });
}

// Coordinates of elements of one row of the innermost dimension, whose first stands at `at`.
void write_run(const IntVec& at, const int32_t* places, int64_t found, int64_t* to, int64_t step,
               int64_t across) {
  const size_t last = at.size() - 1;
  for (size_t d = 0; d < last; ++d, to += across)
    for (int64_t k = 0; k < found; ++k) to[k * step] = at[d];
  if (step == 1) return FACULA_OF_ISA(write_places)(places, found, at[last], to);
  for (int64_t k = 0; k < found; ++k) to[k * step] = at[last] + places[k];
}

template <class T>
void write_coordinates(const T* p, IntSpan sizes, const Tensor& result) {
  const int64_t n = result.sizes()[0], step = result.strides()[0], across = result.strides()[1];
  const size_t dims = sizes.size();
  int64_t total = 1;
  for (int64_t s : sizes) total *= s;
  const int64_t width = sizes[dims - 1];
  const auto places_of = FACULA_OF_ISA(places_of_set);
  for_found(p, total, [&](int64_t begin, int64_t end, int64_t row, int64_t) {
    IntVec at(dims);
    int32_t places[most_places];
    uint8_t room[most_places];
    // Runs within one row of the innermost dimension share their other coordinates.
    for (int64_t i = begin, run = 0; i < end && row < n; i += run) {
      run = std::min({most_places, end - i, width - i % width});
      int64_t rest = i;
      for (size_t d = dims; d-- > 0; rest /= sizes[d]) at[d] = rest % sizes[d];
      const int64_t set = places_of(flags_of(p + i, run, room), run, places);
      const int64_t found = std::min(set, n - row);
      write_run(at, places, found, result.data<int64_t>() + row * step, step, across);
      row += found;
    }
  });
}

template <class T>
void fill_masked_row(const void* value, char* const* data, const int64_t* steps, int64_t n) {
  const T v = *static_cast<const T*>(value);
  if (steps[0] == sizeof(T) && steps[1] == 1) {
    T* to = reinterpret_cast<T*>(data[0]);
    const char* mask = data[1];
    for (int64_t i = 0; i < n; ++i) to[i] = mask[i] != 0 ? v : to[i];
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    if (*(data[1] + i * steps[1])) *reinterpret_cast<T*>(data[0] + i * steps[0]) = v;
}

}  // namespace

Error index_out_of_bounds(int64_t index, const IndexedDim& d) {
  if (d.size == 0)
    return Error(ErrorKind::Index, "index is out of bounds: the dimension has size 0");
  return Error(ErrorKind::Index, "index ", index, " is out of bounds for dimension ", d.shown_dim,
               " with size ", d.size);
}
Error index_out_of_bounds_runtime(int64_t index, const IndexedDim& d) {
  return Error(ErrorKind::Runtime, "index ", index, " is out of bounds for dimension ", d.shown_dim,
               " with size ", d.size);
}

Tensor byte_offsets(std::span<const IndexedDim> dims, size_t itemsize, IndexError error) {
  const Tensor offsets = empty_tensor(dims[0].index->sizes(), DType::Int64);
  if (offsets.numel() == 0) return offsets;
  bool first = true;
  for (const IndexedDim& d : dims) {
    if (d.index->dtype() == DType::Int32)
      add_offsets<int32_t>(d, itemsize, first, offsets.data<int64_t>(), error);
    else
      add_offsets<int64_t>(d, itemsize, first, offsets.data<int64_t>(), error);
    first = false;
  }
  return offsets;
}

void gather_elements(const Tensor& out, const Tensor& from, const Tensor& offsets) {
  if (out.numel() == 0) return;
  LoopPlan plan(out.sizes());
  plan.add(out);
  plan.add(offsets);
  plan.add(from);
  plan.simplify();
  if (gather_by_shared_offsets(plan, out.itemsize())) return;
  plan.run(FACULA_OF_ISA(gather_row)(out.itemsize()), nullptr, moved_elements);
}

void gather_along(const Tensor& out, const Tensor& from, const IndexedDim& d, IndexError error) {
  if (out.numel() == 0) return;
  const Tensor& index = *d.index;
  const int64_t lowest = d.wrap ? -d.size : 0;
  std::atomic<bool> outside{false};
  const IndexedContext context{
      {lowest, d.size, d.stride * static_cast<int64_t>(out.itemsize()), true}, &outside};
  LoopPlan plan(out.sizes());
  plan.add(out);
  plan.add(index);
  plan.add(from);
  plan.simplify();
  const bool narrow = index.dtype() == DType::Int32;
  plan.run(narrow ? FACULA_OF_ISA(gather_row_narrow)(out.itemsize())
                  : FACULA_OF_ISA(gather_row_wide)(out.itemsize()),
           &context, moved_elements);
  if (outside.load(std::memory_order_relaxed)) throw_outside(d, error);
}

bool take_dense_rows(const Tensor& from, const Tensor& index, const Tensor& out) {
  const Tensor numbers = contiguous(index);
  const int64_t rows = from.size(0), n = numbers.numel();
  int64_t width = static_cast<int64_t>(from.itemsize());
  for (int64_t s : from.sizes().subspan(1)) width *= s;
  if (n == 0) return true;
  // The stride of a single row may be any number.
  const int64_t step = rows > 1 ? from.strides()[0] * static_cast<int64_t>(from.itemsize()) : 0;
  const ByteRows table{static_cast<const char*>(from.numel() > 0 ? from.data() : nullptr), step,
                       width};
  const bool narrow = numbers.dtype() == DType::Int32;
  const auto take = narrow ? FACULA_OF_ISA(take_rows_narrow) : FACULA_OF_ISA(take_rows);
  const char* at = static_cast<const char*>(numbers.data());
  char* to = width > 0 ? static_cast<char*>(out.data()) : nullptr;
  std::atomic<bool> hold{true};
  // Neighbouring rows of a table come from anywhere: smaller tasks than for copies.
  constexpr int64_t task_bytes = 65536;
  const int64_t item = narrow ? 4 : 8, task = std::clamp<int64_t>(task_bytes / (width + 8), 1, n);
  parallel_for(n, task, [&](int64_t begin, int64_t end) {
    if (!take(table, rows, at + begin * item, end - begin, to + begin * width))
      hold.store(false, std::memory_order_relaxed);
  });
  return hold.load(std::memory_order_relaxed);
}

void scatter_along(const Tensor& to, const Tensor& values, const IndexedDim& d, const char* add_op,
                   IndexError error) {
  const Tensor index = contiguous(*d.index);
  std::atomic<bool> outside{false};
  const IndexedContext context{
      {d.wrap ? -d.size : 0, d.size, d.stride * static_cast<int64_t>(to.itemsize()), true},
      &outside};
  const RowFn row = add_op ? FACULA_OF_ISA(put_add_row)(to.dtype(), add_op)
                           : FACULA_OF_ISA(put_row)(to.itemsize());
  run_scatter(to, index, values, {row}, &context);
  if (outside.load(std::memory_order_relaxed)) throw_outside(d, error);
}

void scatter_elements(const Tensor& to, const Tensor& offsets, const Tensor& values) {
  run_scatter(to, offsets, values, FACULA_OF_ISA(scatter_row)(to.itemsize()));
}

void scatter_reduce_elements(const Tensor& to, const Tensor& offsets, const Tensor& values,
                             Reduction how, const char* op) {
  run_scatter(to, offsets, values, FACULA_OF_ISA(reduce_row)(to.dtype(), how, op));
}

void divide_by_counts(const Tensor& to, const Tensor& counts) {
  LoopPlan plan(to.sizes());
  plan.add(to);
  plan.add(counts);
  plan.simplify();
  dispatch<float, double, IntegralTypes, bool, ComplexTypes>(
      to.dtype(), "index_reduce_mean",
      [&]<class T>(Type<T>) { plan.run(&divide_row<T>, nullptr); });
}

int64_t count_nonzero_elements(const Tensor& t) {
  int64_t count = 0;
  dispatch_values(t.dtype(), [&]<class T>(Type<T>) {
    count = t.numel() ? starts_of(t.data<T>(), t.numel()).back() : 0;
  });
  return count;
}

void nonzero_coordinates(const Tensor& t, const Tensor& result) {
  if (t.numel() == 0 || result.numel() == 0) return;
  dispatch_values(t.dtype(),
                  [&]<class T>(Type<T>) { write_coordinates(t.data<T>(), t.sizes(), result); });
}

void compress(const Tensor& self, const Tensor& mask, const Tensor& out) {
  const bool* m = mask.data<bool>();
  const auto* from = static_cast<const char*>(self.data());
  auto* to = static_cast<char*>(out.data());
  const auto item = static_cast<int64_t>(self.itemsize());
  const MaskedRowFn row = FACULA_OF_ISA(compress_row)(self.itemsize());
  for_found(m, mask.numel(), [&](int64_t begin, int64_t end, int64_t before, int64_t found) {
    row(reinterpret_cast<const uint8_t*>(m + begin), end - begin, from + begin * item,
        to + before * item, found);
  });
}

void spread(const Tensor& out, const Tensor& mask, const Tensor& source) {
  const bool* m = mask.data<bool>();
  const auto* from = static_cast<const char*>(source.data());
  auto* to = static_cast<char*>(out.data());
  const auto item = static_cast<int64_t>(out.itemsize());
  const MaskedRowFn row = FACULA_OF_ISA(spread_row)(out.itemsize());
  for_found(m, mask.numel(), [&](int64_t begin, int64_t end, int64_t before, int64_t found) {
    row(reinterpret_cast<const uint8_t*>(m + begin), end - begin, from + before * item,
        to + begin * item, found);
  });
}

void fill_masked(const Tensor& out, const Tensor& mask, const Tensor& value) {
  if (out.numel() == 0) return;
  LoopPlan plan(out.sizes());
  plan.add(out);
  plan.add(mask);
  plan.simplify();
  RowFn row = nullptr;
  visit_size(out.itemsize(), [&]<class T>(Type<T>) { row = &fill_masked_row<T>; });
  plan.run(row, value.data());
}

}  // namespace facula::cpu
