// Products of sparse matrices.
#include "ops/sparse/products.h"

#include <algorithm>

#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "kernels/cpu/sparse/indices.h"
#include "kernels/cpu/sparse/products.h"
#include "ops/complex/complex.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/create/range.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/clamp.h"
#include "ops/elementwise/comparison.h"
#include "ops/index/index.h"
#include "ops/index/scatter.h"
#include "ops/matmul/matmul.h"
#include "ops/shape/split.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"
#include "ops/sparse/accessors.h"
#include "ops/sparse/compressed.h"
#include "ops/sparse/conversion.h"
#include "ops/sparse/layouts.h"

namespace facula {
namespace {

using namespace sparse;
using cpu::sparse::RowMatrix;

// --- sparse matrices by rows

void check_matrix(const Tensor& t, const char* op) {
  check(t.dim() == 2, op, "(): expected a matrix; got sizes ", str(t.sizes()));
  const bool plain =
      is_strided(t) || (is_coo(t) ? sparse_dims(coo(t)) == 2 : compressed(t).compressed.dim() == 1);
  check_kind(ErrorKind::NotImplemented, plain, op,
             "(): a sparse matrix must have two sparse dimensions; got one with dense ones");
}

void check_product(const Tensor& a, const Tensor& b, const char* op) {
  check_matrix(a, op);
  check_matrix(b, op);
  check(a.sizes()[1] == b.sizes()[0], "mat1 and mat2 shapes cannot be multiplied (", a.sizes()[0],
        "x", a.sizes()[1], " and ", b.sizes()[0], "x", b.sizes()[1], ")");
  check(a.dtype() == b.dtype(), op, "(): expected mat1 and mat2 to have the same dtype; got ",
        name(a.dtype()), " and ", name(b.dtype()));
}

Tensor int64(const Tensor& t) { return ops::contiguous(ops::to(t, DType::Int64)); }

// Elements of a COO matrix sorted by rows; those of equal positions stay beside each other.
RowMatrix rows_of_coo(const Tensor& t) {
  const Coo& c = coo(t);
  const Tensor indices = plain_indices(t);
  Tensor rows = ops::contiguous(ops::select(indices, 0, 0)),
         columns = ops::contiguous(ops::select(indices, 0, 1)), values = ops::contiguous(c.values);
  if (!c.coalesced) {
    const Tensor order = cpu::sparse::stable_order(rows);
    rows = ops::index_select(rows, 0, order);
    columns = ops::index_select(columns, 0, order);
    values = ops::index_select(values, 0, order);
  }
  return {cpu::sparse::row_starts(rows, t.sizes()[0]), columns, values};
}

RowMatrix rows_of_compressed(const Tensor& t) {
  const Grid g = grid_of(t);
  const Compressed& c = compressed(t);
  const RowMatrix m{int64(c.compressed), int64(c.plain), ops::contiguous(c.values), g.height,
                    g.width};
  cpu::sparse::check_starts(m.starts, m.columns.numel());
  return m;
}

RowMatrix rows_of(const Tensor& t) {
  if (is_coo(t)) return rows_of_coo(t);
  return by_rows(t->layout) ? rows_of_compressed(t) : rows_of_coo(coo_of_compressed(t));
}
// In blocks of one element.
RowMatrix single_rows_of(const Tensor& t) {
  return in_blocks(t->layout) ? rows_of_coo(coo_of_compressed(t)) : rows_of(t);
}

// --- products

Tensor sparse_times_dense(const Tensor& a, const Tensor& b) {
  const bool is_bool = a.dtype() == DType::Bool;
  check_kind(ErrorKind::NotImplemented, !is_bool,
             "\"addmm_sparse_cuda\" not implemented for 'Bool'");
  const Tensor out = empty_tensor(IntVec{a.sizes()[0], b.sizes()[1]}, a.dtype());
  FACULA_OF_ISA(multiply_rows)(rows_of(a), ops::contiguous(b), out);
  return out;
}

// Each element of a with each of its column's row in b: for matrices with many more rows and
// columns than elements, and for bool.
Tensor product_by_pairs(const Tensor& a, const Tensor& b) {
  const Tensor i = plain_indices(a), j = plain_indices(b);
  const auto pairs = cpu::sparse::pairs_of_equals(ops::contiguous(ops::select(i, 0, 1)),
                                                  ops::contiguous(ops::select(j, 0, 0)));
  const Tensor rows = ops::index_select(ops::select(i, 0, 0), 0, pairs.first),
               columns = ops::index_select(ops::select(j, 0, 1), 0, pairs.second);
  const Tensor values = ops::mul(ops::index_select(coo(a).values, 0, pairs.first),
                                 ops::index_select(coo(b).values, 0, pairs.second));
  const int64_t shape[] = {2, rows.numel()};
  const Tensor indices = empty_tensor(shape, DType::Int64);
  ops::copy_(ops::select(indices, 0, 0), rows);
  ops::copy_(ops::select(indices, 0, 1), columns);
  const Tensor product =
      coalesced(coo_tensor(IntVec{a.sizes()[0], b.sizes()[1]}, indices, values, false));
  return coo_tensor(product.sizes(), coo(product).indices, coo(product).values, true);
}

int64_t element_count(const Tensor& t) {
  return is_coo(t) ? nnz(coo(t)) : compressed(t).values.numel();
}
bool suits_rows(const Tensor& a, const Tensor& b) {
  if (a.dtype() == DType::Bool) return false;
  constexpr int64_t few = 1 << 16;
  const int64_t longest = std::max({a.sizes()[0], b.sizes()[0], b.sizes()[1]});
  return longest / 16 <= few + element_count(a) + element_count(b);
}

Tensor sparse_times_sparse(const Tensor& a, const Tensor& b) {
  const auto as_coo = [](const Tensor& t) {
    return is_coo(t) ? coalesced(t) : coo_of_compressed(t);
  };
  if (!suits_rows(a, b)) {
    const Tensor product = product_by_pairs(as_coo(a), as_coo(b));
    return is_coo(a) ? product : compressed_of(product, Layout::SparseCsr, {}, 0);
  }
  const IntVec sizes{a.sizes()[0], b.sizes()[1]};
  const auto by_rows_of = [&](const Tensor& t) {
    return single_rows_of(is_coo(t) ? coalesced(t) : t);
  };
  const RowMatrix product =
      cpu::sparse::multiply_sparse(by_rows_of(a), by_rows_of(b), b.sizes()[1]);
  if (!is_coo(a))
    return compressed_tensor(Layout::SparseCsr, sizes, product.starts, product.columns,
                             product.values);
  const int64_t n = product.columns.numel(), shape[] = {2, n};
  const Tensor indices = empty_tensor(shape, DType::Int64);
  ops::copy_(ops::select(indices, 0, 0), cpu::sparse::rows_from_starts(product.starts, n));
  ops::copy_(ops::select(indices, 0, 1), product.columns);
  return coo_tensor(sizes, indices, product.values, true);
}

Tensor mm(const Tensor& a, const Tensor& b) {
  check_product(a, b, "mm");
  if (is_strided(b)) return sparse_times_dense(a, b);
  if (!is_strided(a)) return sparse_times_sparse(a, b);
  return ops::t(sparse_times_dense(ops::t(b), ops::t(a)));
}

Tensor scaled(const Tensor& t, const Scalar& by) {
  return by.to<complex128>() == complex128{1, 0} ? t : ops::mul(t, by);
}

Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
             const Scalar& alpha) {
  check_product(mat1, mat2, "addmm");
  const Tensor product = scaled(mm(mat1, mat2), alpha);
  if (beta.to<complex128>() == complex128{0, 0}) {
    broadcast_sizes(self.sizes(), product.sizes());
    return product;
  }
  return ops::add(scaled(self, beta), product);
}

Tensor mv(const Tensor& self, const Tensor& vec) {
  check(self.dim() == 2 && vec.dim() == 1, "mv(): expected a matrix and a vector; got ", self.dim(),
        "D and ", vec.dim(), "D");
  check_kind(ErrorKind::NotImplemented, is_strided(vec), "mv(): the vector must be strided");
  check(self.sizes()[1] == vec.sizes()[0], "mv(): expected self.size(-1) == vec.size(-1); got ",
        self.sizes()[1], " and ", vec.sizes()[0]);
  return ops::reshape(mm(self, ops::unsqueeze(vec, 1)), IntVec(1, self.sizes()[0]));
}
Tensor addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
             const Scalar& alpha) {
  const Tensor product = scaled(mv(mat, vec), alpha);
  if (beta.to<complex128>() == complex128{0, 0}) return product;
  return ops::add(scaled(self, beta), product);
}

