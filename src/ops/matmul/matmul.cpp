// Matrix and vector products.
#include "ops/matmul/matmul.h"

#include <algorithm>

#include "core/checked.h"
#include "dispatch/out_dtype.h"
#include "kernels/cpu/matmul/matmul.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/logical.h"
#include "ops/matmul/batch.h"
#include "ops/meta_rules.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/reduce_rules.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"
#include "ops/shape/view_geometry.h"

namespace facula {
namespace {

// --- shape rules

void check_same_dtype(const Tensor& a, const Tensor& b, const char* op) {
  check(a.dtype() == b.dtype(), op, "(): both tensors must have one dtype; got ", name(a.dtype()),
        " and ", name(b.dtype()));
}

void meta_mm(Meta& m, const Tensor& self, const Tensor& mat2) {
  check(self.dim() == 2, "self must be a matrix");
  check(mat2.dim() == 2, "mat2 must be a matrix");
  check(self.sizes()[1] == mat2.sizes()[0], "mat1 and mat2 shapes cannot be multiplied (",
        self.sizes()[0], "x", self.sizes()[1], " and ", mat2.sizes()[0], "x", mat2.sizes()[1], ")");
  check_same_dtype(self, mat2, "mm");
  m.result(0, IntList{self.sizes()[0], mat2.sizes()[1]}, self.dtype());
}

void check_broadcasts(const Tensor& self, IntSpan sizes, const char* op) {
  bool fits = self.dim() <= static_cast<int64_t>(sizes.size());
  const size_t extra = fits ? sizes.size() - static_cast<size_t>(self.dim()) : 0;
  for (int64_t d = 0; fits && d < self.dim(); ++d)
    fits = self.sizes()[d] == 1 || self.sizes()[d] == sizes[d + extra];
  check(fits, op, "(): expected an input that can be expanded to ", str(sizes),
        "; The expanded size of the tensor does not match: got ", str(self.sizes()));
}

void meta_addmm(Meta& m, const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar&,
                const Scalar&) {
  check(mat1.dim() == 2, "mat1 must be a matrix, got ", mat1.dim(), "-D tensor");
  check(mat2.dim() == 2, "mat2 must be a matrix, got ", mat2.dim(), "-D tensor");
  check(mat1.sizes()[1] == mat2.sizes()[0], "mat1 and mat2 shapes cannot be multiplied (",
        mat1.sizes()[0], "x", mat1.sizes()[1], " and ", mat2.sizes()[0], "x", mat2.sizes()[1], ")");
  check_same_dtype(mat1, mat2, "addmm");
  check(self.dtype() == mat1.dtype(), "self and mat2 must have one dtype; got ", name(self.dtype()),
        " and ", name(mat2.dtype()));
  const IntVec sizes{mat1.sizes()[0], mat2.sizes()[1]};
  check_broadcasts(self, sizes, "addmm");
  m.result(0, sizes, mat1.dtype());
}

void meta_addmm_activation(Meta& m, const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                           const Scalar& beta, const Scalar& alpha, bool) {
  meta_addmm(m, self, mat1, mat2, beta, alpha);
}

void check_matrix_vector(const Tensor& mat, const Tensor& vec) {
  check(mat.dim() == 2 && vec.dim() == 1, "vector + matrix @ vector expected, got ", 1, ", ",
        mat.dim(), ", ", vec.dim());
  check(mat.sizes()[1] == vec.sizes()[0], "size mismatch, got input (", mat.sizes()[0], "), mat (",
        mat.sizes()[0], "x", mat.sizes()[1], "), vec (", vec.sizes()[0], ")");
  check_same_dtype(mat, vec, "addmv");
}
void meta_mv(Meta& m, const Tensor& self, const Tensor& vec) {
  check_matrix_vector(self, vec);
  m.result(0, IntList{self.sizes()[0]}, self.dtype());
}
void meta_addmv(Meta& m, const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar&,
                const Scalar&) {
  check(self.dim() <= 1, "vector + matrix @ vector expected, got ", self.dim(), ", ", mat.dim(),
        ", ", vec.dim());
  check_matrix_vector(mat, vec);
  check(self.numel() == mat.sizes()[0] || self.numel() == 1, "size mismatch, got input (",
        self.numel(), "), mat (", mat.sizes()[0], "x", mat.sizes()[1], "), vec (", vec.sizes()[0],
        ")");
  m.result(0, IntList{mat.sizes()[0]}, mat.dtype());
}

void meta_dot(Meta& m, const Tensor& self, const Tensor& tensor) {
  check(self.dim() == 1 && tensor.dim() == 1, "1D tensors expected, but got ", self.dim(), "D and ",
        tensor.dim(), "D tensors");
  check(self.dtype() == tensor.dtype(), "dot(): both vectors must have one dtype; got ",
        name(self.dtype()), " and ", name(tensor.dtype()));
  check(self.numel() == tensor.numel(),
        "dot(): inconsistent tensor size: both vectors must have as many elements; got ",
        self.numel(), " and ", tensor.numel());
  m.result(0, IntSpan(), self.dtype());
}

IntVec bmm_sizes(const Tensor& a, const Tensor& b) {
  check(a.dim() == 3, "batch1 must be a 3D tensor");
  check(b.dim() == 3, "batch2 must be a 3D tensor");
  check(a.sizes()[0] == b.sizes()[0] && a.sizes()[2] == b.sizes()[1],
        "batch2 must start with sizes [", a.sizes()[0], ", ", a.sizes()[2],
        "] to match batch1; got [", b.sizes()[0], ", ", b.sizes()[1], "]");
  check_same_dtype(a, b, "bmm");
  return {a.sizes()[0], a.sizes()[1], b.sizes()[2]};
}
void meta_bmm(Meta& m, const Tensor& self, const Tensor& mat2) {
  m.result(0, bmm_sizes(self, mat2), self.dtype());
}
void meta_baddbmm(Meta& m, const Tensor& self, const Tensor& batch1, const Tensor& batch2,
                  const Scalar&, const Scalar&) {
  const IntVec sizes = bmm_sizes(batch1, batch2);
  check_same_dtype(self, batch1, "baddbmm");
  check_broadcasts(self, sizes, "baddbmm");
  m.result(0, sizes, batch1.dtype());
}

// --- composites

Tensor conjugate(const Tensor& t) { return is_complex(t.dtype()) ? ops::conj(t) : t; }

Tensor adjoint(const Tensor& t) { return conjugate(ops::transpose(t, -2, -1)); }

Tensor addbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
              const Scalar& alpha) {
  const IntVec sizes = bmm_sizes(batch1, batch2);
  // Side by side, the batch is one long inner dimension.
  const int64_t inner = batch2.sizes()[0] * batch2.sizes()[1];
  const Tensor a = ops::reshape(ops::permute(batch1, {1, 0, 2}), {sizes[1], inner});
  const Tensor b = ops::reshape(batch2, {inner, sizes[2]});
  return ops::addmm(self, a, b, beta, alpha);
}

// Products whose factors are read as `out_dtype`, which holds the sums.
const Tensor& check_out_dtype(const Tensor& self, DType out_dtype, const char* op) {
  const bool wider = is_reduced_float(self.dtype()) && out_dtype == DType::Float32;
  check(wider || out_dtype == self.dtype(), op,
        "(): out_dtype must be the same as input dtype, or float32 for float16 and bfloat16; got ",
        name(out_dtype), " for ", name(self.dtype()));
  return self;
}
Tensor mm_dtype(const Tensor& self, const Tensor& mat2, DType out_dtype) {
  check_same_dtype(check_out_dtype(self, out_dtype, "mm"), mat2, "mm");
  return ops::mm(ops::to(self, out_dtype), ops::to(mat2, out_dtype));
}
Tensor bmm_dtype(const Tensor& self, const Tensor& mat2, DType out_dtype) {
  check_same_dtype(check_out_dtype(self, out_dtype, "bmm"), mat2, "bmm");
  return ops::bmm(ops::to(self, out_dtype), ops::to(mat2, out_dtype));
}
Tensor addmm_dtype(const Tensor& self, const Tensor& mat1, const Tensor& mat2, DType out_dtype,
                   const Scalar& beta, const Scalar& alpha) {
  check_same_dtype(check_out_dtype(mat1, out_dtype, "addmm"), mat2, "addmm");
  return ops::addmm(ops::to(self, out_dtype), ops::to(mat1, out_dtype), ops::to(mat2, out_dtype),
                    beta, alpha);
}
Tensor baddbmm_dtype(const Tensor& self, const Tensor& batch1, const Tensor& batch2,
                     DType out_dtype, const Scalar& beta, const Scalar& alpha) {
  check_same_dtype(check_out_dtype(batch1, out_dtype, "baddbmm"), batch2, "baddbmm");
  return ops::baddbmm(ops::to(self, out_dtype), ops::to(batch1, out_dtype),
                      ops::to(batch2, out_dtype), beta, alpha);
}

Tensor outer(const Tensor& self, const Tensor& vec2) {
  check(self.dim() == 1 && vec2.dim() == 1, "outer(): self and vec2 must have 1 dimension; got ",
        self.dim(), " and ", vec2.dim());
  return ops::mul(ops::reshape(self, {self.sizes()[0], 1}), vec2);
}
Tensor addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta,
            const Scalar& alpha) {
  check(vec1.dim() == 1, "addr(): vec1 must have 1 dimension; got ", vec1.dim());
  check(vec2.dim() == 1, "addr(): vec2 must have 1 dimension; got ", vec2.dim());
  check_broadcasts(self, IntList{vec1.sizes()[0], vec2.sizes()[0]}, "addr");
  const Tensor product = ops::outer(vec1, vec2);
  if (promote(self.dtype(), product.dtype()) == DType::Bool) {
    const Tensor kept = beta.to<bool>() ? self : ops::zeros_like(self);
    return ops::logical_or(kept, alpha.to<bool>() ? product : ops::zeros_like(product));
  }
  const Tensor scaled = alpha.equals(1) ? product : ops::mul(product, alpha);
  if (beta.equals(0)) return scaled;
  return ops::add(beta.equals(1) ? self : ops::mul(self, beta), scaled);
}

