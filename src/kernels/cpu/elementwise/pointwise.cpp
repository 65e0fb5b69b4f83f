#include "kernels/cpu/elementwise/pointwise.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <tuple>

#include "core/debug.h"
#include "core/threads.h"
#include "kernels/cpu/elementwise/described_loop.h"
#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/loop/loop.h"

namespace facula::cpu {
namespace {

constexpr int most_inputs = LoopOfCall::most_inputs, most_params = LoopOfCall::most_params;
thread_local constinit LoopOfCall* described __attribute__((tls_model("initial-exec"))) = nullptr;

// An input as the loop reads it: tensors of the compute dtype, numbers in a cell of the frame.
struct Inputs {
  Tensor converted[most_inputs];
  const Tensor* tensor[most_inputs] = {};
  alignas(16) char cells[most_inputs][16];
  int count = 0;
  bool exact_number = false;  // the second is a number, in the type that arithmetic happens in
};

LoopFn loop_by_number(const LoopTable& t, DType d) {
  if (d == DType::Float16) return t.half_by_number;
  return d == DType::BFloat16 ? t.bfloat16_by_number : nullptr;
}

LoopFn loop_for(const LoopTable& t, DType d, const char* op) {
  const LoopFn f = t.by_dtype[loop_slot(d)];
  if (!f) [[unlikely]]
    throw Error(ErrorKind::NotImplemented, "\"", op, "_cpu\" not implemented for '",
                info(d).legacy_name, "'");
  return f;
}

struct RowContext {
  LoopFn loop;
  const void* params;
};
void row(const void* context, char* const* data, const int64_t* steps, int64_t n) {
  const auto* c = static_cast<const RowContext*>(context);
  c->loop(data, steps, n, c->params);
}

// However dear a function is: fewer elements are never shared out.
constexpr int64_t least_task = 256;

// Every tensor input has the result's very shape and both are contiguous (or is one element).
bool run_contiguous(LoopFn loop, const Tensor& out, const Inputs& in, const void* params,
                    int64_t grain) {
  const int64_t n = out.numel();
  int64_t steps[1 + most_inputs];
  char* data[1 + most_inputs];
  if (n == 0) return true;  // the offset of an empty input may be any number
  if (!out.is_contiguous()) return false;
  steps[0] = static_cast<int64_t>(out.itemsize());
  for (int k = 0; k < in.count; ++k) {
    const Tensor* t = in.tensor[k];
    if (!t || t->numel() == 1) {
      steps[k + 1] = 0;
      data[k + 1] = t ? static_cast<char*>(t->data()) : const_cast<char*>(in.cells[k]);
      continue;
    }
    if (!t->is_contiguous() || !same_sizes(t->sizes(), out.sizes())) return false;
    steps[k + 1] = static_cast<int64_t>(t->itemsize());
    data[k + 1] = static_cast<char*>(t->data());
  }
  data[0] = static_cast<char*>(out.data());
  if (n <= grain) {
    loop(data, steps, n, params);
    return true;
  }
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    char* at[1 + most_inputs];
    for (int k = 0; k <= in.count; ++k) at[k] = data[k] + begin * steps[k];
    loop(at, steps, end - begin, params);
  });
  return true;
}

// A few rows of broadcast inputs, one after the other: a plan would cost more than they do.
class FewRows {
 public:
  FewRows(const Tensor& out, const Inputs& in) : sizes_(out.sizes()), operands_(in.count + 1) {
    const bool few = out.dim() > 0 && out.dim() <= most_dims && out.numel() <= least_task;
    if (!few || !out.is_contiguous() || out.numel() > most_rows * sizes_.back()) return;
    fits_ = true;
    add(0, &out, nullptr);
    for (int k = 0; k < in.count; ++k) add(k + 1, in.tensor[k], in.cells[k]);
  }
  bool fits() const { return fits_; }
  void run(LoopFn loop, const void* params) {
    do loop(data_, steps_[sizes_.size() - 1], sizes_.back(), params);
    while (advance());
  }

 private:
  static constexpr int64_t most_dims = 4, most_rows = 16;