// The matrices of a batch as blocks on the diagonal of one.
Tensor bmm(const Tensor& self, const Tensor& mat2) {
  check_kind(ErrorKind::NotImplemented, is_coo(self) && is_strided(mat2),
             "bmm(): expected a sparse_coo tensor times a strided one; got ",
             layout_name(self->layout), " and ", layout_name(mat2->layout));
  check(self.dim() == 3 && mat2.dim() == 3 && sparse_dims(coo(self)) == 3,
        "bmm(): expected batches of matrices without dense dimensions; got sizes ",
        str(self.sizes()), " and ", str(mat2.sizes()));
  const int64_t batch = self.sizes()[0], n = self.sizes()[1], k = self.sizes()[2],
                width = mat2.sizes()[2];
  check(batch == mat2.sizes()[0] && k == mat2.sizes()[1],
        "bmm(): expected sizes (b, n, k) and (b, k, m); got ", str(self.sizes()), " and ",
        str(mat2.sizes()));
  check(self.dtype() == mat2.dtype(), "bmm(): expected one dtype; got ", name(self.dtype()),
        " and ", name(mat2.dtype()));
  const Tensor t = coalesced(self), indices = ops::clone(plain_indices(t));
  flat_positions(t);
  int64_t* at = indices.data<int64_t>();
  const int64_t count = nnz(coo(t));
  for (int64_t i = 0; i < count; ++i) {
    at[count + i] += at[i] * n;
    at[2 * count + i] += at[i] * k;
  }
  const IntVec whole{batch * n, batch * k};
  const Tensor matrix =
      coo_tensor(whole, ops::contiguous(ops::narrow_copy(indices, 0, 1, 2)), coo(t).values, true);
  const Tensor product = sparse_times_dense(matrix, ops::reshape(mat2, IntVec{batch * k, width}));
  return ops::reshape(product, IntVec{batch, n, width});
}