Tensor vdot(const Tensor& self, const Tensor& other) {
  if (!is_complex(self.dtype())) return ops::dot(self, other);
  return ops::dot(ops::conj(self), other);
}

IntVec joined(IntSpan batch, std::initializer_list<int64_t> tail) {
  IntVec sizes(batch);
  for (int64_t n : tail) sizes.push_back(n);
  return sizes;
}

// Batches of matrices, broadcast against each other.
Tensor batched_matmul(const Tensor& a, const Tensor& b) {
  const int64_t n = a.dim() == 1 ? 1 : a.size(-2), k = a.size(-1), rows_b = b.size(-2),
                p = b.size(-1);
  auto batch_of = [](const Tensor& t) {
    return t.sizes().first(static_cast<size_t>(std::max<int64_t>(t.dim() - 2, 0)));
  };
  const IntVec batch = broadcast_sizes(batch_of(a), batch_of(b));
  const int64_t count = checked_product(batch, "matmul(): the number of matrices");
  const Tensor a_matrix = a.dim() == 1 ? ops::unsqueeze(a, 0) : a;
  const Tensor x = ops::reshape(ops::expand(a_matrix, joined(batch, {n, k})), {count, n, k});
  const Tensor y = ops::reshape(ops::expand(b, joined(batch, {rows_b, p})), {count, rows_b, p});
  IntVec sizes(batch);
  if (a.dim() > 1) sizes.push_back(n);
  sizes.push_back(p);
  return ops::_unsafe_view(ops::bmm(x, y), sizes);
}

