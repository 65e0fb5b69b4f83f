#include "kernels/cpu/matmul/matmul.h"

#include <cstring>

#include "kernels/cpu/elementwise/pointwise.h"
#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/matmul/coarse_gelu.h"
#include "kernels/cpu/matmul/gemm.h"

// Their loops are generated where their operators are defined (ops/activation*.cpp).
namespace facula::scalar {
struct relu;
struct gelu_erf;
}  // namespace facula::scalar

namespace facula::cpu::FACULA_ISA {
namespace {

// A matrix inside of a tensor: its data and the strides of its two dimensions.
struct Matrix {
  const void* data;
  int64_t rows, cols, rs, cs;
};
Matrix matrix(const Tensor& t) {
  return {t.data(), t.sizes()[0], t.sizes()[1], t.strides()[0], t.strides()[1]};
}
Matrix column(const Tensor& v) { return {v.data(), v.sizes()[0], 1, v.strides()[0], 1}; }

// A number as products are scaled by it; RuntimeError where it does not fit.
template <class S>
S factor(const Scalar& s) {
  if (!s.equals(1) && !s.equals(0)) check_fits(s, dtype_of<S>);
  return s.to<S>();
}

template <class T>
GemmArgs<T> plain_args(const Matrix& a, const Matrix& b, const Matrix& c) {
  GemmArgs<T> g{};
  g.m = c.rows;
  g.n = c.cols;
  g.k = a.cols;
  g.a = static_cast<const T*>(a.data);
  g.a_rs = a.rs;
  g.a_cs = a.cs;
  g.b = static_cast<const T*>(b.data);
  g.b_rs = b.rs;
  g.b_cs = b.cs;
  g.c = static_cast<T*>(const_cast<void*>(c.data));
  g.c_rs = c.rs;
  g.c_cs = c.cs;
  return g;
}

template <class T>
GemmArgs<T> gemm_args(const Matrix& a, const Matrix& b, const Matrix& c, const Scalar& alpha,
                      const Scalar& beta) {
  GemmArgs<T> g = plain_args<T>(a, b, c);
  g.alpha = factor<accumulate_t<T>>(alpha);
  g.beta = factor<accumulate_t<T>>(beta);
  return g;
}

template <class F>
void visit(DType d, const char* op, F&& f) {
  dispatch<FloatingTypes, IntegralTypes, ComplexTypes>(d, op, f);
}

void product(const Matrix& a, const Matrix& b, const Matrix& c, DType d, const char* op) {
  visit(d, op, [&]<class T>(Type<T>) { gemm(plain_args<T>(a, b, c)); });
}

// alpha a b + beta c, or that with `row` for each row of c, and a function of it.
void product(const Matrix& a, const Matrix& b, const Matrix& c, const Scalar& alpha,
             const Scalar& beta, DType d, const char* op, Activation activation = nullptr,
             const void* row = nullptr) {
  visit(d, op, [&]<class T>(Type<T>) {
    GemmArgs<T> g = gemm_args<T>(a, b, c, alpha, beta);
    g.activation = activation;
    g.row = static_cast<const T*>(row);
    gemm(g);
  });
}

// The loop over results of one dtype, of which half types are still float. None for bool, which has
// no products.
Activation activation_loop(DType d, bool use_gelu) {
  if (use_gelu && d == DType::BFloat16) return coarse_gelu;
  const LoopTable& table =
      use_gelu ? UnaryLoops<scalar::gelu_erf>::table : UnaryLoops<scalar::relu>::table;
  const bool half = d == DType::Float16 || d == DType::BFloat16;
  const LoopFn loop = table.by_dtype[loop_slot(half ? DType::Float32 : d)];
  if (loop || d == DType::Bool) return loop;
  throw_error(ErrorKind::NotImplemented,
              use_gelu
                  ? concat("\"GeluKernelImpl\" not implemented for '", info(d).legacy_name, "'")
                  : "clamp is not supported for complex types");
}

// A bias below each row of a small result, copied without a plan.
bool copy_rows(const Tensor& out, const Tensor& row) {
  constexpr int64_t most_elements = 4096;
  const bool fits = out.dim() == 2 && row.dim() == 1 && row.dtype() == out.dtype() &&
                    row.is_contiguous() && out.is_contiguous() && !row->conj && !row->neg &&
                    row.numel() == out.sizes()[1] && out.numel() <= most_elements;
  if (!fits) return false;
  const size_t bytes = static_cast<size_t>(row.numel()) * row.itemsize();
  for (int64_t i = 0; i < out.sizes()[0]; ++i)
    std::memcpy(out.data<char>() + static_cast<size_t>(i) * bytes, row.data(), bytes);
  return true;
}

// The addend as a row that products add to each of theirs; null where it has to stand in the
// result.
const void* shared_row(const Tensor& out, const Tensor& self, const Scalar& beta) {
  const bool is_row = self.dim() == 1 && self.numel() == out.sizes()[1] && self.is_contiguous() &&
                      self.dtype() == out.dtype() && !self->conj && !self->neg;
  const DType d = out.dtype();
  const bool adds_rows = d == DType::BFloat16 || d == DType::Float32 || d == DType::Float64;
  return adds_rows && is_row && beta.equals(1) ? self.data() : nullptr;
}

// Copies the addend into the result, unless beta is 0 and it is not read.
void start_from(const Tensor& out, const Tensor& self, const Scalar& beta) {
  if (beta.equals(0) || out.is_same(self) || out.numel() == 0) return;
  if (!copy_rows(out, self)) cpu::copy(out, self);
}

void sum_and_product(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                     const Scalar& alpha, const Tensor& out, Activation activation = nullptr) {
  const void* row = shared_row(out, self, beta);
  if (row == nullptr) start_from(out, self, beta);
  product(matrix(mat1), matrix(mat2), matrix(out), alpha, beta, out.dtype(), "addmm_impl_cpu_",
          activation, row);
}

void batched(const Tensor& a, const Tensor& b, const Tensor& out, const Scalar& alpha,
             const Scalar& beta, const char* op) {
  if (out.numel() == 0) return;
  auto inner = [](const Tensor& t) {
    return Matrix{t.data(), t.sizes()[1], t.sizes()[2], t.strides()[1], t.strides()[2]};
  };
  visit(out.dtype(), op, [&]<class T>(Type<T>) {
    gemm_batched(gemm_args<T>(inner(a), inner(b), inner(out), alpha, beta), out.sizes()[0],
                 a.strides()[0], b.strides()[0], out.strides()[0]);
  });
}

// float8 is multiplied in float32, and rounded once; powers of two alone are no factors.
bool is_widened(const Tensor& out) {
  return is_float8(out.dtype()) && out.dtype() != DType::Float8E8M0;
}
Tensor wide(const Tensor& t) { return converted(t, DType::Float32); }

}  // namespace

void addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
           const Scalar& alpha, const Tensor& out) {
  if (is_widened(out)) {
    const Tensor sum = empty_tensor(out.sizes(), DType::Float32);
    addmm(wide(self), wide(mat1), wide(mat2), beta, alpha, sum);
    return cpu::copy(out, sum);
  }
  sum_and_product(self, mat1, mat2, beta, alpha, out);
}