// --- sparse.mm: gradients of sparse matrices are sparse

Tensor sparse_mm(const Tensor& sparse, const Tensor& dense) {
  if (!is_strided(sparse) && !is_strided(dense)) return ops::_sparse_sparse_matmul(sparse, dense);
  if (is_strided(sparse) && is_strided(dense)) return ops::mm(sparse, dense);
  check(sparse.dim() == 2 && dense.dim() == 2, "sparse.mm(): expected two matrices; got sizes ",
        str(sparse.sizes()), " and ", str(dense.sizes()));
  const Tensor &a = is_strided(sparse) ? dense : sparse, &b = is_strided(sparse) ? sparse : dense;
  const Tensor none = ops::zeros({}, b.dtype(), std::nullopt, b.device());
  const auto zeros = [&](int64_t rows, int64_t columns) {
    return ops::expand(none, IntVec{rows, columns});
  };
  if (!is_strided(sparse)) return ops::_sparse_addmm(zeros(a.sizes()[0], b.sizes()[1]), a, b, 0, 1);
  return ops::t(ops::_sparse_addmm(zeros(a.sizes()[1], b.sizes()[0]), ops::t(a), ops::t(b), 0, 1));
}

Tensor sparse_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                    const Scalar& alpha) {
  // Without a sparse tensor it is the usual product, as PyTorch's.
  if (is_strided(self) && is_strided(mat1) && is_strided(mat2))
    return ops::addmm(self, mat1, mat2, beta, alpha);
  check_kind(ErrorKind::NotImplemented, is_strided(self) && is_strided(mat2) && !is_strided(mat1),
             "sparse.addmm(): expected a strided self, a sparse mat1 and a strided mat2; got ",
             layout_name(self->layout), ", ", layout_name(mat1->layout), " and ",
             layout_name(mat2->layout));
  return addmm(self, mat1, mat2, beta, alpha);
}

Tensor adjoint(const Tensor& t) { return is_complex(t.dtype()) ? ops::conj(ops::t(t)) : ops::t(t); }
// The same as what its elements are: no bit stands for the conjugate of a sparse tensor.
Tensor sparse_adjoint(const Tensor& t) {
  const Tensor turned = ops::t(t);
  return is_complex(t.dtype()) ? ops::_conj_physical(turned) : turned;
}

Tensor sparse_matmul(const Tensor& self, const Tensor& other) {
  check_product(self, other, "_sparse_sparse_matmul");
  check(!is_strided(self) && !is_strided(other), "_sparse_sparse_matmul(): expected two sparse ",
        "matrices; got ", layout_name(self->layout), " and ", layout_name(other->layout));
  return sparse_times_sparse(self, other);
}