// Many rows times one matrix or vector: the batch folds into rows.
Tensor folded_matmul(const Tensor& a, const Tensor& b) {
  IntVec sizes(a.sizes().first(static_cast<size_t>(a.dim() - 1)));
  const int64_t k = a.size(-1);
  const int64_t rows = checked_product(sizes, "matmul(): the number of rows");
  const Tensor flat = ops::reshape(a, {rows, k});
  if (b.dim() == 1) return ops::_unsafe_view(ops::mv(flat, b), sizes);
  sizes.push_back(b.size(1));
  return ops::_unsafe_view(ops::mm(flat, b), sizes);
}

// One matrix or vector times a batch, as (b^T a^T)^T.
Tensor folded_from_left(const Tensor& a, const Tensor& b) {
  const Tensor columns = ops::transpose(b, -2, -1);
  if (a.dim() == 1) return folded_matmul(columns, a);
  return ops::contiguous(ops::transpose(folded_matmul(columns, ops::t(a)), -2, -1));
}

Tensor matmul(const Tensor& self, const Tensor& other) {
  const int64_t a = self.dim(), b = other.dim();
  check(a > 0 && b > 0, "matmul(): both arguments must have a dimension; got ", a, "-D and ", b,
        "-D");
  if (a == 1 && b == 1) return ops::dot(self, other);
  if (a == 2 && b == 1) return ops::mv(self, other);
  // In place, so that the product is no view.
  if (a == 1 && b == 2) return ops::squeeze_(ops::mm(ops::unsqueeze(self, 0), other), 0);
  if (a == 2 && b == 2) return ops::mm(self, other);
  if (b <= 2) return folded_matmul(self, other);
  if (a >= 3 && b == 3 && other.sizes()[0] == 1) return folded_matmul(self, ops::squeeze(other, 0));
  // Then the gradient of `self` is one product, rounded once, and no sum of a product each.
  if (a <= 2 && self->layers.has(Layer::Autograd)) return folded_from_left(self, other);
  return batched_matmul(self, other);
}