  // An operand's step in each dimension, in bytes; a cell is read by every element.
  void add(int k, const Tensor* t, const char* cell) {
    data_[k] = t ? static_cast<char*>(t->data()) : const_cast<char*>(cell);
    const size_t missing = sizes_.size() - (t ? t->sizes().size() : 0);
    for (size_t d = 0; d < sizes_.size(); ++d) {
      const bool steps = d >= missing && t->sizes()[d - missing] != 1;
      steps_[d][k] =
          steps ? t->strides()[d - missing] * static_cast<int64_t>(t->itemsize()) : int64_t{0};
    }
  }
  // To the next row; false after the last.
  bool advance() {
    for (size_t d = sizes_.size() - 1; d-- > 0;) {
      const bool more = ++at_[d] < sizes_[d];
      const int64_t steps = more ? 1 : 1 - sizes_[d];
      for (int k = 0; k < operands_; ++k) data_[k] += steps * steps_[d][k];
      if (more) return true;
      at_[d] = 0;
    }
    return false;
  }

  const IntSpan sizes_;
  const int operands_;
  bool fits_ = false;
  int64_t at_[most_dims] = {};
  int64_t steps_[most_dims][1 + most_inputs];
  char* data_[1 + most_inputs];
};

void run(const LoopTable& table, DType compute, const Tensor& out, const Inputs& in,
         const void* params, const char* op) {
  const LoopFn loop =
      in.exact_number ? loop_by_number(table, compute) : loop_for(table, compute, op);
  const int64_t grain = out.numel() <= least_task ? least_task : pointwise_grain(table, compute);
  if (run_contiguous(loop, out, in, params, grain))
    return debug::print_route("elementwise: contiguous memory, split over threads");
  if (FewRows rows(out, in); rows.fits()) {
    debug::print_route("elementwise: a few rows");
    return rows.run(loop, params);
  }
  debug::print_route("elementwise: loops over merged dimensions");
  LoopPlan plan(out.sizes());
  plan.add(out);
  for (int k = 0; k < in.count; ++k) {
    if (in.tensor[k])
      plan.add(*in.tensor[k]);
    else
      plan.add_constant(in.cells[k]);
  }
  plan.simplify();
  const RowContext context{loop, params};
  plan.run_elementwise(row, &context, grain);
}

}  // namespace

int64_t pointwise_grain(const LoopTable& table, DType compute) {
  constexpr int64_t picoseconds = 2'100'000;  // of a task
  if (table.cost == 0) return task_elements;
  // Doubles take two vectors for one, and longer polynomials.
  const bool wide = compute == DType::Float64 || is_complex(compute);
  const auto fitting = static_cast<uint64_t>(picoseconds / (table.cost * (wide ? 3 : 1)));
  return std::clamp(static_cast<int64_t>(std::bit_floor(fitting)), least_task, task_elements);
}

void store_number(const Scalar& s, DType compute, void* room) {
  dispatch<FloatingTypes, IntegralTypes, bool, ComplexTypes, WideUnsignedTypes>(
      compute, "elementwise", [&]<class T>(Type<T>) { *static_cast<T*>(room) = s.to<T>(); });
}

void check_fits(const Scalar& s, DType d) {
  auto refuse = [&] {
    throw Error(ErrorKind::Runtime, "value cannot be converted to type ", name(d),
                " without overflow");
  };
  if (s.is_complex() && !is_complex(d) && s.to<complex128>().im != 0) refuse();
  auto in_range = [&]<class T>(Type<T>) {
    constexpr auto most = std::numeric_limits<T>::max();
    const double v = s.to<double>();
    const double low = std::is_signed_v<T> ? static_cast<double>(std::numeric_limits<T>::lowest())
                                           : -static_cast<double>(most);
    if (!(v >= low && v <= static_cast<double>(most))) refuse();
  };
  if (visit_integral(d, in_range) || visit_types<uint16_t, uint32_t>(d, in_range)) return;
  if (!is_floating(d)) return;
  const double v = s.to<double>();
  std::ignore = visit_floating(d, [&]<class T>(Type<T>) {
    if (__builtin_isfinite(v) && __builtin_isinf(static_cast<float>(convert<T>(v))) &&
        sizeof(T) < 8)
      refuse();
  });
}

Scalar saturated(const Scalar& s, DType d) {
  Scalar near = s;
  auto bring = [&]<class T>(Type<T>) {
    const double v = s.to<double>();
    if (v < static_cast<double>(std::numeric_limits<T>::lowest()))
      near = static_cast<int64_t>(std::numeric_limits<T>::lowest());
    if (v > static_cast<double>(std::numeric_limits<T>::max()))
      near = static_cast<int64_t>(std::numeric_limits<T>::max());
  };
  std::ignore = visit_integral(d, bring) || visit_types<uint16_t, uint32_t>(d, bring);
  return near;
}

