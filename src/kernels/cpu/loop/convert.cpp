#include "kernels/cpu/loop/convert.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/threads.h"
#include "kernels/cpu/loop/convert_rows.h"
#include "kernels/cpu/loop/loop.h"
#include "kernels/cpu/loop/row_copies.h"
#include "kernels/cpu/loop/transpose.h"

namespace facula::cpu {
namespace {

// The plane of a copy in which the source's innermost dimension is another than the target's.
struct Plane {
  size_t across;  // the dimension that is innermost in the source
  int64_t rows, columns;
};

std::optional<Plane> find_plane(const LoopPlan& plan, int64_t size) {
  constexpr int64_t fewest = 4;
  const IntVec &sizes = plan.sizes(), &to = plan.strides(0), &from = plan.strides(1);
  if (sizes.size() < 2 || to.back() != size || from.back() == size || sizes.back() < fewest)
    return std::nullopt;
  for (size_t d = 0; d + 1 < sizes.size(); ++d)
    if (from[d] == size && sizes[d] >= fewest) return Plane{d, sizes[d], sizes.back()};
  return std::nullopt;
}

// Copies a simplified plan's operand 1 to operand 0 plane by plane.
void copy_planes(const LoopPlan& plan, const Plane& plane, size_t size) {
  const IntVec &sizes = plan.sizes(), &to = plan.strides(0), &from = plan.strides(1);
  const int64_t planes = plan.numel() / (plane.rows * plane.columns);
  const int64_t strip = std::max<int64_t>(64, task_elements / plane.columns / 64 * 64);
  const int64_t strips = (plane.rows + strip - 1) / strip;
  const int64_t task = std::max<int64_t>(1, task_elements / (plane.rows * plane.columns));
  parallel_for(planes * strips, task, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const int64_t first = k % strips * strip;
      char* target = plan.data(0) + first * to[plane.across];
      const char* source = plan.data(1) + first * from[plane.across];
      int64_t rest = k / strips;
      for (size_t d = sizes.size() - 1; d-- > 0;) {
        if (d == plane.across) continue;
        target += rest % sizes[d] * to[d];
        source += rest % sizes[d] * from[d];
        rest /= sizes[d];
      }
      transpose_plane(target, to[plane.across], source, from.back(),
                      std::min(strip, plane.rows - first), plane.columns, size);
    }
  });
}

// Where one of the planes that two inner dimensions make begins.
char* plane_start(const LoopPlan& plan, int operand, int64_t number) {
  char* start = plan.data(operand);
  for (size_t d = plan.sizes().size() - 2; d-- > 0; number /= plan.sizes()[d])
    start += number % plan.sizes()[d] * plan.strides(operand)[d];
  return start;
}

// Whether a plan copies rows that are dense on both sides, and more than a few of them.
bool has_dense_rows(const LoopPlan& plan, int64_t size) {
  constexpr int64_t fewest = 8, shortest = 4, longest = 8192;  // of rows; of bytes
  const IntVec& sizes = plan.sizes();
  if (sizes.size() < 2 || plan.strides(0).back() != size || plan.strides(1).back() != size)
    return false;
  const int64_t bytes = sizes.back() * size;
  return sizes[sizes.size() - 2] >= fewest && bytes >= shortest && bytes <= longest;
}

void copy_dense_rows(const LoopPlan& plan, int64_t size) {
  const IntVec& sizes = plan.sizes();
  const size_t outer = sizes.size() - 2;
  const int64_t n = sizes.back(), rows = sizes[outer], planes = plan.numel() / (rows * n);
  const int64_t part = std::max<int64_t>(1, task_elements / n), parts = (rows + part - 1) / part;
  const int64_t together = std::max<int64_t>(1, task_elements / (rows * n));
  const int64_t to_step = plan.strides(0)[outer], from_step = plan.strides(1)[outer];
  const auto copy = FACULA_OF_ISA(copy_rows);
  parallel_for(planes * parts, together, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const int64_t first = k % parts * part;
      const char* from = plane_start(plan, 1, k / parts) + first * from_step;
      char* to = plane_start(plan, 0, k / parts) + first * to_step;
      copy({from, from_step, n * size}, std::min(part, rows - first), to, to_step);
    }
  });
}

template <class T>
void conj_row(const void*, char* const* data, const int64_t* steps, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const T v = *reinterpret_cast<const T*>(data[1] + i * steps[1]);
    *reinterpret_cast<T*>(data[0] + i * steps[0]) = conj(v);
  }
}
template <class T>
void negate_row(const void*, char* const* data, const int64_t* steps, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const T v = *reinterpret_cast<const T*>(data[1] + i * steps[1]);
    *reinterpret_cast<T*>(data[0] + i * steps[0]) = static_cast<T>(-v);
  }
}

// Changes signs by their bits: of complex32, whose parts have no arithmetic.
template <uint32_t signs>
void flip_row(const void*, char* const* data, const int64_t* steps, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<uint32_t*>(data[0] + i * steps[0]) =
        *reinterpret_cast<const uint32_t*>(data[1] + i * steps[1]) ^ signs;
}

