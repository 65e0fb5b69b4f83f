// Linear algebra that needs no factorisation: powers, chains of products, cross products.
#include "ops/linalg/linalg.h"

#include <cstdlib>
#include <limits>
#include <vector>

#include "dispatch/out_dtype.h"
#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "dispatch/warn_once.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/create/range.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/linalg/inverse.h"
#include "ops/matmul/matmul.h"
#include "ops/shape/stack.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"

namespace facula {
namespace {

// --- cross products

IntVec cross_sizes(const Tensor& a, const Tensor& b, int64_t dim, const char* op) {
  check(a.dim() == b.dim(), op, ": inputs must have as many dimensions; got ", a.dim(), " and ",
        b.dim());
  const int64_t d = wrap_dim(dim, a.dim());
  check(a.dim() > 0 && a.sizes()[d] == 3 && b.sizes()[d] == 3, op, ": inputs dimension ", dim,
        " must have length 3. Got ", str(a.sizes()), " and ", str(b.sizes()));
  return broadcast_sizes(a.sizes(), b.sizes());
}

Tensor linalg_cross(const Tensor& self, const Tensor& other, int64_t dim) {
  const IntVec sizes = cross_sizes(self, other, dim, "linalg.cross");
  check(self.dtype() == other.dtype(), "linalg.cross(): both inputs must have one dtype; got ",
        name(self.dtype()), " and ", name(other.dtype()));
  if (self.dtype() == DType::Bool)
    throw Error(ErrorKind::NotImplemented, "\"cross\" not implemented for 'Bool'");
  const Tensor a = ops::expand(self, sizes), b = ops::expand(other, sizes);
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < 3; ++i) {
    const int64_t j = (i + 1) % 3, k = (i + 2) % 3;
    auto product = [&](int64_t p, int64_t q) {
      return ops::mul(ops::select(a, dim, p), ops::select(b, dim, q));
    };
    parts.push_back(ops::sub(product(j, k), product(k, j)));
  }
  return ops::stack(parts, wrap_dim(dim, self.dim()));
}

// Without a dimension, the first of size three: an old rule of PyTorch's.
Tensor cross(const Tensor& self, const Tensor& other, const std::optional<int64_t>& dim) {
  if (dim) return ops::linalg_cross(self, other, *dim);
  static constinit std::atomic<bool> told{false};
  warn_once(told,
            "cross(): a call without dim is deprecated in favour of one with it; dim is the first "
            "of size 3, where linalg.cross takes the last");
  for (int64_t d = 0; d < self.dim(); ++d)
    if (self.sizes()[d] == 3) return ops::linalg_cross(self, other, d);
  check(false, "cross(): a dimension must have size 3");
  return {};
}

// --- powers of matrices

// Copies into what was computed from `like`, so that the result has a gradient, of zeros.
Tensor identities(const Tensor& like) {
  const Tensor one = ops::eye(like.size(-1), like.dtype(), std::nullopt, like.device());
  return ops::copy_(ops::clone(like, MemoryFormat::Contiguous), one);
}

Tensor matrix_power(const Tensor& self, int64_t n) {
  check(self.dim() >= 2, "linalg.matrix_power(): A must have at least 2 dimensions; got ",
        self.dim());
  const int64_t rows = self.size(-2), cols = self.size(-1);
  check(rows == cols, "linalg.matrix_power(): A must be square; got ", rows, " by ", cols);
  if (n == 0) return identities(self);
  if (n == 1) return ops::clone(self, MemoryFormat::Contiguous);
  Tensor square = n < 0 ? ops::linalg_inv(self) : self, result;
  if (n == -1) return square;
  check(n != std::numeric_limits<int64_t>::min(),
        "linalg.matrix_power(): expected n above -2^63; got ", n);
  n = std::abs(n);
  if (n == 3) return ops::matmul(ops::matmul(square, square), square);
  for (;; square = ops::matmul(square, square)) {
    if (n & 1) result = result.defined() ? ops::matmul(result, square) : square;
    n >>= 1;
    if (n == 0) return result;
  }
}

// --- chains of products

// The cheapest order, by dynamic programming over all ways to split a chain in two.
class ChainOrder {
 public:
  explicit ChainOrder(std::span<const Tensor> chain)
      : n_(chain.size()), cost_(n_ * n_, 0), split_(n_ * n_, 0) {
    for (const Tensor& t : chain) sizes_.push_back(static_cast<double>(t.sizes()[0]));
    sizes_.push_back(static_cast<double>(chain.back().sizes()[1]));
    for (size_t length = 2; length <= n_; ++length)
      for (size_t i = 0; i + length <= n_; ++i) choose(i, i + length - 1);
  }
  Tensor product(std::span<const Tensor> chain, size_t i, size_t j) const {
    if (i == j) return chain[i];
    const size_t k = split_[i * n_ + j];
    return ops::mm(product(chain, i, k), product(chain, k + 1, j));
  }