// At the positions of mask, (mat1 @ mat2).
Tensor sampled_mm(const Tensor& mask, const Tensor& mat1, const Tensor& mat2) {
  check(is_strided(mat1) && is_strided(mat2) && !is_strided(mask),
        "sampled_addmm(): expected a sparse self and strided matrices; got ",
        layout_name(mask->layout), ", ", layout_name(mat1->layout), " and ",
        layout_name(mat2->layout));
  check(mat1.dim() >= 2 && mat2.dim() == mat1.dim() && mask.dim() == mat1.dim(),
        "sampled_addmm(): expected self, mat1 and mat2 of as many dimensions, at least 2; got ",
        mask.dim(), ", ", mat1.dim(), " and ", mat2.dim());
  check(mat1.size(-1) == mat2.size(-2), "sampled_addmm(): mat1 and mat2 shapes cannot be ",
        "multiplied (", mat1.size(-2), "x", mat1.size(-1), " and ", mat2.size(-2), "x",
        mat2.size(-1), ")");
  check(mask.size(-2) == mat1.size(-2) && mask.size(-1) == mat2.size(-1),
        "sampled_addmm(): self must have the product's sizes ", mat1.size(-2), " by ",
        mat2.size(-1), "; got ", str(mask.sizes()));
  check(mask.dtype() == mat1.dtype() && mat1.dtype() == mat2.dtype(),
        "sampled_addmm(): expected one dtype; got ", name(mask.dtype()), ", ", name(mat1.dtype()),
        " and ", name(mat2.dtype()));
  if (mask.dim() > 2 || in_blocks(mask->layout))
    return ops::sparse_mask(ops::matmul(mat1, mat2), mask);
  check_matrix(mask, "sampled_addmm");
  const Tensor left = ops::contiguous(mat1), right = ops::contiguous(ops::t(mat2));
  const Tensor values = empty_tensor(IntVec(1, element_count(mask)), mask.dtype());
  const auto fill = FACULA_OF_ISA(sampled_products);
  if (is_coo(mask)) {
    const Tensor indices = plain_indices(mask);
    fill(ops::contiguous(ops::select(indices, 0, 0)), ops::contiguous(ops::select(indices, 0, 1)),
         left, right, values);
  } else {
    grid_of(mask);
    const Compressed& c = compressed(mask);
    const Tensor lines = cpu::sparse::rows_from_starts(int64(c.compressed), c.plain.numel());
    const bool rows_first = by_rows(mask->layout);
    fill(lines, int64(c.plain), rows_first ? left : right, rows_first ? right : left, values);
  }
  return with_values(mask, values);
}
void sampled_gradients(Backward& b) {
  const Tensor grad = b.grad();
  if (b.needs("mat1")) b.set("mat1", ops::mm(grad, adjoint(b["mat2"])));
  if (b.needs("mat2")) b.set("mat2", ops::mm(adjoint(b["mat1"]), grad));
}

Tensor sampled_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                     const Scalar& alpha) {
  check(self->layout == Layout::SparseCsr || self->layout == Layout::Sparse ||
            self->layout == Layout::SparseCsc,
        "sampled_addmm: Expected self to have sparse csr layout, but got ",
        layout_name(self->layout));
  const Tensor to = is_coo(self) ? ops::coalesce(self) : self;
  const Tensor product = scaled(ops::_sparse_sampled_mm(to, mat1, mat2), alpha);
  if (beta.to<complex128>() == complex128{0, 0}) return product;
  return ops::_sparse_with_values(to,
                                  ops::add(scaled(ops::values(to), beta), ops::values(product)));
}

// A strided gradient reaches the elements of self as it is, and the matrices at self's positions.
void sampled_addmm_gradients(Backward& b) {
  const Tensor grad = b.grad();
  if (b.needs("self")) b.set("self", ops::mul(grad, b.scalar("beta").conj()));
  if (!b.needs("mat1") && !b.needs("mat2")) return;
  const Tensor sampled = is_strided(grad) ? ops::sparse_mask(grad, b["self"]) : grad;
  const Tensor of_product = scaled(sampled, b.scalar("alpha").conj());
  if (b.needs("mat1")) b.set("mat1", ops::mm(of_product, adjoint(b["mat2"])));
  if (b.needs("mat2")) b.set("mat2", ops::mm(adjoint(b["mat1"]), of_product));
}