namespace {

void pack_one(const Scalar& s, DType wide, int k, char* packed) {
  check_fits(s, wide);
  alignas(16) char cell[16];
  store_number(s, wide, cell);
  __builtin_memcpy(packed + static_cast<size_t>(k) * itemsize(wide), cell, itemsize(wide));
}

// The nearest number that a half type has, RuntimeError beyond; of other dtypes the number itself.
Scalar narrowed(const Scalar& s, DType d) {
  if (d != DType::Float16 && d != DType::BFloat16) return s;
  check_fits(s, d);
  const float near =
      d == DType::Float16 ? static_cast<float>(s.to<Half>()) : static_cast<float>(s.to<BFloat16>());
  return static_cast<double>(near);
}

// Parameters, one after the other, in the type that arithmetic happens in.
void pack_params(const LoopTable& table, const OpCall& c, DType compute, char* packed) {
  const DType wide = compute_of(compute);
  for (int k = 0; k < table.params; ++k) {
    const Value& v = c.args[table.inputs + k];
    const bool exact = v.tag == Tag::Int && (v.i == 1 || !table.narrow_params);
    if (wide == DType::Float32 && exact) [[likely]] {  // alpha=1 of every addition
      const float f = static_cast<float>(v.i);
      __builtin_memcpy(packed + 4 * k, &f, 4);
      continue;
    }
    const Scalar s = v.as_scalar();
    pack_one(table.narrow_params ? narrowed(s, compute) : s, wide, k, packed);
  }
}

// The dtype that a table's loops compute `d` in: complex64 for complex32, which has none.
DType dtype_of_loop(const LoopTable& table, DType d) {
  const bool wider = d == DType::Complex32 && !table.by_dtype[loop_slot(d)] &&
                     table.by_dtype[loop_slot(DType::Complex64)];
  return wider ? DType::Complex64 : d;
}
DType compute_dtype(const LoopTable& table, const OpCall& c) {
  const DType d = c.compute == DType::Undefined ? c.results[0].as_tensor().dtype() : c.compute;
  return dtype_of_loop(table, d);
}

// What a loop in complex64 fills for a result of complex32, or of the real numbers of one; and a
// loop in float32 for one of float8.
class LoopResult {
 public:
  LoopResult(const Tensor& result, DType compute) : result_(result), filled_(result) {
    const DType d = result.dtype();
    if (compute == DType::Complex64 && d == DType::Complex32) fill_in(DType::Complex64);
    if (compute == DType::Complex64 && d == DType::Float16) fill_in(DType::Float32);
    if (compute == DType::Float32 && is_float8(d)) fill_in(DType::Float32);
  }
  const Tensor& tensor() const { return filled_; }
  void store() const {
    if (!filled_.is_same(result_)) copy(result_, filled_);
  }

 private:
  void fill_in(DType d) { filled_ = empty_strided_tensor(result_.sizes(), result_.strides(), d); }

