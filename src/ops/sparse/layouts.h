// Tensors of sparse layouts: what they hold, and how the family's files make and open them.
#pragma once
#include <initializer_list>

#include "core/tensor.h"
#include "dispatch/layout.h"
#include "dispatch/typed.h"

namespace facula::sparse {

// Coordinates: element i stands at indices[:, i]; dimensions after the sparse ones are dense.
struct Coo : Extension {
  Tensor indices;  // (sparse dims, nnz), int64
  Tensor values;   // (nnz, dense sizes...)
  bool coalesced;  // positions ascend, and none is there twice

  Coo(Tensor i, Tensor v, bool c);
  Extension* clone() const override { return new Coo(indices, values, coalesced); }
  IntVec strides(const TensorImpl& t) const override;
  std::vector<Tensor> parts(const TensorImpl& t) const override;
};

// Rows (CSR, BSR) or columns (CSC, BSC), compressed: those of number i have the elements or blocks
// from compressed[i] to compressed[i + 1]. Leading dimensions of all three are a batch.
struct Compressed : Extension {
  Tensor compressed;  // (batch..., rows + 1), int32 or int64
  Tensor plain;       // (batch..., nnz): the other coordinate, of the same dtype
  Tensor values;      // (batch..., nnz, block sizes..., dense sizes...)

  Compressed(Layout layout, Tensor c, Tensor p, Tensor v);
  Extension* clone() const override;
  std::vector<Tensor> parts(const TensorImpl& t) const override;
};

const ExtensionKind& coo_kind();
const ExtensionKind& compressed_kind(Layout layout);

inline bool is_coo(const Tensor& t) { return t->layout == Layout::Sparse; }
inline bool is_compressed_layout(Layout l) {
  return l == Layout::SparseCsr || l == Layout::SparseCsc || l == Layout::SparseBsr ||
         l == Layout::SparseBsc;
}
inline bool is_compressed(const Tensor& t) { return is_compressed_layout(t->layout); }
inline bool is_strided(const Tensor& t) { return t->layout == Layout::Strided; }
// Whether rows are compressed, not columns; whether there are blocks.
inline bool by_rows(Layout l) { return l == Layout::SparseCsr || l == Layout::SparseBsr; }
inline bool in_blocks(Layout l) { return l == Layout::SparseBsr || l == Layout::SparseBsc; }

// What a tensor holds. RuntimeError for one of another layout.
Coo& coo(const Tensor& t);
Compressed& compressed(const Tensor& t);

// "Sparse", "SparseCsr", "Strided": layouts as error texts of accessors name them.
const char* backend_name(Layout l);

// --- making

// The parts are taken as they are, without their history: nothing is checked.
Tensor coo_tensor(IntSpan sizes, const Tensor& indices, const Tensor& values, bool coalesced);
Tensor compressed_tensor(Layout layout, IntSpan sizes, const Tensor& compressed,
                         const Tensor& plain, const Tensor& values);
// Without elements.
Tensor empty_coo(IntSpan sizes, int64_t sparse_dims, DType dtype, Device device);
// Other values at the same positions.
Tensor with_values(const Tensor& like, const Tensor& values);

// --- sizes

inline int64_t sparse_dims(const Coo& c) { return c.indices.sizes()[0]; }
inline int64_t nnz(const Coo& c) { return c.values.sizes()[0]; }
inline IntSpan sparse_sizes(const Tensor& t) {
  return t.sizes().first(static_cast<size_t>(sparse_dims(coo(t))));
}
// {first, rest...}
IntVec joined(IntSpan first, IntSpan rest);
inline IntVec joined(int64_t first, IntSpan rest) { return joined(IntSpan(&first, 1), rest); }

// Indices of COO tensors on the CPU, contiguous.
Tensor plain_indices(const Tensor& t);
// The number of each element's position among the sparse dimensions, checked.
Tensor flat_positions(const Tensor& t);
// The tensor with ascending positions; itself where they are known to be.
Tensor coalesced(const Tensor& t);
// Sums of values (n, ...) by group: (groups, ...).
Tensor summed_by_group(const Tensor& values, const Tensor& group_of, int64_t groups);

// --- kernels for operators that exist without the family

struct LayoutKernel {
  Operator* op;
  KernelFn function;
};
template <auto F>
LayoutKernel kernel(Operator& op) {
  return {&op, &typed::kernel<F>};
}
// Registers kernels for one kind when the library is loaded.
struct CooKernels {
  CooKernels(std::initializer_list<LayoutKernel> kernels);
};
struct CompressedKernels {
  CompressedKernels(std::initializer_list<LayoutKernel> kernels);
};
// NotImplementedError, in the words of a call that finds no kernel.
[[noreturn]] void not_implemented(const Operator& op, const Tensor& t);

}  // namespace facula::sparse