Tensor hspmm(const Tensor& mat1, const Tensor& mat2) {
  check_kind(ErrorKind::NotImplemented, is_coo(mat1) && is_strided(mat2),
             "hspmm(): expected a sparse_coo mat1 and a strided mat2; got ",
             layout_name(mat1->layout), " and ", layout_name(mat2->layout));
  check_product(mat1, mat2, "hspmm");
  const Tensor product = sparse_times_dense(mat1, mat2);
  const Tensor rows =
      cpu::sparse::grouped(ops::contiguous(ops::select(plain_indices(mat1), 0, 0))).numbers;
  return coo_tensor(product.sizes(), ops::unsqueeze(rows, 0), ops::index_select(product, 0, rows),
                    true);
}
// The rows that mat1 has elements in, whole, as elements of two sparse dimensions.
Tensor rows_of_product(const Tensor& mat1, const Tensor& mat2) {
  const Tensor hybrid = hspmm(mat1, mat2);
  const Tensor rows = coo(hybrid).indices;
  const int64_t n = rows.numel(), width = mat2.sizes()[1];
  const int64_t shape[] = {2, n * width};
  const Tensor indices = empty_tensor(shape, DType::Int64);
  for (int64_t i = 0; i < n * width; ++i) {
    indices.data<int64_t>()[i] = rows.data<int64_t>()[i / width];
    indices.data<int64_t>()[n * width + i] = i % width;
  }
  return coo_tensor(hybrid.sizes(), indices, ops::reshape(coo(hybrid).values, IntVec(1, n * width)),
                    true);
}
Tensor sspaddmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                const Scalar& alpha) {
  check_product(mat1, mat2, "sspaddmm");
  check(is_coo(self) && is_coo(mat1) && is_strided(mat2),
        "sspaddmm(): expected sparse_coo self and mat1 and a strided mat2");
  return ops::add(scaled(self, beta), scaled(rows_of_product(mat1, mat2), alpha));
}
Tensor smm(const Tensor& self, const Tensor& mat2) {
  check(is_coo(self) && is_strided(mat2),
        "smm(): expected a sparse_coo self and a strided mat2; got ", layout_name(self->layout),
        " and ", layout_name(mat2->layout));
  check_product(self, mat2, "smm");
  return rows_of_product(self, mat2);
}

// --- sparse.mm with reduce

cpu::sparse::Reduce reduce_named(std::string_view how) {
  using cpu::sparse::Reduce;
  if (how == "sum") return Reduce::Sum;
  if (how == "mean") return Reduce::Mean;
  if (how == "amax") return Reduce::Amax;
  if (how == "amin") return Reduce::Amin;
  throw Error(ErrorKind::Runtime, "sparse_mm_reduce: reduce type of ", how,
              " has not been enabled.");
}

std::tuple<Tensor, Tensor> reduce_impl(const Tensor& self, const Tensor& other,
                                       std::string_view reduce) {
  if (self->layout != Layout::SparseCsr) not_implemented(op::_sparse_mm_reduce_impl, self);
  check(is_strided(other), "sparse_mm_reduce: expected a strided dense matrix; got ",
        layout_name(other->layout));
  check_product(self, other, "sparse.mm");
  const auto how = reduce_named(reduce);
  const IntVec sizes{self.sizes()[0], other.sizes()[1]};
  const Tensor out = empty_tensor(sizes, self.dtype());
  const bool picks = how == cpu::sparse::Reduce::Amax || how == cpu::sparse::Reduce::Amin;
  const Tensor chosen = empty_tensor(picks ? sizes : IntVec(1, 0), DType::Int64);
  FACULA_OF_ISA(reduce_rows)
  (rows_of(self), ops::contiguous(other), how, out, picks ? chosen : Tensor());
  return {out, chosen};
}
Tensor mm_reduce(const Tensor& sparse, const Tensor& dense, std::string_view reduce) {
  return std::get<0>(ops::_sparse_mm_reduce_impl(sparse, dense, reduce));
}