  const Tensor& result_;
  Tensor filled_;
};

// The common small case, before anything else is set up: contiguous tensors of one dtype and size.
bool run_plain(const LoopTable& table, const OpCall& c, const Tensor& out, DType compute) {
  const int64_t n = out.numel();
  if (n == 0 || !out->contiguous) return false;
  if (n > least_task && n > pointwise_grain(table, compute)) return false;
  char* data[1 + most_inputs];
  int64_t steps[1 + most_inputs];
  for (int k = 0; k < table.inputs; ++k) {
    const Value& v = c.args[k];
    if (!v.is_tensor()) return false;
    const TensorImpl& t = *v.tensor;
    if (t.dtype != compute || t.numel != n || !t.contiguous || t.ndim != out->ndim) return false;
    steps[k + 1] = static_cast<int64_t>(itemsize(compute));
    data[k + 1] = static_cast<char*>(t.storage->data()) + t.offset * steps[k + 1];
  }
  const LoopFn loop = loop_for(table, compute, c.info->schema.name.c_str());
  char packed[most_params * 16];
  if (table.params) pack_params(table, c, compute, packed);
  data[0] = static_cast<char*>(out.data());
  steps[0] = static_cast<int64_t>(out.itemsize());
  loop(data, steps, n, packed);
  return true;
}

// The second operand is not converted where it is a number or one element of another dtype.
bool store_exact(const LoopTable& table, const Value& v, DType compute, Inputs& in) {
  if (!loop_by_number(table, compute)) return false;
  if (v.is_tensor() && (v.as_tensor().dim() != 0 || v.as_tensor().dtype() == compute)) return false;
  in.exact_number = true;
  if (v.is_tensor())
    __builtin_memcpy(in.cells[1], converted(v.as_tensor(), DType::Float32).data(), sizeof(float));
  else
    store_number(v.as_scalar(), DType::Float32, in.cells[1]);
  return true;
}

// Fills in what run_general() would run; no loop where an operand would have to be converted.
// `positions` are those of the inputs among the arguments; none: the first ones.
void describe(const LoopTable& table, const OpCall& c, std::span<const int> positions,
              DType compute, const void* packed) {
  LoopOfCall& d = *described;
  Inputs in;
  for (int k = 0; k < table.inputs; ++k) {
    LoopOfCall::Input& to = d.in[k];
    const int at = positions.empty() ? k : positions[static_cast<size_t>(k)];
    const Value& v = c.args[at];
    if (v.is_tensor()) {  // not to be read now
      if (v.as_tensor().dtype() != compute) return;
      to.arg = at;
    } else if (k == 1 && store_exact(table, v, compute, in)) {
      __builtin_memcpy(to.cell, in.cells[k], sizeof(to.cell));
    } else {
      store_number(v.as_scalar(), compute, to.cell);
    }
  }
  d.inputs = table.inputs;
  __builtin_memcpy(d.params, packed, sizeof(d.params));
  d.grain = pointwise_grain(table, compute);
  d.function = table.function;
  d.compute = compute;
  d.by_number = in.exact_number;
  d.loop = in.exact_number ? loop_by_number(table, compute)
                           : loop_for(table, compute, c.info->schema.name.c_str());
}

void run_general(const LoopTable& table, const OpCall& c, const Value* inputs, DType compute,
                 const void* packed) {
  Inputs in;
  in.count = table.inputs;
  for (int k = 0; k < table.inputs; ++k) {
    const Value& v = inputs[k];
    if (k == 1 && store_exact(table, v, compute, in)) continue;
    if (!v.is_tensor()) {
      store_number(v.as_scalar(), compute, in.cells[k]);
      continue;
    }
    const Tensor& t = v.as_tensor();
    if (t.dtype() != compute) in.converted[k] = converted(t, compute);
    in.tensor[k] = t.dtype() != compute ? &in.converted[k] : &t;
  }
  const LoopResult result(c.results[0].as_tensor(), compute);
  run(table, compute, result.tensor(), in, packed, c.info->schema.name.c_str());
  result.store();
}

}  // namespace

LoopOfCall* described_loop() { return described; }

DescribeLoop::DescribeLoop(LoopOfCall& into) { described = &into; }
DescribeLoop::~DescribeLoop() { described = nullptr; }

void run_pointwise(void* context, OpCall& c) {
  const auto& table = *static_cast<const LoopTable*>(context);
  const DType compute = compute_dtype(table, c);
  const bool describes = described != nullptr;
  if (!describes && run_plain(table, c, c.results[0].as_tensor(), compute)) return;
  alignas(16) char packed[most_params * 16];
  pack_params(table, c, compute, packed);
  if (describes) return describe(table, c, {}, compute, packed);
  run_general(table, c, c.args, compute, packed);
}

void run_with_params(const LoopTable& table, OpCall& c, ParamRule rule,
                     std::span<const int> tensors) {
  const DType compute = compute_dtype(table, c);
  Scalar params[most_params];
  rule(c, compute, params);
  alignas(16) char packed[most_params * 16];
  for (int k = 0; k < table.params; ++k) pack_one(params[k], compute_of(compute), k, packed);
  Value inputs[most_inputs];
  for (int k = 0; k < table.inputs; ++k)
    inputs[k] = c.args[tensors.empty() ? k : tensors[static_cast<size_t>(k)]];
  if (described) return describe(table, c, tensors, compute, packed);
  run_general(table, c, inputs, compute, packed);
}

void run_loop(const LoopTable& table, DType compute, const Tensor& out,
              std::span<const Tensor> inputs, const void* params, const char* op) {
  const DType wide = dtype_of_loop(table, compute);
  Inputs in;
  in.count = static_cast<int>(inputs.size());
  for (int k = 0; k < in.count; ++k) {
    if (wide != compute) in.converted[k] = converted(inputs[k], wide);
    in.tensor[k] = wide != compute ? &in.converted[k] : &inputs[k];
  }
  const LoopResult result(out, wide);
  run(table, wide, result.tensor(), in, params, op);
  result.store();
}

}  // namespace facula::cpu