// A weight as matrices are multiplied with it; the call of an operator is saved where nobody sees
// it.
Tensor swapped(const Tensor& weight) {
  if (weight.dim() < 2 || !geometry::seen_by_backend_alone(weight)) return ops::t(weight);
  return geometry::swapped(weight);
}

// Rows of any number of dimensions as a matrix, and the product given their shape back.
Tensor affine_rows(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  const IntSpan outer = input.sizes().first(static_cast<size_t>(input.dim() - 1));
  const int64_t rows = checked_product(outer, "linear(): the number of rows");
  const Tensor flat = ops::view(input, {rows, input.size(-1)}), w = swapped(weight);
  const Tensor y = ops::addmm(bias, flat, w);
  return ops::_unsafe_view(y, joined(outer, {w.sizes()[1]}));
}

Tensor linear_map(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  check(weight.dim() == 2 || weight.dim() == 1,
        "linear(): expected weight to have 1 or 2 dimensions; got ", str(weight.sizes()));
  const bool rows = input.dim() > 0 && input.dim() != 2 && weight.dim() == 2 && bias.defined() &&
                    bias.dim() == 1 && input.is_contiguous();
  if (rows) return affine_rows(input, weight, bias);
  const Tensor w = swapped(weight);
  if (!bias.defined()) return ops::matmul(input, w);
  if (input.dim() == 2 && weight.dim() == 2) return ops::addmm(bias, input, w);
  return ops::add(ops::matmul(input, w), bias);
}

Tensor inner(const Tensor& self, const Tensor& other) {
  if (self.dim() == 0 || other.dim() == 0) return ops::mul(self, other);
  check(self.size(-1) == other.size(-1), "inner(): the last sizes must be equal; got shapes ",
        str(self.sizes()), " and ", str(other.sizes()));
  return ops::tensordot(self, other, IntList{-1}, IntList{-1});
}

Tensor linalg_vecdot(const Tensor& x, const Tensor& y, int64_t dim) {
  check_kind(ErrorKind::NotImplemented, is_differentiable(x.dtype()),
             "linalg.vecdot(): x must be floating point or complex; got ", name(x.dtype()));
  check_same_dtype(x, y, "linalg.vecdot");
  const Tensor xc = is_complex(x.dtype()) ? ops::conj(x) : x;
  return ops::sum(ops::mul(xc, y), IntList{dim});
}