// Of sums and means: those of the product with values scaled by the length of their rows.
void linear_reduce_gradients(Backward& b, bool mean) {
  const Tensor self = b["self"], other = b["other"], starts = ops::crow_indices(self);
  Tensor grad = b.grad();
  if (mean) {
    const int64_t rows = self.sizes()[0];
    const Tensor lengths =
        ops::sub(ops::narrow_copy(starts, 0, 1, rows), ops::narrow_copy(starts, 0, 0, rows));
    const Tensor by = ops::clamp_min(ops::to(lengths, grad.dtype()), 1);
    grad = ops::div(grad, ops::unsqueeze(by, 1));
  }
  if (b.needs("self")) b.set("self", ops::_sparse_sampled_mm(self, grad, adjoint(other)));
  if (b.needs("other")) b.set("other", ops::mm(sparse_adjoint(self), grad));
}
// Of the element that each result was chosen from.
void picking_reduce_gradients(Backward& b) {
  const Tensor self = b["self"], other = b["other"], chosen = b.result(1), grad = b.grad();
  const Tensor values = ops::values(self), columns = ops::to(ops::col_indices(self), DType::Int64);
  const int64_t n = values.numel(), width = other.sizes()[1];
  if (n == 0) return;
  const Tensor at = ops::reshape(ops::clamp_min(chosen, 0), IntVec(1, -1));
  const Tensor kept =
      ops::reshape(ops::mul(grad, ops::to(ops::ge(chosen, 0), grad.dtype())), IntVec(1, -1));
  const Tensor lane = ops::reshape(
      ops::expand(ops::arange(Scalar(width), DType::Int64), IntVec{chosen.sizes()[0], width}),
      IntVec(1, -1));
  const Tensor place = ops::add(ops::mul(ops::index_select(columns, 0, at), width), lane);
  const Tensor flat = ops::reshape(ops::contiguous(other), IntVec(1, -1));
  if (b.needs("self")) {
    const Tensor by = ops::mul(kept, ops::index_select(flat, 0, place));
    b.set("self",
          ops::_sparse_with_values(self, ops::index_add(ops::zeros_like(values), 0, at, by)));
  }
  if (b.needs("other")) {
    const Tensor by = ops::mul(kept, ops::index_select(values, 0, at));
    b.set("other",
          ops::reshape(ops::index_add(ops::zeros_like(flat), 0, place, by), other.sizes()));
  }
}
void reduce_gradients(Backward& b) {
  const std::string_view how = b.text("reduce");
  if (how == "sum" || how == "mean") return linear_reduce_gradients(b, how == "mean");
  picking_reduce_gradients(b);
}

const CooKernels coo_kernels{
    kernel<mm>(op::mm),       kernel<addmm>(op::addmm), kernel<mv>(op::mv),
    kernel<addmv>(op::addmv), kernel<bmm>(op::bmm),
};
const CompressedKernels compressed_kernels{
    kernel<mm>(op::mm),
    kernel<addmm>(op::addmm),
    kernel<mv>(op::mv),
    kernel<addmv>(op::addmv),
};

}  // namespace
}  // namespace facula

using namespace facula;