void addmm_activation(const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                      const Scalar& beta, const Scalar& alpha, bool use_gelu, const Tensor& out) {
  const Activation activation = activation_loop(out.dtype(), use_gelu);
  sum_and_product(self, mat1, mat2, beta, alpha, out, activation);
}

void mm(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  if (is_widened(out)) {
    const Tensor sum = empty_tensor(out.sizes(), DType::Float32);
    mm(wide(self), wide(mat2), sum);
    return cpu::copy(out, sum);
  }
  product(matrix(self), matrix(mat2), matrix(out), out.dtype(), "addmm_impl_cpu_");
}

void addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
           const Scalar& alpha, const Tensor& out) {
  start_from(out, self, beta);
  product(matrix(mat), column(vec), column(out), alpha, beta, out.dtype(), "addmv_impl_cpu");
}

void mv(const Tensor& self, const Tensor& vec, const Tensor& out) {
  product(matrix(self), column(vec), column(out), out.dtype(), "addmv_impl_cpu");
}

void dot(const Tensor& self, const Tensor& tensor, const Tensor& out) {
  const Matrix row{self.data(), 1, self.sizes()[0], 1, self.strides()[0]};
  const Matrix one{out.data(), 1, 1, 1, 1};
  product(row, column(tensor), one, out.dtype(), "dot");
}

void bmm(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  batched(self, mat2, out, 1, 0, "bmm");
}

void baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
             const Scalar& alpha, const Tensor& out) {
  start_from(out, self, beta);
  batched(batch1, batch2, out, alpha, beta, "baddbmm");
}

}  // namespace facula::cpu::FACULA_ISA
