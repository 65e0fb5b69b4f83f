#include "ops/sparse/layouts.h"

#include <algorithm>

#include "kernels/cpu/sparse/indices.h"
#include "kernels/cpu/sparse/spread.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/comparison.h"
#include "ops/index/scatter.h"
#include "ops/sparse/validate.h"

namespace facula::sparse {
namespace {

// Parts may come from a file that nobody vouches for.
Tensor coo_from_parts(const ExtensionKind&, IntSpan sizes, DType dtype, Device device,
                      const std::vector<Tensor>& parts) {
  const bool fits = (parts.size() == 2 || parts.size() == 3) && parts[0].defined() &&
                    parts[1].defined() && parts[1].dtype() == dtype &&
                    parts[0].device() == device && parts[1].device() == device;
  check_value(fits, "sparse_coo tensor: its parts do not fit its dtype and device");
  const bool ascends = parts.size() == 3 && parts[2].defined();
  check_coo(parts[0], parts[1], sizes, ascends);
  return coo_tensor(sizes, parts[0], parts[1], ascends);
}

Tensor compressed_from_parts(const ExtensionKind& kind, IntSpan sizes, DType dtype, Device device,
                             const std::vector<Tensor>& parts) {
  const bool fits = parts.size() == 3 && parts[0].defined() && parts[1].defined() &&
                    parts[2].defined() && parts[2].dtype() == dtype &&
                    parts[0].device() == device && parts[1].device() == device &&
                    parts[2].device() == device;
  check_value(fits, layout_name(kind.layout), " tensor: its parts do not fit its dtype and device");
  check_compressed(parts[0], parts[1], parts[2], sizes, kind.layout);
  return compressed_tensor(kind.layout, sizes, parts[0], parts[1], parts[2]);
}

const ExtensionKind& registered(const char* name, Layout layout, const char* impl, const char* key,
                                Tensor (*from_parts)(const ExtensionKind&, IntSpan, DType, Device,
                                                     const std::vector<Tensor>&)) {
  ExtensionKind kind;
  kind.name = name;
  kind.impl_name = impl;
  kind.dispatch_key = key;
  kind.layout = layout;
  kind.has_storage = false;
  kind.from_parts = from_parts;
  return register_extension_kind(kind);
}

const ExtensionKind& registered_compressed(const char* name, Layout layout) {
  return registered(name, layout, "SparseCsrTensorImpl", "SparseCsr", compressed_from_parts);
}

}  // namespace

const ExtensionKind& coo_kind() {
  static const ExtensionKind& kind =
      registered("facula.sparse_coo", Layout::Sparse, "SparseTensorImpl", "Sparse", coo_from_parts);
  return kind;
}

const ExtensionKind& compressed_kind(Layout layout) {
  static const ExtensionKind* const kinds[] = {
      &registered_compressed("facula.sparse_csr", Layout::SparseCsr),
      &registered_compressed("facula.sparse_csc", Layout::SparseCsc),
      &registered_compressed("facula.sparse_bsr", Layout::SparseBsr),
      &registered_compressed("facula.sparse_bsc", Layout::SparseBsc)};
  for (const ExtensionKind* kind : kinds)
    if (kind->layout == layout) return *kind;
  throw Error(ErrorKind::Runtime, "expected a compressed sparse layout; got ", layout_name(layout));
}

CooKernels::CooKernels(std::initializer_list<LayoutKernel> kernels) {
  for (const LayoutKernel& k : kernels)
    put_in_layout(*k.op, coo_kind(), any_device, k.function, nullptr);
}
CompressedKernels::CompressedKernels(std::initializer_list<LayoutKernel> kernels) {
  for (Layout l : {Layout::SparseCsr, Layout::SparseCsc, Layout::SparseBsr, Layout::SparseBsc})
    for (const LayoutKernel& k : kernels)
      put_in_layout(*k.op, compressed_kind(l), any_device, k.function, nullptr);
}

// --- what they hold

Coo::Coo(Tensor i, Tensor v, bool c)
    : Extension(coo_kind()), indices(std::move(i)), values(std::move(v)), coalesced(c) {}

IntVec Coo::strides(const TensorImpl& t) const { return IntVec(t.sizes().size(), 0); }

// The third part is there where the positions are known to ascend.
std::vector<Tensor> Coo::parts(const TensorImpl&) const {
  return coalesced ? std::vector<Tensor>{indices, values, empty_tensor(IntVec(1, 0), DType::Bool)}
                   : std::vector<Tensor>{indices, values};
}

Compressed::Compressed(Layout layout, Tensor c, Tensor p, Tensor v)
    : Extension(compressed_kind(layout)),
      compressed(std::move(c)),
      plain(std::move(p)),
      values(std::move(v)) {}
Extension* Compressed::clone() const {
  return new Compressed(kind->layout, compressed, plain, values);
}
std::vector<Tensor> Compressed::parts(const TensorImpl&) const {
  return {compressed, plain, values};
}

Coo& coo(const Tensor& t) {
  check(is_coo(t) && has_layout_kind(t) && t->extension->kind == &coo_kind(),
        "expected a tensor of layout sparse_coo; got ", layout_name(t->layout));
  return *static_cast<Coo*>(t->extension);
}
Compressed& compressed(const Tensor& t) {
  check(is_compressed(t) && has_layout_kind(t) && t->extension->kind == &compressed_kind(t->layout),
        "expected a tensor of a compressed sparse layout; got ", layout_name(t->layout));
  return *static_cast<Compressed*>(t->extension);
}

const char* backend_name(Layout l) {
  switch (l) {
    case Layout::Strided:
      return "Strided";
    case Layout::Sparse:
      return "Sparse";
    case Layout::SparseCsr:
      return "SparseCsr";
    case Layout::SparseCsc:
      return "SparseCsc";
    case Layout::SparseBsr:
      return "SparseBsr";
    case Layout::SparseBsc:
      return "SparseBsc";
    default:
      return layout_name(l);
  }
}

// --- making

Tensor coo_tensor(IntSpan sizes, const Tensor& indices, const Tensor& values, bool coalesced) {
  const DType dtype = values.dtype();
  const Device device = values.device();
  // Fewer than two elements cannot be out of order.
  const bool in_order = coalesced || values.sizes()[0] < 2;
  return layout_tensor(new Coo(alias_tensor(indices), alias_tensor(values), in_order), sizes, dtype,
                       device);
}

Tensor compressed_tensor(Layout layout, IntSpan sizes, const Tensor& compressed,
                         const Tensor& plain, const Tensor& values) {
  const DType dtype = values.dtype();
  const Device device = values.device();
  auto* parts =
      new Compressed(layout, alias_tensor(compressed), alias_tensor(plain), alias_tensor(values));
  return layout_tensor(parts, sizes, dtype, device);
}

Tensor empty_coo(IntSpan sizes, int64_t sparse_dims, DType dtype, Device device) {
  const int64_t shape[] = {sparse_dims, 0};
  const IntSpan dense = sizes.subspan(static_cast<size_t>(sparse_dims));
  return coo_tensor(sizes, empty_tensor(shape, DType::Int64, device),
                    empty_tensor(joined(0, dense), dtype, device), true);
}

Tensor with_values(const Tensor& like, const Tensor& values) {
  if (is_coo(like)) return coo_tensor(like.sizes(), coo(like).indices, values, coo(like).coalesced);
  const Compressed& c = compressed(like);
  return compressed_tensor(like->layout, like.sizes(), c.compressed, c.plain, values);
}

IntVec joined(IntSpan first, IntSpan rest) {
  IntVec all(first);
  for (int64_t n : rest) all.push_back(n);
  return all;
}

Tensor plain_indices(const Tensor& t) {
  const Tensor& i = coo(t).indices;
  check_kind(ErrorKind::NotImplemented, i.device().is_cpu(),
             "sparse_coo tensors: positions are read on the CPU alone; got ", str(i.device()));
  return ops::contiguous(i);
}
Tensor flat_positions(const Tensor& t) {
  return cpu::sparse::flat_positions(plain_indices(t), sparse_sizes(t));
}

namespace {
// Whether loops may read the tensor's memory on the CPU as it lies, once it is contiguous.
bool lies_plainly(const Tensor& t) {
  return t.device().is_cpu() && !t->layers.has(Layer::Subclass) && t->storage &&
         (t.data() != nullptr || t.numel() == 0) && !t->conj && !t->neg;
}
}  // namespace

Tensor summed_by_group(const Tensor& values, const Tensor& group_of, int64_t groups) {
  if (lies_plainly(values) && lies_plainly(group_of) && group_of.is_contiguous() &&
      cpu::sparse::strictly_ascending(group_of))
    return cpu::sparse::spread_rows(ops::contiguous(values), group_of, groups);
  const IntVec sizes = joined(groups, values.sizes().subspan(1));
  const bool is_bool = values.dtype() == DType::Bool;
  const Tensor into =
      ops::zeros(sizes, is_bool ? DType::Int64 : values.dtype(), std::nullopt, values.device());
  ops::index_add_(into, 0, group_of, is_bool ? ops::to(values, DType::Int64) : values);
  return is_bool ? ops::ne(into, 0) : into;
}

Tensor coalesced(const Tensor& t) {
  const Coo& c = coo(t);
  if (c.coalesced) return t;
  if (nnz(c) < 2) return coo_tensor(t.sizes(), c.indices, c.values, true);
  const Tensor flat = flat_positions(t);
  if (cpu::sparse::strictly_ascending(flat))
    return coo_tensor(t.sizes(), ops::clone(c.indices), ops::clone(c.values), true);
  const auto groups = cpu::sparse::grouped(flat);
  const Tensor values = summed_by_group(c.values, groups.group_of, groups.numbers.numel());
  return coo_tensor(t.sizes(), ops::index_select(plain_indices(t), 1, groups.first), values, true);
}

}  // namespace facula::sparse