void run_rows(const Tensor& dst, const Tensor& src, RowFn row) {
  LoopPlan plan(dst.sizes());
  plan.add(dst);
  plan.add(src);
  plan.simplify();
  plan.run_elementwise(row, nullptr);
}

void apply_bits(const Tensor& dst, bool conj, bool neg) {
  if (is_complex(dst.dtype()) && dst.itemsize() == 4) {
    if (conj) run_rows(dst, dst, &flip_row<0x80000000u>);
    if (neg) run_rows(dst, dst, &flip_row<0x80008000u>);
    return;
  }
  if (conj) {
    RowFn f = nullptr;
    dispatch<ComplexTypes>(dst.dtype(), "conj_cpu", [&]<class T>(Type<T>) { f = &conj_row<T>; });
    run_rows(dst, dst, f);
  }
  if (neg) {
    RowFn f = nullptr;
    dispatch<FloatingTypes, IntegralTypes, ComplexTypes>(
        dst.dtype(), "neg_cpu", [&]<class T>(Type<T>) { f = &negate_row<T>; });
    run_rows(dst, dst, f);
  }
}

// Elements of one dtype that share no memory in part.
void copy_elements(const Tensor& dst, const Tensor& src) {
  LoopPlan plan(dst.sizes());
  plan.add(dst);
  plan.add(src);
  plan.simplify();
  if (const auto plane = find_plane(plan, static_cast<int64_t>(dst.itemsize())))
    return copy_planes(plan, *plane, dst.itemsize());
  const auto size = static_cast<int64_t>(dst.itemsize());
  // Rows of one storage may overlap, each with its copy.
  if (!(dst->storage == src->storage) && has_dense_rows(plan, size))
    return copy_dense_rows(plan, size);
  plan.run_elementwise(FACULA_OF_ISA(mover)(dst.itemsize()), nullptr);
}

}  // namespace

void copy(const Tensor& dst, const Tensor& src, const char* op) {
  if (dst.numel() == 0) return;
  const bool moves = dst.dtype() == src.dtype() && src.dtype() != DType::Bool;
  const RowFn row = moves ? nullptr : FACULA_OF_ISA(converter)(src.dtype(), dst.dtype());
  if (!moves && !row)
    throw Error(ErrorKind::NotImplemented, op, "(): conversion from ", name(src.dtype()), " to ",
                name(dst.dtype()), " is not implemented");
  // dst may be src's own memory in another geometry: read it all first.
  if (memory_overlap(dst, src) == Overlap::Partial)
    return copy(dst, converted(src, src.dtype()), op);
  moves ? copy_elements(dst, src) : run_rows(dst, src, row);
  apply_bits(dst, is_complex(dst.dtype()) && dst->conj != src->conj, dst->neg != src->neg);
}

Tensor converted(const Tensor& t, DType to) {
  const bool dense = is_dense_non_overlapping(t.sizes(), t.strides());
  Tensor out = dense ? empty_strided_tensor(t.sizes(), t.strides(), to, t.device())
                     : empty_tensor(t.sizes(), to, t.device());
  copy(out, t);
  return out;
}

Tensor contiguous(const Tensor& t) {
  if (t.is_contiguous() && !t->conj && !t->neg) return t;
  Tensor out = empty_tensor(t.sizes(), t.dtype(), t.device());
  copy(out, t);
  return out;
}

Tensor contiguous_values(const Tensor& t) {
  if (t.dtype() != DType::Bool) return contiguous(t);
  const Tensor out = empty_tensor(t.sizes(), t.dtype(), t.device());
  copy(out, t);
  return out;
}

// A contiguous tensor: one row, without a plan.
static void fill_row(RowFn row, const void* element, const Tensor& t) {
  const auto item = static_cast<int64_t>(t.itemsize());
  char* const first = static_cast<char*>(t.data());
  parallel_for(t.numel(), task_elements, [&](int64_t begin, int64_t end) {
    char* at = first + begin * item;
    row(element, &at, &item, end - begin);
  });
}

void fill(const Tensor& t, const Scalar& value) {
  const int64_t n = t.numel();
  if (n == 0) return;
  alignas(16) char element[16] = {};
  const auto store = [&]<class T>(Type<T>) {
    const T v = value.to<T>();
    std::memcpy(element, &v, sizeof v);
  };
  // Of elements that nothing converts to, zeros are known: they are bytes of zero.
  const bool zero_bytes = value.is_integral() && value.to<int64_t>() == 0;
  if (!visit_elements(t.dtype(), store) && !zero_bytes) not_implemented_for("fill_cpu", t.dtype());
  const RowFn row = FACULA_OF_ISA(filler)(t.itemsize());
  if (t.is_contiguous()) return fill_row(row, element, t);
  LoopPlan plan(t.sizes());
  plan.add(t);
  plan.simplify();
  plan.run(row, element);
}

}  // namespace facula::cpu