 private:
  void choose(size_t i, size_t j) {
    double& least = cost_[i * n_ + j];
    for (size_t k = i; k < j; ++k) {
      const double cost =
          cost_[i * n_ + k] + cost_[(k + 1) * n_ + j] + sizes_[i] * sizes_[k + 1] * sizes_[j + 1];
      if (k != i && cost >= least) continue;
      least = cost;
      split_[i * n_ + j] = k;
    }
  }
  size_t n_;
  std::vector<double> sizes_, cost_;
  std::vector<size_t> split_;
};

void check_chain(std::span<const Tensor> chain) {
  for (size_t i = 0; i < chain.size(); ++i) {
    check(chain[i].dim() == 2, "multi_dot(): tensor ", i, " must be 2D but got ", chain[i].dim(),
          "D");
    check(chain[i].dtype() == chain[0].dtype(),
          "multi_dot(): all tensors must have one dtype; got ", name(chain[0].dtype()),
          " at 0 and ", name(chain[i].dtype()), " at ", i);
    check(i == 0 || chain[i - 1].sizes()[1] == chain[i].sizes()[0], "multi_dot(): tensors ", i - 1,
          " and ", i, " with shapes ", str(chain[i == 0 ? 0 : i - 1].sizes()), " and ",
          str(chain[i].sizes()), " cannot be multiplied");
  }
}

Tensor linalg_multi_dot(std::span<const Tensor> tensors) {
  check(tensors.size() >= 2, "multi_dot(): at least 2 tensors are multiplied; got ",
        tensors.size());
  std::vector<Tensor> chain(tensors.begin(), tensors.end());
  const bool row = chain.front().dim() == 1, column = chain.back().dim() == 1;
  check(row || chain.front().dim() == 2,
        "multi_dot(): the first tensor must have 1 or 2 dimensions; got ", chain.front().dim());
  check(column || chain.back().dim() == 2,
        "multi_dot(): the last tensor must have 1 or 2 dimensions; got ", chain.back().dim());
  if (row) chain.front() = ops::unsqueeze(chain.front(), 0);
  if (column) chain.back() = ops::unsqueeze(chain.back(), -1);
  check_chain(chain);
  IntVec sizes;
  if (!row) sizes.push_back(chain.front().sizes()[0]);
  if (!column) sizes.push_back(chain.back().sizes()[1]);
  return ops::view(ChainOrder(chain).product(chain, 0, chain.size() - 1), sizes);
}

Tensor chain_matmul(std::span<const Tensor> matrices) {
  static constinit std::atomic<bool> told{false};
  warn_once(told, "chain_matmul(): is deprecated in favour of linalg.multi_dot");
  check(!matrices.empty(), "chain_matmul(): expected a matrix; got none");
  for (const Tensor& t : matrices)
    check(t.dim() == 2, "chain_matmul(): expected 2D tensors; got ", str(t.sizes()));
  return matrices.size() == 1 ? ops::clone(matrices[0]) : ops::linalg_multi_dot(matrices);
}

Tensor conjugate(const Tensor& t) { return is_complex(t.dtype()) ? ops::conj(t) : t; }

}  // namespace
}  // namespace facula

using namespace facula;

OP(linalg_cross){
    .schema = "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
    .doc = "Cross products of vectors of three elements along a dimension; the others broadcast.",
    .forms = function | out,
    .python_module = "linalg",
    .composite = Composite::Explicit,
    .flags = exact_out,
    .any = typed_kernel<linalg_cross>,
    .derivatives =
        {
            vjp(
                "self",
                [](Backward& b) {
                  return ops::linalg_cross(conjugate(b["other"]), b.grad(), b.integer("dim"));
                },
                saves("other")),
            vjp(
                "other",
                [](Backward& b) {
                  return ops::linalg_cross(b.grad(), conjugate(b["self"]), b.integer("dim"));
                },
                saves("self")),
        },
};
OP(cross){
    .schema = "cross(Tensor self, Tensor other, int? dim=None) -> Tensor",
    .doc = "As linalg.cross; without dim, along the first dimension of size three.",
    .forms = function | method | out,
    .composite = Composite::Implicit,
    .flags = exact_out,
    .autocast = Autocast::Promote,
    .autocast_cpu = Autocast::None,
    .any = typed_kernel<cross>,
};
OP(linalg_matrix_power){
    .schema = "linalg_matrix_power(Tensor self, int n) -> Tensor",
    .doc = "The n-th power of square matrices (..., k, k); of their inverses where n is negative.",
    .forms = function | out,
    .python_module = "linalg",
    .composite = Composite::Implicit,
    .flags = exact_out,
    .any = typed_kernel<matrix_power>,
};
OP(matrix_power){
    .schema = "matrix_power(Tensor self, int n) -> Tensor",
    .doc = "The same as linalg.matrix_power.",
    .forms = function | method | out,
    .composite = Composite::Implicit,
    .flags = exact_out,
    .any = typed_kernel<matrix_power>,
};
OP(linalg_multi_dot){
    .schema = "linalg_multi_dot(Tensor[] tensors) -> Tensor",
    .doc =
        "Product of a chain of matrices in the cheapest order; the first and last may be vectors.",
    .forms = function | out,
    .python_module = "linalg",
    .composite = Composite::Implicit,
    .flags = exact_out,
    .autocast = Autocast::LowerPrecision,
    .autocast_cpu = Autocast::None,
    .any = typed_kernel<linalg_multi_dot>,
};
OP(chain_matmul){
    .schema = "chain_matmul(Tensor[] matrices) -> Tensor",
    .doc = "Product of a chain of matrices in the cheapest order.",
    .forms = function | out,
    .composite = Composite::Implicit,
    .flags = exact_out,
    .autocast = Autocast::LowerPrecision,
    .autocast_cpu = Autocast::None,
    .any = typed_kernel<chain_matmul>,
};
