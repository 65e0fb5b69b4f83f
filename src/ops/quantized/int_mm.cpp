// Products of matrices of bytes, as int32.
#include "dispatch/call.h"
#include "kernels/cpu/quantized/product.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/arithmetic_numbers.h"
#include "ops/meta_rules.h"
#include "ops/reduce/reduce_rules.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"

namespace facula {
namespace {

void meta_int_mm(Meta& m, const Tensor& self, const Tensor& mat2) {
  check(self.dim() == 2, "_int_mm: self must be a matrix, got ", self.dim(), "-D tensor");
  check(mat2.dim() == 2, "_int_mm: mat2 must be a matrix, got ", mat2.dim(), "-D tensor");
  check(self.sizes()[1] == mat2.sizes()[0], "_int_mm: mat1 and mat2 shapes cannot be multiplied (",
        self.sizes()[0], "x", self.sizes()[1], " and ", mat2.sizes()[0], "x", mat2.sizes()[1], ")");
  check(self.dtype() == DType::Int8 || self.dtype() == DType::UInt8,
        "_int_mm: Expected self dtype to be int8 or uint8 but got ", name(self.dtype()));
  check(mat2.dtype() == DType::Int8, "_int_mm: Expected mat2 dtype to be of type int8 but got ",
        name(mat2.dtype()));
  reduction::check_out_dtype(m, 0, DType::Int32);
  m.result(0, IntList{self.sizes()[0], mat2.sizes()[1]}, DType::Int32);
}

// The kernel multiplies unsigned by signed bytes. Signed rows are moved up by 128, which adds 128
// times a column's sum to each of the column's products.
void int_mm(const Tensor& self, const Tensor& mat2, const Tensor& result) {
  const int64_t m = self.size(0), k = self.size(1), n = mat2.size(1);
  if (result.numel() == 0) return;
  const bool is_signed = self.dtype() == DType::Int8;
  const Tensor rows = ops::contiguous(
      is_signed ? ops::to(ops::add(ops::to(self, DType::Int16), 128), DType::UInt8) : self);
  const Tensor columns = ops::contiguous(ops::t(mat2));
  const Tensor packed = empty_tensor({{cpu::packed_bytes(n, k)}}, DType::Int8),
               sums = empty_tensor({{n}}, DType::Int32);
  FACULA_OF_ISA(pack_bytes)
  (columns.data<int8_t>(), n, k, packed.data<int8_t>(), sums.data<int32_t>());
  const double scale = 1;
  const int64_t zero_point = 0;
  const Tensor products = result.is_contiguous() ? result : ops::empty_like(result);
  FACULA_OF_ISA(multiply_integers)
  ({m, rows.data<uint8_t>(), k, scale, zero_point},
   {n, k, packed.data<int8_t>(), sums.data<int32_t>(), &scale, &zero_point, 1, nullptr},
   products.data<int32_t>());
  if (is_signed) ops::sub_(products, ops::mul(sums, 128));
  if (!result.is_contiguous()) ops::copy_(result, products);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(_int_mm){
    .schema = "_int_mm(Tensor self, Tensor mat2) -> Tensor",
    .doc = "Product of matrices of bytes, (n, k) of int8 or uint8 times (k, m) of int8, as int32.",
    .forms = function | out,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_int_mm>,
    .cpu = typed_kernel<int_mm>,
    .not_differentiable = names("self", "mat2", "result"),
    .hole = "products of bytes are integers, and transforms do not take them",
};
