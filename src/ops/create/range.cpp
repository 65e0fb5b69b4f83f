// Tensors of evenly spaced numbers, identity matrices, indices of triangles.
#include "ops/create/range.h"

#include <algorithm>
#include <cmath>

#include "core/threads.h"
#include "dispatch/warnings.h"
#include "kernels/cpu/loop/convert.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/meta_rules.h"
#include "ops/reduce/cumulative.h"
#include "ops/shape/cat.h"
#include "ops/shape/repeat.h"
#include "ops/shape/stack.h"
#include "ops/shape/view.h"

namespace facula {
namespace {

constexpr int64_t task_elements = 16384;

// The dtype of an out= tensor, else the one asked for, else the fallback.
DType result_dtype(const Meta& m, std::optional<DType> dtype, DType fallback) {
  if (m.call.op->variant == Variant::Out)
    return m.call.args[m.call.info->base_args].as_tensor().dtype();
  return dtype.value_or(fallback);
}

// out[i] = f(i), converted; out is 1-d.
template <class F>
void fill_by_position(const Tensor& out, F&& f) {
  if (out.numel() == 0) return;
  const int64_t step = out.strides()[0];
  dispatch<FloatingTypes, IntegralTypes, bool, ComplexTypes>(
      out.dtype(), "range_cpu", [&]<class T>(Type<T>) {
        T* to = out.data<T>();
        parallel_for(out.numel(), task_elements, [&](int64_t begin, int64_t end) {
          if (step == 1)
            for (int64_t i = begin; i < end; ++i) to[i] = convert<T>(f(i));
          else
            for (int64_t i = begin; i < end; ++i) to[i * step] = convert<T>(f(i));
        });
      });
}
// out[i] = first + i * by in 64 bits, converted; sums become vectors where products do not.
void fill_by_steps(const Tensor& out, uint64_t first, uint64_t by) {
  const int64_t step = out.strides()[0];
  dispatch<FloatingTypes, IntegralTypes, bool, ComplexTypes>(
      out.dtype(), "range_cpu", [&]<class T>(Type<T>) {
        T* to = out.data<T>();
        parallel_for(out.numel(), task_elements, [&](int64_t begin, int64_t end) {
          uint64_t value = first + by * static_cast<uint64_t>(begin);
          if (step == 1)
            for (int64_t i = begin; i < end; ++i, value += by)
              to[i] = convert<T>(static_cast<int64_t>(value));
          else
            for (int64_t i = begin; i < end; ++i, value += by)
              to[i * step] = convert<T>(static_cast<int64_t>(value));
        });
      });
}
void check_arithmetic(const char* kernel, DType d) {
  if (!visit_arithmetic(d, [](auto) {})) not_implemented_for(kernel, d);
}

// --- arange and range

void check_bounds(const Scalar& start, const Scalar& end, const Scalar& step) {
  const double a = start.to<double>(), b = end.to<double>(), s = step.to<double>();
  check(s > 0 || s < 0, "step must be nonzero");
  check(std::isfinite(a) && std::isfinite(b), "unsupported range: ", start.str(), " -> ",
        end.str());
  check((s > 0 && b >= a) || (s < 0 && b <= a),
        "arange(): step must lead from start to end; got start ", a, ", end ", b, " and step ", s);
}

int64_t arange_length(const Scalar& start, const Scalar& end, const Scalar& step) {
  double n;
  if (start.is_integral() && end.is_integral() && step.is_integral()) {
    const __int128 s = step.to<int64_t>(), sign = (s > 0) - (s < 0);
    check(s != 0, "step must be nonzero");
    n = static_cast<double>(
        (static_cast<__int128>(end.to<int64_t>()) - start.to<int64_t>() + s - sign) / s);
  } else {
    n = std::ceil((end.to<double>() - start.to<double>()) / step.to<double>());
  }
  check(n >= 0 && n <= 0x1p62, "invalid size, possible overflow?");
  return static_cast<int64_t>(n);
}

void meta_arange(Meta& m, const Scalar& start, const Scalar& end, const Scalar& step,
                 std::optional<DType> dtype) {
  const bool whole = start.is_integral() && end.is_integral() && step.is_integral();
  const DType d = result_dtype(m, dtype, whole ? DType::Int64 : default_dtype());
  check_bounds(start, end, step);
  check(!is_complex(d), "\"arange_cpu\" not implemented for '", info(d).legacy_name, "'");
  const int64_t n = arange_length(start, end, step);
  // An out= tensor that already has so many elements keeps its shape.
  if (m.call.op->variant == Variant::Out &&
      m.call.args[m.call.info->base_args].as_tensor().numel() == n)
    return m.result(0, m.call.args[m.call.info->base_args].as_tensor().sizes(), d);
  m.result(0, {&n, 1}, d);
}
void fill_progression(const Tensor& out, const Scalar& start, const Scalar& step) {
  if (out.numel() == 0) return;
  check_arithmetic("arange_cpu", out.dtype());
  const Tensor flat = ops::view(out, {-1});
  if (is_integral(out.dtype(), true)) {
    const uint64_t a = static_cast<uint64_t>(start.to<int64_t>()),
                   s = static_cast<uint64_t>(step.to<int64_t>());
    return fill_by_steps(flat, a, s);
  }
  const double a = start.to<double>(), s = step.to<double>();
  fill_by_position(flat, [=](int64_t i) { return a + s * static_cast<double>(i); });
}

using Dtype = std::optional<DType>;
using Where = std::optional<Layout>;
using On = std::optional<Device>;
using Pin = std::optional<bool>;

void meta_arange_step(Meta& m, const Scalar& start, const Scalar& end, const Scalar& step,
                      Dtype dtype, Where, On, Pin) {
  meta_arange(m, start, end, step, dtype);
}
void arange_step(const Scalar& start, const Scalar&, const Scalar& step, Dtype, Where, On, Pin,
                 const Tensor& out) {
  fill_progression(out, start, step);
}
void meta_arange_start(Meta& m, const Scalar& start, const Scalar& end, Dtype dtype, Where, On,
                       Pin) {
  meta_arange(m, start, end, 1, dtype);
}
void arange_start(const Scalar& start, const Scalar&, Dtype, Where, On, Pin, const Tensor& out) {
  fill_progression(out, start, 1);
}
void meta_arange_end(Meta& m, const Scalar& end, Dtype dtype, Where, On, Pin) {
  meta_arange(m, 0, end, 1, dtype);
}
void arange_end(const Scalar&, Dtype, Where, On, Pin, const Tensor& out) {
  fill_progression(out, 0, 1);
}

void meta_range(Meta& m, const Scalar& start, const Scalar& end, const Scalar& step, Dtype dtype,
                Where, On, Pin) {
  const DType d = result_dtype(m, dtype, default_dtype());
  check_bounds(start, end, step);
  const double count = std::floor((end.to<double>() - start.to<double>()) / step.to<double>());
  check(count < 0x1p62, "invalid size, possible overflow?");
  const int64_t n = static_cast<int64_t>(count) + 1;
  m.result(0, {&n, 1}, d);
  warn("range(): is deprecated in favour of arange, whose numbers leave out end as Python's do");
}
void meta_range_end(Meta& m, const Scalar& start, const Scalar& end, Dtype dtype, Where w, On on,
                    Pin p) {
  meta_range(m, start, end, 1, dtype, w, on, p);
}

// --- linspace and logspace

void check_spacing(DType given, const Scalar& start, const Scalar& end, const char* op) {
  check(is_complex(given) || !(start.is_complex() || end.is_complex()), op, "(): inferred dtype ",
        name(complex_of(default_dtype())), " can't be safely cast to passed dtype ", name(given));
}
void meta_spacing(Meta& m, const Scalar& start, const Scalar& end, int64_t steps, Dtype dtype) {
  const bool complex = start.is_complex() || end.is_complex();
  const DType d = result_dtype(m, dtype, complex ? complex_of(default_dtype()) : default_dtype());
  if (dtype) check_spacing(d, start, end, ("torch." + m.op_name()).c_str());
  check(steps >= 0, "number of steps must not be negative; got ", steps);
  m.result(0, {&steps, 1}, d);
}

// Spaced in type C; the second half counts from the end, so that both ends are exact.
template <class C, class F>
void fill_spaced(const Tensor& out, C start, C end, F&& f) {
  const int64_t n = out.numel(), half = n / 2;
  if (n == 1) return fill_by_position(out, [&](int64_t) { return f(start); });
  const C step = (end - start) / C(static_cast<double>(n - 1));
  fill_by_position(out, [&](int64_t i) {
    const bool first = i < half;
    const C far = step * C(static_cast<double>(first ? i : n - 1 - i));
    return f(first ? start + far : end - far);
  });
}
// The same numbers for neighbours of a type that needs no conversion: positions of 32 bits become
// vectors.
template <class C>
void fill_spaced_row(C* to, int64_t n, C start, C end) {
  const C step = (end - start) / static_cast<C>(n - 1);
  const auto half = static_cast<int32_t>(n / 2), last = static_cast<int32_t>(n - 1);
  parallel_for(n, task_elements, [&](int64_t begin, int64_t end_of_task) {
    const auto stop = static_cast<int32_t>(end_of_task);
    auto i = static_cast<int32_t>(begin);
    for (const int32_t middle = std::min(half, stop); i < middle; ++i)
      to[i] = start + step * static_cast<C>(i);
    for (; i < stop; ++i) to[i] = end - step * static_cast<C>(last - i);
  });
}
template <class F>
void visit_spacing(const Tensor& out, const Scalar& start, const Scalar& end, F&& fill) {
  if (out.numel() == 0) return;
  if (is_complex(out.dtype())) return fill(start.to<complex128>(), end.to<complex128>());
  if (out.dtype() == DType::Float32 || is_reduced_float(out.dtype()))
    return fill(start.to<float>(), end.to<float>());
  // Integer results start from whole numbers.
  if (is_integral(out.dtype(), true))
    return fill(static_cast<double>(start.to<int64_t>()), static_cast<double>(end.to<int64_t>()));
  fill(start.to<double>(), end.to<double>());
}
void fill_linspace(const Tensor& out, const Scalar& start, const Scalar& end) {
  check_arithmetic("linspace_cpu", out.dtype());
  const int64_t n = out.numel();
  visit_spacing(out, start, end, [&]<class C>(C a, C b) {
    if constexpr (std::is_floating_point_v<C>)
      if (out.dtype() == dtype_of<C> && n > 1 && n <= INT32_MAX && out.is_contiguous())
        return fill_spaced_row(out.data<C>(), n, a, b);
    fill_spaced(out, a, b, [](auto v) { return v; });
  });
}
void fill_logspace(const Tensor& out, const Scalar& start, const Scalar& end, double base) {
  check_arithmetic("logspace_cpu", out.dtype());
  visit_spacing(out, start, end, [&]<class C>(C a, C b) {
    if constexpr (is_complex_v<C>)
      fill_spaced(out, a, b, [base](C v) {
        return C(std::pow(std::complex<double>(base, 0), std::complex<double>(v)));
      });
    else
      fill_spaced(out, static_cast<double>(a), static_cast<double>(b),
                  [base](double v) { return std::pow(base, v); });
  });
}

// A bound given as a 0-dim tensor or a number.
Scalar bound(const Value& v) { return v.is_tensor() ? ops::item(v.as_tensor()) : v.as_scalar(); }
void check_bound(const char* op, const char* which, const Value& v) {
  if (v.is_tensor())
    check(v.as_tensor().dim() == 0, op, "(): start and end must be 0-dimensional; got ", which,
          " with ", v.as_tensor().dim(), " dimensions");
}

void meta_linspace(Meta& m, const Value& start, const Value& end, int64_t steps, Dtype dtype, Where,
                   On, Pin) {
  check_bound("linspace", "start", start);
  check_bound("linspace", "end", end);
  meta_spacing(m, bound(start), bound(end), steps, dtype);
}
void linspace(const Value& start, const Value& end, int64_t, Dtype, Where, On, Pin,
              const Tensor& out) {
  fill_linspace(out, bound(start), bound(end));
}
void meta_logspace(Meta& m, const Value& start, const Value& end, int64_t steps, double,
                   Dtype dtype, Where, On, Pin) {
  check_bound("logspace", "start", start);
  check_bound("logspace", "end", end);
  meta_spacing(m, bound(start), bound(end), steps, dtype);
}
void logspace(const Value& start, const Value& end, int64_t, double base, Dtype, Where, On, Pin,
              const Tensor& out) {
  fill_logspace(out, bound(start), bound(end), base);
}

// --- matrices

void meta_eye_m(Meta& m, int64_t rows, int64_t columns, Dtype dtype, Where, On, Pin) {
  check(rows >= 0, "eye(): n must not be negative; got ", rows);
  check(columns >= 0, "eye(): m must not be negative; got ", columns);
  m.result(0, IntList{rows, columns}, result_dtype(m, dtype, default_dtype()));
}
void meta_eye(Meta& m, int64_t n, Dtype dtype, Where w, On on, Pin p) {
  meta_eye_m(m, n, n, dtype, w, on, p);
}
void fill_identity(const Tensor& out) {
  cpu::fill(out, 0);
  const int64_t n = std::min(out.sizes()[0], out.sizes()[1]),
                step = out.strides()[0] + out.strides()[1];
  cpu::fill(alias_tensor(out, {&n, 1}, {&step, 1}, out.storage_offset()), 1);
}
void eye(int64_t, Dtype, Where, On, Pin, const Tensor& out) { fill_identity(out); }
void eye_m(int64_t, int64_t, Dtype, Where, On, Pin, const Tensor& out) { fill_identity(out); }

// Columns of a row that belong to the triangle: [first, last).
struct Span {
  int64_t first, last;
};
template <bool lower>
Span triangle_row(int64_t row, int64_t columns, int64_t offset) {
  const __int128 edge = static_cast<__int128>(row) + offset;  // the diagonal's column
  if (lower) return {0, static_cast<int64_t>(std::clamp<__int128>(edge + 1, 0, columns))};
  return {static_cast<int64_t>(std::clamp<__int128>(edge, 0, columns)), columns};
}
// Rows that have any element of the triangle.
template <bool lower>
Span triangle_rows(int64_t rows, int64_t columns, int64_t offset) {
  if (columns == 0) return {0, 0};
  const __int128 shift = offset;
  if (lower) return {static_cast<int64_t>(std::clamp<__int128>(-shift, 0, rows)), rows};
  return {0, static_cast<int64_t>(std::clamp<__int128>(columns - shift, 0, rows))};
}
// Elements on and below a diagonal: rows that grow by one, then whole ones.
__int128 lower_count(int64_t rows, int64_t columns, __int128 offset) {
  const __int128 growing = std::clamp<__int128>(-offset, 0, rows),
                 whole = std::clamp<__int128>(columns - offset - 1, growing, rows);
  return (whole - growing) * (growing + whole + 1 + 2 * offset) / 2 + (rows - whole) * columns;
}
template <bool lower>
int64_t triangle_count(int64_t rows, int64_t columns, int64_t offset) {
  const __int128 shift = offset;
  const __int128 n =
      lower ? lower_count(rows, columns, shift)
            : static_cast<__int128>(rows) * columns - lower_count(rows, columns, shift - 1);
  check(n <= INT64_MAX / 2, "a triangle of ", rows, " rows and ", columns,
        " columns has too many elements");
  return static_cast<int64_t>(n);
}
template <bool lower>
void meta_triangle(Meta& m, int64_t row, int64_t col, int64_t offset, Dtype dtype, Where, On, Pin) {
  check(row >= 0, "row must be non-negative, got", row);
  check(col >= 0, "col must be non-negative, got", col);
  m.result(0, IntList{2, triangle_count<lower>(row, col, offset)}, dtype.value_or(DType::Int64));
}
template <bool lower>
void triangle(int64_t row, int64_t col, int64_t offset, Dtype, Where, On, Pin, const Tensor& out) {
  const Tensor wide = out.dtype() == DType::Int64 ? out : empty_tensor(out.sizes(), DType::Int64);
  int64_t* to = wide.data<int64_t>();
  const int64_t n = out.sizes()[1];
  const Span rows = triangle_rows<lower>(row, col, offset);
  for (int64_t r = rows.first, at = 0; r < rows.last; ++r) {
    const Span s = triangle_row<lower>(r, col, offset);
    for (int64_t c = s.first; c < s.last; ++c, ++at) {
      to[at] = r;
      to[n + at] = c;
    }
  }
  if (!wide.is_same(out)) cpu::copy(out, wide);
}

// Powers of each element along a new last dimension, from the zeroth up.
Tensor powers(const Tensor& x, int64_t count) {
  if (count == 0) {
    IntVec sizes(x.sizes());
    sizes.push_back(0);
    return ops::new_empty(x, sizes);
  }
  IntVec sizes(x.sizes());
  sizes.push_back(1);
  const Tensor column = ops::unsqueeze(x, -1), zeroth = ops::new_ones(x, sizes);
  if (count == 1) return zeroth;
  sizes.back() = count - 1;
  const Tensor parts[] = {zeroth, ops::cumprod(ops::expand(column, sizes), -1)};
  return ops::cat(parts, -1);
}
Tensor counted(const Tensor& x) {
  return is_integral(x.dtype(), true) ? ops::to(x, DType::Int64) : x;
}
Tensor vander(const Tensor& x, std::optional<int64_t> N, bool increasing) {
  check(x.dim() == 1, "vander(): x must have 1 dimension; got ", x.dim());
  const int64_t n = N.value_or(x.numel());
  check(n >= 0, "N must be non-negative.");
  const Tensor t = powers(counted(x), n);
  return increasing ? t : ops::flip(t, {1});
}
Tensor linalg_vander(const Tensor& x, std::optional<int64_t> N) {
  check_kind(ErrorKind::NotImplemented, x.dtype() != DType::Bool && !is_reduced_float(x.dtype()),
             "linalg.vander(): x must be an integer, complex, float32 or float64 tensor; got ",
             name(x.dtype()));
  if (x.dim() == 0) return linalg_vander(ops::unsqueeze(x, 0), N);
  const int64_t n = N.value_or(x.sizes().back());
  check(n > 1, "N must be greater than 1.");
  return powers(counted(x), n);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(arange_start_step){
    .schema =
        "arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, "
        "Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc =
        "The numbers start, start + step, ... below end: int64 when all are whole, else the "
        "default dtype.",
    .forms = function | out,
    .out_name = "start_out",
    .flags = factory,
    .meta = typed_meta<meta_arange_step>,
    .cpu = typed_kernel<arange_step>,
};
OP(arange_start){
    .schema =
        "arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .doc = "The numbers start, start + 1, ... below end.",
    .flags = factory,
    .meta = typed_meta<meta_arange_start>,
    .cpu = typed_kernel<arange_start>,
};
OP(arange){
    .schema =
        "arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .doc = "The numbers 0, 1, ... below end.",
    .forms = function | out,
    .flags = factory,
    .meta = typed_meta<meta_arange_end>,
    .cpu = typed_kernel<arange_end>,
};
OP(range_step){
    .schema =
        "range.step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? "
        "layout=None, "
        "Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc = "The numbers start, start + step, ... up to and including end, in the default dtype.",
    .forms = function | out,
    .out_name = "out",
    .flags = factory,
    .meta = typed_meta<meta_range>,
    .cpu = typed_kernel<arange_step>,
};
OP(range){
    .schema =
        "range(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? "
        "device=None, "
        "bool? pin_memory=None) -> Tensor",
    .doc = "The numbers start, start + 1, ... up to and including end, in the default dtype.",
    .flags = factory,
    .meta = typed_meta<meta_range_end>,
    .cpu = typed_kernel<arange_start>,
};
OP(linspace){
    .schema =
        "linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? "
        "layout=None, "
        "Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc = "`steps` numbers evenly spaced from start to end, both included.",
    .forms = function | out,
    .flags = factory,
    .meta = typed_meta<meta_linspace>,
    .cpu = typed_kernel<linspace>,
};
OP(linspace_Tensor_Tensor){
    .schema =
        "linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, ScalarType? dtype=None, "
        "Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc =
        "`steps` numbers evenly spaced from start to end, both included; bounds may be 0-dim "
        "tensors.",
    .forms = function | out,
    .flags = factory,
    .meta = typed_meta<meta_linspace>,
    .cpu = typed_kernel<linspace>,
    .not_differentiable = names("start", "end", "result"),
    .hole = "vmap: samples are done one by one",
};
OP(linspace_Tensor_Scalar){
    .schema =
        "linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, *, ScalarType? dtype=None, "
        "Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc =
        "`steps` numbers evenly spaced from start to end, both included; bounds may be 0-dim "
        "tensors.",
    .forms = function | out,
    .flags = factory,
    .meta = typed_meta<meta_linspace>,
    .cpu = typed_kernel<linspace>,
    .not_differentiable = names("start", "end", "result"),
    .hole = "vmap: samples are done one by one",
};
OP(linspace_Scalar_Tensor){
    .schema =
        "linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, *, ScalarType? dtype=None, "
        "Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc =
        "`steps` numbers evenly spaced from start to end, both included; bounds may be 0-dim "
        "tensors.",
    .forms = function | out,
    .flags = factory,
    .meta = typed_meta<meta_linspace>,
    .cpu = typed_kernel<linspace>,
    .not_differentiable = names("start", "end", "result"),
    .hole = "vmap: samples are done one by one",
};
OP(logspace){
    .schema =
        "logspace(Scalar start, Scalar end, int steps, float base=10., *, ScalarType? dtype=None, "
        "Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc = "Powers of base, with `steps` exponents evenly spaced from start to end.",
    .forms = function | out,
    .flags = factory,
    .meta = typed_meta<meta_logspace>,
    .cpu = typed_kernel<logspace>,
};
OP(logspace_Tensor_Tensor){
    .schema =
        "logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10., *, "
        "ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc =
        "Powers of base, with `steps` exponents evenly spaced from start to end; bounds may be "
        "0-dim tensors.",
    .forms = function | out,
    .flags = factory,
    .meta = typed_meta<meta_logspace>,
    .cpu = typed_kernel<logspace>,
    .not_differentiable = names("start", "end", "result"),
    .hole = "vmap: samples are done one by one",
};
OP(logspace_Tensor_Scalar){
    .schema =
        "logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10., *, "
        "ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc =
        "Powers of base, with `steps` exponents evenly spaced from start to end; bounds may be "
        "0-dim tensors.",
    .forms = function | out,
    .flags = factory,
    .meta = typed_meta<meta_logspace>,
    .cpu = typed_kernel<logspace>,
    .not_differentiable = names("start", "end", "result"),
    .hole = "vmap: samples are done one by one",
};
OP(logspace_Scalar_Tensor){
    .schema =
        "logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10., *, "
        "ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None) -> Tensor",
    .doc =
        "Powers of base, with `steps` exponents evenly spaced from start to end; bounds may be "
        "0-dim tensors.",
    .forms = function | out,
    .flags = factory,
    .meta = typed_meta<meta_logspace>,
    .cpu = typed_kernel<logspace>,
    .not_differentiable = names("start", "end", "result"),
    .hole = "vmap: samples are done one by one",
};
OP(eye){
    .schema =
        "eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
        "pin_memory=None) -> Tensor",
    .doc = "The identity matrix of n rows.",
    .forms = function | out,
    .flags = factory,
    .meta = typed_meta<meta_eye>,
    .cpu = typed_kernel<eye>,
};
OP(eye_m){
    .schema =
        "eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? layout=None, Device? "
        "device=None, "
        "bool? pin_memory=None) -> Tensor",
    .doc = "A matrix of n rows and m columns with ones on its diagonal.",
    .forms = function | out,
    .flags = factory,
    .meta = typed_meta<meta_eye_m>,
    .cpu = typed_kernel<eye_m>,
};
OP(tril_indices){
    .schema =
        "tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? "
        "layout=None, Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .doc = "Rows and columns of the elements of a matrix's lower triangle, in two rows.",
    .flags = factory,
    .meta = typed_meta<meta_triangle<true>>,
    .cpu = typed_kernel<triangle<true>>,
};
OP(triu_indices){
    .schema =
        "triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? "
        "layout=None, Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .doc = "Rows and columns of the elements of a matrix's upper triangle, in two rows.",
    .flags = factory,
    .meta = typed_meta<meta_triangle<false>>,
    .cpu = typed_kernel<triangle<false>>,
};
OP(vander){
    .schema = "vander(Tensor x, int? N=None, bool increasing=False) -> Tensor",
    .doc = "The matrix of powers of a 1-d tensor's elements, highest first unless increasing.",
    .composite = Composite::Implicit,
    .any = typed_kernel<vander>,
};
OP(linalg_vander){
    .schema = "linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor",
    .doc = "Powers of each element along a new last dimension, from the zeroth up.",
    .python_module = "linalg",
    .composite = Composite::Implicit,
    .any = typed_kernel<linalg_vander>,
};
