#include "kernels/cpu/reduce/reduction.h"

#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/loop/scratch.h"
#include "kernels/cpu/reduce/described_reduction.h"

namespace facula::cpu {
namespace {

using base::Scratch;

thread_local constinit RowReduction* described __attribute__((tls_model("initial-exec"))) = nullptr;

// The argument of that name; None where the operator has none.
const Value& argument(const OpCall& c, const char* name) {
  static const Value none;
  const int at = c.info->schema.index_of(name);
  return at < 0 ? none : c.arg(at);
}

// The dimensions that a call goes over: a number, a list, or None for all.
IntVec dims_of(const ReductionTable& t, const OpCall& c) {
  const int64_t n = c.tensor(0).dim();
  const Value& dim = argument(c, "dim");
  if (dim.is_none()) return reduced_dims({}, n);
  if (dim.is_number()) {
    const int64_t one = dim.as_scalar().to<int64_t>();
    return reduced_dims(IntSpan(&one, 1), n);
  }
  if (t.no_dims_for_empty && dim.as_ints().empty()) return {};
  return reduced_dims(dim.as_ints(), n);
}

ReductionFn loop_for(const ReductionTable& t, DType in) {
  const ReductionFn f = t.by_dtype[loop_slot(in)];
  if (!f) [[unlikely]]
    not_implemented_for(t.kernel, in);
  return f;
}

// The dtype of results that loops store for a result of dtype d: integers are counted in 64 bits.
DType stored_result(const ReductionTable& t, DType d) {
  return t.converts && is_integral(d, true) ? DType::Int64 : d;
}

// self, or its values in the dtype of which a loop stores `result`.
Tensor input_for(const ReductionTable& t, const Tensor& self, DType result) {
  const DType d = self.dtype();
  if (!t.converts || t.result[loop_slot(d)] == result) return self;
  // Norms make real results of complex numbers.
  const bool real_results = t.result[loop_slot(DType::Complex64)] == DType::Float32;
  const DType to = is_complex(d) && real_results ? complex_of(result) : result;
  return d == to ? self : converted(self, to);
}

// Fills in what reduce_tensor() would run, where that walks rows of neighbouring elements.
void describe(const ReductionTable& t, const Tensor& self, const IntVec& dims,
              ReductionParams params, const Tensor& out) {
  const DType d = self.dtype();
  const bool direct = !t.converts || t.result[loop_slot(d)] == out.dtype();
  if (!direct || stored_result(t, out.dtype()) != out.dtype() || self.numel() == 0) return;
  if (!self.is_contiguous() || self->conj || self->neg) return;
  const ReducePlan plan = plan_reduction(self, dims);
  if (plan.columns || plan.reduced.size() != 1 || plan.reduced_in[0] != 1) return;
  if (plan.parts > 1 && plan.tasks > 1) return;
  params.count = plan.count;
  *described = {loop_for(t, d), t.pieces[loop_slot(d)], params, plan.tasks, plan.count};
}

}  // namespace

DescribeReduction::DescribeReduction(RowReduction& into) { described = &into; }
DescribeReduction::~DescribeReduction() { described = nullptr; }

// Of complex32 by the loop for complex64, which a table may have alone.
static bool is_by_complex64(const ReductionTable& t, const Tensor& self) {
  return self.dtype() == DType::Complex32 && !t.by_dtype[loop_slot(DType::Complex32)] &&
         t.by_dtype[loop_slot(DType::Complex64)];
}
static void reduce_by_complex64(const ReductionTable& t, const Tensor& self, const IntVec& dims,
                                const ReductionParams& params, const Tensor& out) {
  const DType d = out.dtype();
  const DType wide = d == DType::Complex32 ? DType::Complex64
                     : d == DType::Float16 ? DType::Float32
                                           : d;
  const Tensor to = wide == d ? out : empty_tensor(out.sizes(), wide);
  reduce_tensor(t, converted(self, DType::Complex64), dims, params, to);
  if (!to.is_same(out)) copy(out, to);
}

void reduce_tensor(const ReductionTable& t, const Tensor& self, const IntVec& dims,
                   ReductionParams params, const Tensor& out) {
  if (is_by_complex64(t, self)) return reduce_by_complex64(t, self, dims, params, out);
  if (const DType d = comparison_of(self.dtype()); t.tests_elements && d != self.dtype())
    return reduce_tensor(t, converted(self, d), dims, params, out);
  const DType wide = stored_result(t, out.dtype());
  const Tensor in = input_for(t, self, wide);
  const ReductionFn loop = loop_for(t, in.dtype());
  if (t.converts && t.result[loop_slot(in.dtype())] != wide)
    not_implemented_for(t.kernel, self.dtype());
  const Tensor to = wide == out.dtype() ? out : empty_tensor(out.sizes(), wide);
  const ReducePlan plan = plan_reduction(in, dims);
  params.count = plan.count;
  loop(plan, params, in.data(), to.data(), nullptr);
  if (!to.is_same(out)) copy(out, to);
}

void run_reduction(void* tables, OpCall& c) {
  if (described && c.info->results > 1) return;
  for (int i = 0; i < c.info->results; ++i) {
    const ReductionTable& t = *static_cast<ReductionTables>(tables)[i];
    ReductionParams params;
    if (t.number) params.number = argument(c, t.number).as_scalar().to<double>();
    const auto run = described ? &describe : &reduce_tensor;
    run(t, c.tensor(0), dims_of(t, c), params, c.results[i].as_tensor());
  }
}

const ReductionTable& table_in_force(const KernelRef& reduction) {
  int i = static_cast<int>(current_isa());
  while (i > 0 && !reduction.context[i]) --i;
  return *static_cast<ReductionTables>(reduction.context[i])[0];
}

// --- variances

void reduce_around(const ReductionTable& center_table, const ReductionTable& table,
                   const Tensor& self, const IntVec& dims, ReductionParams params,
                   const Tensor& out, void* centers) {
  const ReducePlan plan = plan_reduction(self, dims);
  const ReductionFn center = loop_for(center_table, self.dtype()),
                    loop = loop_for(table, self.dtype());
  params.count = plan.count;
  center(plan, params, self.data(), centers, nullptr);
  loop(plan, params, self.data(), out.data(), centers);
}

namespace {

void variance_of(ReductionTables tables, const Tensor& self, const IntVec& dims,
                 const ReductionParams& params, const Tensor& out, double* means) {
  reduce_around(*tables[0], *tables[1], self, dims, params, out, means);
}

// Real or imaginary parts, seen as a tensor.
Tensor part_of(const Tensor& z, int64_t part) {
  IntVec strides(z.strides());
  for (int64_t& s : strides) s *= 2;
  return tensor_over(z->storage, real_of(z.dtype()), 2 * z.storage_offset() + part, z.sizes(),
                     strides);
}

// The variances of the parts add.
template <class R>
void complex_variance(ReductionTables tables, const Tensor& self, const IntVec& dims,
                      ReductionParams params, const Tensor& out, const Tensor& mean) {
  const bool root = params.root;
  params.root = false;
  const int64_t n = out.numel();
  Scratch<double> means(2 * n);
  Tensor parts[2];
  for (int k = 0; k < 2; ++k) {
    parts[k] = empty_tensor(out.sizes(), out.dtype());
    variance_of(tables, part_of(self, k), dims, params, parts[k], means.get() + k * n);
  }
  for (int64_t i = 0; i < n; ++i) {
    const R v = parts[0].data<R>()[i] + parts[1].data<R>()[i];
    out.data<R>()[i] = root ? static_cast<R>(__builtin_sqrt(v)) : v;
    if (mean.defined())
      mean.data<Complex<R>>()[i] = {static_cast<R>(means.get()[i]),
                                    static_cast<R>(means.get()[n + i])};
  }
}

void variance_of_complex32(ReductionTables tables, const Tensor& self, const IntVec& dims,
                           ReductionParams params, const Tensor& out, const Tensor& mean) {
  const Tensor wide = empty_tensor(out.sizes(), DType::Float32);
  const Tensor wide_mean = mean.defined() ? empty_tensor(mean.sizes(), DType::Complex64) : Tensor();
  complex_variance<float>(tables, converted(self, DType::Complex64), dims, params, wide, wide_mean);
  copy(out, wide);
  if (mean.defined()) copy(mean, wide_mean);
}

}  // namespace

void run_variance(ReductionTables tables, OpCall& c, bool root) {
  const Tensor& self = c.tensor(0);
  const Tensor& out = c.results[0].as_tensor();
  const Tensor mean = c.info->results == 2 ? c.results[1].as_tensor() : Tensor();
  const IntVec dims = dims_of(*tables[1], c);
  ReductionParams params;
  params.root = root;
  const Value& correction = argument(c, tables[1]->number);
  if (!correction.is_none()) params.number = correction.as_scalar().to<double>();
  if (self.dtype() == DType::Complex32)
    return variance_of_complex32(tables, self, dims, params, out, mean);
  if (is_complex(self.dtype()))
    return dispatch<float, double>(out.dtype(), tables[1]->kernel, [&]<class R>(Type<R>) {
      complex_variance<R>(tables, self, dims, params, out, mean);
    });
  Scratch<double> means(out.numel());
  variance_of(tables, self, dims, params, out, means.get());
  if (!mean.defined()) return;
  dispatch<FloatingTypes>(mean.dtype(), tables[1]->kernel, [&]<class T>(Type<T>) {
    T* to = mean.data<T>();
    for (int64_t i = 0; i < mean.numel(); ++i) to[i] = convert<T>(means.get()[i]);
  });
}

// --- positions

void run_arg_reduction(void* table, OpCall& c) {
  const auto& t = *static_cast<const ArgReductionTable*>(table);
  const Value& dim = argument(c, "dim");
  const Tensor in = contiguous_values(c.tensor(0));
  const int64_t flat = in.numel();
  const Lines lines = dim.is_none()
                          ? Lines(IntSpan(&flat, 1), 0)
                          : Lines(in.sizes(), wrap_dim(dim.as_scalar().to<int64_t>(), in.dim()));
  if (lines.count() == 0) return;
  const auto find = t.by_dtype[loop_slot(in.dtype())];
  if (!find) not_implemented_for(t.kernel, in.dtype());
  const bool pair = c.info->results == 2;
  find(in.data(), lines, pair ? c.results[0].as_tensor().data() : nullptr,
       c.results[pair ? 1 : 0].as_tensor().data<int64_t>());
}

}  // namespace facula::cpu