Tensor tensordot(const Tensor& self, const Tensor& other, IntSpan dims_self, IntSpan dims_other) {
  check(dims_self.size() == dims_other.size(),
        "tensordot(): dims must hold as many numbers for self as for other; got ", dims_self.size(),
        " and ", dims_other.size());
  check(self.dtype() == other.dtype(), "tensordot(): both tensors must have one dtype; got ",
        name(self.dtype()), " and ", name(other.dtype()));
  Tensor a = self, b = other;
  std::vector<bool> gone_a(static_cast<size_t>(self.dim())),
      gone_b(static_cast<size_t>(other.dim()));
  IntVec order_a, order_b, sizes, inner_b;
  int64_t k = 1;
  for (size_t i = 0; i < dims_self.size(); ++i) {
    check_index(self.dim() > 0 && other.dim() > 0, "Dimension specified as ",
                self.dim() > 0 ? dims_other[i] : dims_self[i], " but tensor has no dimensions");
    const int64_t x = wrap_dim(dims_self[i], self.dim()), y = wrap_dim(dims_other[i], other.dim());
    check(!gone_a[x] && !gone_b[y], "dim ", x, " appears multiple times in the list of dims");
    gone_a[x] = gone_b[y] = true;
    // A contracted dimension of size one meets one of any size: that one is summed first.
    if (b.sizes()[y] == 1 && a.sizes()[x] != 1) a = ops::sum(a, IntList{x}, true, a.dtype());
    if (a.sizes()[x] == 1 && b.sizes()[y] != 1) b = ops::sum(b, IntList{y}, true, b.dtype());
    check(a.sizes()[x] == b.sizes()[y],
          "tensordot(): contracted dimensions must have equal sizes; got ", a.sizes()[x],
          " in dimension ", x, " of self and ", b.sizes()[y], " in dimension ", y, " of other");
    k *= a.sizes()[x];
    inner_b.push_back(y);
  }
  for (int64_t d = 0; d < a.dim(); ++d)
    if (!gone_a[d]) {
      order_a.push_back(d);
      sizes.push_back(a.sizes()[d]);
    }
  int64_t rows = 1, cols = 1;
  for (int64_t s : sizes) rows *= s;
  for (int64_t d : dims_self) order_a.push_back(wrap_dim(d, a.dim()));
  for (int64_t d : inner_b) order_b.push_back(d);
  for (int64_t d = 0; d < b.dim(); ++d)
    if (!gone_b[d]) {
      order_b.push_back(d);
      sizes.push_back(b.sizes()[d]);
      cols *= b.sizes()[d];
    }
  a = ops::permute(a, order_a);
  b = ops::permute(b, order_b);
  if (sizes.empty() && a.dim() == 1) return ops::view(ops::dot(a, b), sizes);
  const Tensor x = ops::reshape(a, {rows, k}), y = ops::reshape(b, {k, cols});
  return ops::reshape(ops::mm(x, y), sizes);
}

Tensor kron(const Tensor& self, const Tensor& other) {
  const int64_t n = std::max(self.dim(), other.dim());
  IntVec a, b, sizes;
  for (int64_t d = 0; d < n; ++d) {
    const int64_t x = d - (n - self.dim()), y = d - (n - other.dim());
    const int64_t p = x < 0 ? 1 : self.sizes()[x], q = y < 0 ? 1 : other.sizes()[y];
    a.push_back(p);
    a.push_back(1);
    b.push_back(1);
    b.push_back(q);
    sizes.push_back(p * q);
  }
  return ops::_unsafe_view(ops::mul(ops::reshape(self, a), ops::reshape(other, b)), sizes);
}

// --- derivatives

Tensor scaled(const Tensor& grad, const Scalar& by) {
  return by.equals(1) ? grad : ops::mul(grad, by.conj());
}

bool column_major(IntSpan sizes, IntSpan strides) {
  return sizes.size() == 2 && strides.size() == 2 && strides[0] == 1 && strides[1] == sizes[0];
}

// The gradient of a factor is computed in the factor's own layout: a weight that `w.t()` hands to
// the product is column-major there, and so its gradient needs no copy to have the weight's
// strides.
Tensor gradient_of_left(const Tensor& grad, const Tensor& right, IntSpan sizes, IntSpan strides) {
  if (!column_major(sizes, strides)) return ops::mm(grad, adjoint(right));
  return ops::t(ops::mm(conjugate(right), ops::t(grad)));
}
Tensor gradient_of_right(const Tensor& grad, const Tensor& left, IntSpan sizes, IntSpan strides) {
  if (!column_major(sizes, strides)) return ops::mm(adjoint(left), grad);
  return ops::t(ops::mm(ops::t(grad), conjugate(left)));
}

Tensor mm_first(Backward& b) {
  return gradient_of_left(b.grad(), b["mat2"], b.sizes("self"), b.strides("self"));
}
Tensor mm_second(Backward& b) {
  return gradient_of_right(b.grad(), b["self"], b.sizes("mat2"), b.strides("mat2"));
}
Tensor addmm_first(Backward& b) {
  return scaled(gradient_of_left(b.grad(), b["mat2"], b.sizes("mat1"), b.strides("mat1")),
                b.scalar("alpha"));
}
Tensor addmm_second(Backward& b) {
  return scaled(gradient_of_right(b.grad(), b["mat1"], b.sizes("mat2"), b.strides("mat2")),
                b.scalar("alpha"));
}

Tensor outer_conj(const Tensor& a, const Tensor& b) { return ops::outer(a, ops::conj(b)); }

}  // namespace
}  // namespace facula

using namespace facula;