OP(_sparse_mm){
    .schema = "_sparse_mm(Tensor sparse, Tensor dense) -> Tensor",
    .doc = "Product of matrices of which one or both are sparse; gradients of those are sparse.",
    .forms = hidden,
    .composite = Composite::Implicit,
    .any = typed_kernel<sparse_mm>,
};
OP(_sparse_mm_reduce){
    .schema = "_sparse_mm.reduce(Tensor sparse, Tensor dense, str reduce) -> Tensor",
    .doc =
        "Product of a CSR and a strided matrix in which 'sum', 'mean', 'amax' or 'amin' takes the "
        "place of the sum over a row's elements.",
    .forms = hidden,
    .composite = Composite::Implicit,
    .any = typed_kernel<mm_reduce>,
};
OP(_sparse_mm_reduce_impl){
    .schema = "_sparse_mm_reduce_impl(Tensor self, Tensor other, str reduce) -> (Tensor, Tensor)",
    .doc = "As _sparse_mm.reduce, and for amax and amin the elements that were chosen.",
    .forms = hidden,
    .flags = any_layout,
    .any = typed_kernel<reduce_impl>,
    .derivatives = {vjp(names("self", "other"), reduce_gradients,
                        saves("self", "other", "result1"))},
    .not_differentiable = names("result1"),
    .hole = "batch: transforms do not take sparse tensors",
};
OP(_sparse_addmm){
    .schema =
        "_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> "
        "Tensor",
    .doc = "beta * self + alpha * mat1 @ mat2 of a sparse mat1, whose gradient is sparse.",
    .forms = hidden,
    .flags = any_layout,
    .any = typed_kernel<sparse_addmm>,
    .derivatives =
        {
            vjp("self", [](Backward& b) { return scaled(b.grad(), b.scalar("beta")); }),
            vjp(
                "mat1",
                [](Backward& b) {
                  const Tensor mat1 = b["mat1"], turned = adjoint(b["mat2"]);
                  const Tensor grad =
                      is_strided(mat1)
                          ? ops::mm(b.grad(), turned)
                          : ops::_sparse_sampled_mm(is_coo(mat1) ? ops::coalesce(mat1) : mat1,
                                                    b.grad(), turned);
                  return scaled(grad, b.scalar("alpha").conj());
                },
                saves("mat1", "mat2")),
            vjp(
                "mat2",
                [](Backward& b) {
                  const Tensor mat1 = b["mat1"];
                  return scaled(
                      ops::mm(is_strided(mat1) ? adjoint(mat1) : sparse_adjoint(mat1), b.grad()),
                      b.scalar("alpha").conj());
                },
                saves("mat1")),
        },
    .hole = "batch: transforms do not take sparse tensors",
};
OP(_sparse_sparse_matmul){
    .schema = "_sparse_sparse_matmul(Tensor self, Tensor other) -> Tensor",
    .doc = "Product of two sparse matrices, as a sparse one.",
    .forms = hidden,
    .flags = any_layout,
    .any = typed_kernel<sparse_matmul>,
    .derivatives =
        {
            vjp(
                "self",
                [](Backward& b) {
                  return ops::_sparse_sparse_matmul(b.grad(), sparse_adjoint(b["other"]));
                },
                saves("other")),
            vjp(
                "other",
                [](Backward& b) {
                  return ops::_sparse_sparse_matmul(sparse_adjoint(b["self"]), b.grad());
                },
                saves("self")),
        },
    .hole = "batch: transforms do not take sparse tensors",
};
OP(_sparse_sampled_mm){
    .schema = "_sparse_sampled_mm(Tensor mask, Tensor mat1, Tensor mat2) -> Tensor",
    .doc = "The product mat1 @ mat2 at the positions of a sparse mask, in its layout.",
    .forms = hidden,
    .flags = any_layout,
    .any = typed_kernel<sampled_mm>,
    .derivatives = {vjp(names("mat1", "mat2"), sampled_gradients, saves("mat1", "mat2"))},
    .hole = "batch: transforms do not take sparse tensors",
};
OP(sparse_sampled_addmm){
    .schema =
        "sparse_sampled_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar "
        "alpha=1) -> Tensor",
    .doc =
        "beta * self + alpha * (mat1 @ mat2) at the positions that the sparse matrix self has; "
        "mat1 (n, k) and mat2 (k, m) are strided.",
    .forms = function | out,
    .python_module = "sparse",
    .flags = any_layout,
    .any = typed_kernel<sampled_addmm>,
    .derivatives = {vjp(names("self", "mat1", "mat2"), sampled_addmm_gradients,
                        saves("self", "mat1", "mat2"))},
    .hole = "batch: transforms do not take sparse tensors",
};
OP(hspmm){
    .schema = "hspmm(Tensor mat1, Tensor mat2) -> Tensor",
    .doc = "Product of a sparse_coo and a strided matrix, as rows of one sparse dimension.",
    .flags = any_layout,
    .any = typed_kernel<hspmm>,
    .hole = "derivatives: PyTorch has none either; batch: transforms do not take sparse tensors",
};
OP(smm){
    .schema = "smm(Tensor self, Tensor mat2) -> Tensor",
    .doc = "Product of a sparse_coo and a strided matrix, as a sparse_coo one.",
    .forms = function_method,
    .flags = any_layout,
    .any = typed_kernel<smm>,
    .hole = "derivatives: PyTorch has none either; batch: transforms do not take sparse tensors",
};
OP(sspaddmm){
    .schema =
        "sspaddmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> "
        "Tensor",
    .doc = "beta * self + alpha * mat1 @ mat2 of sparse_coo self and mat1, as a sparse_coo tensor.",
    .forms = function_method,
    .flags = any_layout,
    .any = typed_kernel<sspaddmm>,
    .hole = "derivatives: PyTorch has none either; batch: transforms do not take sparse tensors",
};