OP(mm){
    .schema = "mm(Tensor self, Tensor mat2) -> Tensor",
    .doc = "Product of two matrices: (n, k) times (k, m) gives (n, m).",
    .forms = function | method | out,
    .flags = exact_out | reads_strides,
    .overlaps = Overlaps::None,
    .autocast = Autocast::LowerPrecision,
    .meta = typed_meta<meta_mm>,
    .cpu = cpu::mm_kernel,
    .derivatives = {vjp("self", mm_first, saves("mat2")), vjp("mat2", mm_second, saves("self"))},
    .jvp = forward::bilinear,
    .batch = batch::matmul,
};
OP(addmm){
    .schema =
        "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    .doc = "beta * self + alpha * mat1 @ mat2, self broadcast to the product's shape.",
    .forms = all_forms,
    .flags = exact_out | reads_strides,
    .overlaps = Overlaps::None,
    .autocast = Autocast::LowerPrecision,
    .meta = typed_meta<meta_addmm>,
    .cpu = cpu::addmm_kernel,
    .derivatives =
        {
            vjp("self", [](Backward& b) { return scaled(b.grad(), b.scalar("beta")); }),
            vjp("mat1", addmm_first, saves("mat2")),
            vjp("mat2", addmm_second, saves("mat1")),
        },
    .batch = batch::add_matmul,
    .old_order = "beta self alpha mat1 mat2",
};
OP(mm_dtype){
    .schema = "mm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor",
    .doc = "Product of two matrices with sums in out_dtype: float32 for half types, or their own.",
    .forms = function | out,
    .composite = Composite::Implicit,
    .any = typed_kernel<mm_dtype>,
};
OP(bmm_dtype){
    .schema = "bmm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor",
    .doc = "Products of two batches of matrices, in out_dtype as for mm.",
    .forms = function | out,
    .composite = Composite::Implicit,
    .any = typed_kernel<bmm_dtype>,
};
OP(addmm_dtype){
    .schema =
        "addmm.dtype(Tensor self, Tensor mat1, Tensor mat2, ScalarType out_dtype, *, "
        "Scalar beta=1, Scalar alpha=1) -> Tensor",
    .doc = "beta * self + alpha * mat1 @ mat2, in out_dtype as for mm.",
    .forms = function | out,
    .composite = Composite::Implicit,
    .any = typed_kernel<addmm_dtype>,
};
OP(baddbmm_dtype){
    .schema =
        "baddbmm.dtype(Tensor self, Tensor batch1, Tensor batch2, ScalarType out_dtype, *, "
        "Scalar beta=1, Scalar alpha=1) -> Tensor",
    .doc = "beta * self + alpha * batch1 @ batch2, in out_dtype as for mm.",
    .forms = function | out,
    .composite = Composite::Implicit,
    .any = typed_kernel<baddbmm_dtype>,
};
OP(_addmm_activation){
    .schema =
        "_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, "
        "Scalar alpha=1, bool use_gelu=False) -> Tensor",
    .doc =
        "The relu of addmm, or its gelu (with erf); applied to each block of the product while it "
        "is in "
        "the cache.",
    .forms = function | method | out,
    .flags = exact_out,
    .overlaps = Overlaps::None,
    .autocast = Autocast::LowerPrecision,
    .meta = typed_meta<meta_addmm_activation>,
    .cpu = cpu::addmm_activation_kernel,
    .hole = "derivatives: PyTorch has none either; vmap: samples are done one by one",
};
OP(mv){
    .schema = "mv(Tensor self, Tensor vec) -> Tensor",
    .doc = "Product of a matrix (n, k) and a vector (k).",
    .forms = function | method | out,
    .flags = exact_out,
    .overlaps = Overlaps::None,
    .autocast = Autocast::LowerPrecision,
    .autocast_cpu = Autocast::None,
    .meta = typed_meta<meta_mv>,
    .cpu = cpu::mv_kernel,
    .derivatives =
        {
            vjp(
                "self", [](Backward& b) { return outer_conj(b.grad(), b["vec"]); }, saves("vec")),
            vjp(
                "vec", [](Backward& b) { return ops::mv(adjoint(b["self"]), b.grad()); },
                saves("self")),
        },
    .jvp = forward::bilinear,
    .batch = batch::matmul,
};
OP(addmv){
    .schema =
        "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    .doc = "beta * self + alpha * mat @ vec.",
    .forms = all_forms,
    .flags = exact_out,
    .overlaps = Overlaps::None,
    .autocast = Autocast::LowerPrecision,
    .autocast_cpu = Autocast::None,
    .meta = typed_meta<meta_addmv>,
    .cpu = cpu::addmv_kernel,
    .derivatives =
        {
            vjp("self", [](Backward& b) { return scaled(b.grad(), b.scalar("beta")); }),
            vjp(
                "mat",
                [](Backward& b) {
                  return scaled(outer_conj(b.grad(), b["vec"]), b.scalar("alpha"));
                },
                saves("vec")),
            vjp(
                "vec",
                [](Backward& b) {
                  return scaled(ops::mv(adjoint(b["mat"]), b.grad()), b.scalar("alpha"));
                },
                saves("mat")),
        },
    .batch = batch::add_matmul,
    .old_order = "beta self alpha mat vec",
};
OP(dot){
    .schema = "dot(Tensor self, Tensor tensor) -> Tensor",
    .doc = "Sum of the products of two vectors' elements; complex ones are not conjugated.",
    .forms = function | method | out,
    .flags = exact_out,
    .overlaps = Overlaps::None,
    .autocast = Autocast::Promote,
    .autocast_cpu = Autocast::None,
    .meta = typed_meta<meta_dot>,
    .cpu = cpu::dot_kernel,
    .derivatives =
        {
            vjp(
                "self", [](Backward& b) { return ops::mul(b.grad(), ops::conj(b["tensor"])); },
                saves("tensor")),
            vjp(
                "tensor", [](Backward& b) { return ops::mul(b.grad(), ops::conj(b["self"])); },
                saves("self")),
        },
    .jvp = forward::bilinear,
    .batch = batch::matmul,
};
OP(vdot){
    .schema = "vdot(Tensor self, Tensor other) -> Tensor",
    .doc = "As dot, with the first vector conjugated.",
    .forms = function | method | out,
    .composite = Composite::Explicit,
    .flags = handles_conj | exact_out,
    .autocast = Autocast::Promote,
    .autocast_cpu = Autocast::None,
    .any = typed_kernel<vdot>,
    .derivatives =
        {
            vjp(
                "self", [](Backward& b) { return ops::mul(ops::conj(b.grad()), b["other"]); },
                saves("other")),
            vjp(
                "other", [](Backward& b) { return ops::mul(b.grad(), b["self"]); }, saves("self")),
        },
};
OP(bmm){
    .schema = "bmm(Tensor self, Tensor mat2) -> Tensor",
    .doc = "Products of two batches of matrices: (b, n, k) times (b, k, m).",
    .forms = function | method | out,
    .flags = exact_out,
    .overlaps = Overlaps::None,
    .autocast = Autocast::LowerPrecision,
    .meta = typed_meta<meta_bmm>,
    .cpu = cpu::bmm_kernel,
    .derivatives =
        {
            vjp(
                "self", [](Backward& b) { return ops::bmm(b.grad(), adjoint(b["mat2"])); },
                saves("mat2")),
            vjp(
                "mat2", [](Backward& b) { return ops::bmm(adjoint(b["self"]), b.grad()); },
                saves("self")),
        },
    .jvp = forward::bilinear,
    .batch = batch::matmul,
};
OP(baddbmm){
    .schema =
        "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> "
        "Tensor",
    .doc = "beta * self + alpha * batch1 @ batch2, matrix by matrix.",
    .forms = all_forms,
    .flags = exact_out,
    .overlaps = Overlaps::None,
    .autocast = Autocast::LowerPrecision,
    .meta = typed_meta<meta_baddbmm>,
    .cpu = cpu::baddbmm_kernel,
    .derivatives =
        {
            vjp("self", [](Backward& b) { return scaled(b.grad(), b.scalar("beta")); }),
            vjp(
                "batch1",
                [](Backward& b) {
                  return scaled(ops::bmm(b.grad(), adjoint(b["batch2"])), b.scalar("alpha"));
                },
                saves("batch2")),
            vjp(
                "batch2",
                [](Backward& b) {
                  return scaled(ops::bmm(adjoint(b["batch1"]), b.grad()), b.scalar("alpha"));
                },
                saves("batch1")),
        },
    .batch = batch::add_matmul,
    .old_order = "beta self alpha batch1 batch2",
};
OP(addbmm){
    .schema =
        "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> "
        "Tensor",
    .doc = "beta * self + alpha times the sum of the products of a batch of matrices.",
    .forms = all_forms,
    .composite = Composite::Explicit,
    .flags = exact_out,
    .autocast = Autocast::LowerPrecision,
    .any = typed_kernel<addbmm>,
    .derivatives =
        {
            vjp("self", [](Backward& b) { return scaled(b.grad(), b.scalar("beta")); }),
            vjp(
                "batch1",
                [](Backward& b) {
                  const Tensor columns = adjoint(b["batch2"]);
                  return scaled(ops::matmul(b.grad(), columns), b.scalar("alpha"));
                },
                saves("batch2")),
            vjp(
                "batch2",
                [](Backward& b) {
                  const Tensor rows = adjoint(b["batch1"]);
                  return scaled(ops::matmul(rows, b.grad()), b.scalar("alpha"));
                },
                saves("batch1")),
        },
    .old_order = "beta self alpha batch1 batch2",
};
OP(outer){
    .schema = "outer(Tensor self, Tensor vec2) -> Tensor",
    .doc = "Outer product of two vectors.",
    .forms = function | method | out,
    .aliases = "ger",
    .composite = Composite::Implicit,
    .any = typed_kernel<outer>,
};
OP(addr){
    .schema =
        "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    .doc = "beta * self + alpha times the outer product of two vectors.",
    .forms = all_forms,
    .composite = Composite::Explicit,
    .autocast = Autocast::LowerPrecision,
    .autocast_cpu = Autocast::None,
    .any = typed_kernel<addr>,
    .derivatives =
        {
            vjp("self", [](Backward& b) { return scaled(b.grad(), b.scalar("beta")); }),
            vjp(
                "vec1",
                [](Backward& b) {
                  return scaled(ops::mv(b.grad(), ops::conj(b["vec2"])), b.scalar("alpha"));
                },
                saves("vec2")),
            vjp(
                "vec2",
                [](Backward& b) {
                  const Tensor columns = ops::transpose(b.grad(), 0, 1);
                  return scaled(ops::mv(columns, ops::conj(b["vec1"])), b.scalar("alpha"));
                },
                saves("vec1")),
        },
    .old_order = "beta self alpha vec1 vec2",
};
OP(matmul){
    .schema = "matmul(Tensor self, Tensor other) -> Tensor",
    .doc = "Product of vectors, matrices or batches of matrices, batches broadcast.",
    .forms = function | method | out,
    .composite = Composite::Implicit,
    .flags = exact_out,
    .autocast = Autocast::LowerPrecision,
    .any = typed_kernel<matmul>,
};
OP(linalg_matmul){
    .schema = "linalg_matmul(Tensor self, Tensor other) -> Tensor",
    .doc = "The same as matmul.",
    .forms = function | out,
    .python_module = "linalg",
    .composite = Composite::Implicit,
    .flags = exact_out,
    .any = typed_kernel<matmul>,
};
OP(linalg_vecdot){
    .schema = "linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor",
    .doc = "Products of vectors along a dimension, the first conjugated.",
    .forms = function | out,
    .python_module = "linalg",
    .out_name = "out",
    .composite = Composite::Implicit,
    .flags = exact_out,
    .autocast_cpu = Autocast::LowerPrecision,
    .any = typed_kernel<linalg_vecdot>,
};
OP(linear){
    .schema = "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
    .doc = "input @ weight.T + bias, over the last dimension of input.",
    .forms = function | out,
    .python_module = "nn",
    .composite = Composite::Implicit,
    .flags = exact_out,
    .autocast = Autocast::LowerPrecision,
    .any = typed_kernel<linear_map>,
};
OP(inner){
    .schema = "inner(Tensor self, Tensor other) -> Tensor",
    .doc = "Dot products over the last dimensions of both.",
    .forms = function | method | out,
    .composite = Composite::Implicit,
    .flags = out_follows | exact_out,
    .any = typed_kernel<inner>,
};
OP(tensordot){
    .schema = "tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
    .doc = "Sum of products over the paired dimensions.",
    .forms = function | out,
    .composite = Composite::Implicit,
    .flags = out_follows | exact_out,
    .autocast = Autocast::Promote,
    .autocast_cpu = Autocast::None,
    .any = typed_kernel<tensordot>,
};
OP(kron){
    .schema = "kron(Tensor self, Tensor other) -> Tensor",
    .doc = "Kronecker product.",
    .forms = function | method | out,
    .composite = Composite::Implicit,
    .any = typed_kernel<kron>,
};
