// Embedding bags: sums, means and maxima of rows of a table.
#include "ops/embedding/bag.h"

#include <algorithm>

#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "kernels/cpu/embedding/bag.h"
#include "kernels/cpu/loop/convert.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/clamp.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/where.h"
#include "ops/embedding/embedding.h"
#include "ops/index/scatter.h"
#include "ops/reduce/cumulative.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/split.h"
#include "ops/shape/view.h"
#include "ops/sparse/embedding.h"

namespace facula {
namespace {

using cpu::BagMode;

void check_rows_table(const Tensor& weight) {
  check(weight.dim() == 2, "embedding_bag(): weight must be a matrix; got ", weight.dim(),
        " dimensions");
  check(is_floating(weight.dtype()), "embedding_bag(): weight must be floating point; got ",
        name(weight.dtype()));
}

void check_numbers(const Tensor& t, const char* name) {
  check(t.dtype() == DType::Int64 || t.dtype() == DType::Int32, "embedding_bag(): ", name,
        " must be int64 or int32; got ", info(t.dtype()).legacy_name);
  check(t.dim() == 1, "embedding_bag(): ", name, " must be a vector; got ", t.dim(), " dimensions");
}

BagMode mode_of(int64_t mode) {
  check(mode >= 0 && mode <= 2, "embedding_bag(): mode must be 0 (sum), 1 (mean) or 2 (max); got ",
        mode);
  return static_cast<BagMode>(mode);
}

Tensor wide_list(const Tensor& t) {
  return cpu::contiguous(t.dtype() == DType::Int64 ? t : cpu::converted(t, DType::Int64));
}

std::vector<int64_t> list_of(const Tensor& t) {
  const Tensor wide = wide_list(t);
  return {wide.data<int64_t>(), wide.data<int64_t>() + wide.numel()};
}

void check_starts(const std::vector<int64_t>& starts, int64_t length) {
  check(starts.empty() || starts[0] == 0, "embedding_bag(): offsets must start at 0; got ",
        starts.empty() ? 0 : starts[0]);
  check(starts.empty() || starts.back() <= length, "embedding_bag(): offsets must not pass the ",
        length, " indices; got ", starts.empty() ? 0 : starts.back());
  check(std::is_sorted(starts.begin(), starts.end()),
        "embedding_bag(): expected offsets that do not fall");
}

// With the end of the last bag: the last offset where it is said to be that, else all that is left.
cpu::Bags bags_of(const Tensor& indices, const Tensor& offsets, bool include_last,
                  int64_t padding) {
  cpu::Bags bags{wide_list(indices), list_of(offsets), padding};
  const int64_t length = bags.numbers.numel();
  check_starts(bags.starts, length);
  if (include_last && !bags.starts.empty())
    bags.starts.back() = length;
  else
    bags.starts.push_back(length);
  return bags;
}

void check_scales(const Tensor& weight, const Tensor& indices, BagMode mode, const Tensor& scales) {
  if (!scales.defined()) return;
  check(mode == BagMode::Sum, "embedding_bag(): per_sample_weights go with sums alone (mode 0)");
  check(scales.dtype() == weight.dtype(),
        "embedding_bag(): per_sample_weights must have the dtype of weight, ", name(weight.dtype()),
        "; got ", name(scales.dtype()));
  check(scales.dim() == 1 && scales.numel() == indices.numel(),
        "embedding_bag(): expected per_sample_weights of ", indices.numel(),
        " elements; got shape ", str(scales.sizes()));
}

using BagResults = std::tuple<Tensor, Tensor, Tensor, Tensor>;

// Sums of rows that lie densely need no list of each number's bag, and PyTorch leaves it empty.
bool leaves_bags_out(const Tensor& weight, BagMode mode, const Tensor& scales, int64_t padding) {
  const bool as_cpu = weight.device().is_cpu() || weight.is_meta();  // fake tensors are like theirs
  return as_cpu && mode == BagMode::Sum && padding < 0 && weight.dtype() != DType::Float64 &&
         weight.stride(1) == 1 && (!scales.defined() || scales.stride(0) == 1);
}

void meta_bags(Meta& m, const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool,
               int64_t mode_number, bool, const Tensor& scales, bool include_last,
               int64_t padding) {
  check_rows_table(weight);
  check_numbers(indices, "indices");
  check_numbers(offsets, "offsets");
  const BagMode mode = mode_of(mode_number);
  check_scales(weight, indices, mode, scales);
  check(!include_last || offsets.numel() >= 1,
        "embedding_bag(): include_last_offset needs an offset; got none");
  const int64_t width = weight.size(1), count = offsets.numel() - (include_last ? 1 : 0);
  m.result(0, IntList{count, width}, weight.dtype());
  m.result(1, IntList{leaves_bags_out(weight, mode, scales, padding) ? 0 : indices.numel()},
           DType::Int64);
  m.result(2, IntList{count}, DType::Int64);
  m.result(3, mode == BagMode::Max ? IntVec{count, width} : IntVec{count}, DType::Int64);
}

void embed_bags(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool,
                int64_t mode_number, bool, const Tensor& scales, bool include_last, int64_t padding,
                const Tensor& out, const Tensor& bag_numbers, const Tensor& sizes,
                const Tensor& chosen) {
  const BagMode mode = mode_of(mode_number);
  const cpu::Bags bags = bags_of(indices, offsets, include_last, padding);
  if (mode == BagMode::Max) cpu::fill(chosen, 0);
  cpu::embedding_bags(weight, bags, mode, scales, {out, bag_numbers, sizes, chosen});
  if (mode != BagMode::Max) cpu::copy(chosen, sizes);
}

// --- gradients

// Which bag each number belongs to, where the forward pass left that out.
Tensor bags_by_place(const Tensor& offset2bag, const Tensor& indices, const Tensor& offsets) {
  const int64_t n = indices.numel();
  if (offset2bag.numel() != 0 || n == 0) return offset2bag;
  const Tensor marks =
      ops::index_add(ops::new_zeros(offsets, {n + 1}), 0, offsets, ops::ones_like(offsets));
  return ops::sub(ops::cumsum(ops::narrow(marks, 0, 0, n), 0, DType::Int64), 1);
}

Tensor per_row(const Tensor& of_bags, const Tensor& offset2bag) {
  return ops::index_select(of_bags, 0, offset2bag);
}

// Bags without rows have no maximum and pass nothing on.
Tensor maximum_gradient(const Tensor& grad, const Tensor& bag_size, const Tensor& chosen,
                        int64_t rows) {
  const Tensor some = ops::unsqueeze(ops::gt(bag_size, 0), -1);
  const Tensor passed = ops::where(some, grad, 0);
  return ops::scatter_add(ops::new_zeros(grad, {rows, grad.size(1)}), 0, chosen, passed);
}

// The gradient of each row that was looked up.
Tensor spread_gradient(const Tensor& grad, const Tensor& offset2bag, const Tensor& bag_size,
                       BagMode mode, const Tensor& scales) {
  Tensor spread = per_row(grad, offset2bag);
  if (scales.defined()) spread = ops::mul(spread, ops::unsqueeze(scales, -1));
  if (mode == BagMode::Mean)
    return ops::div(spread, ops::unsqueeze(ops::clamp_min(per_row(bag_size, offset2bag), 1), -1));
  return spread;
}

Tensor dense_backward(const Tensor& grad, const Tensor& indices, const Tensor& offset2bag,
                      const Tensor& bag_size, const Tensor& chosen, int64_t rows,
                      bool scale_by_freq, int64_t mode_number, const Tensor& scales,
                      int64_t padding) {
  const BagMode mode = mode_of(mode_number);
  if (mode == BagMode::Max) return maximum_gradient(grad, bag_size, chosen, rows);
  const Tensor spread = spread_gradient(grad, offset2bag, bag_size, mode, scales);
  return ops::embedding_dense_backward(spread, indices, rows, padding, scale_by_freq);
}

Tensor sparse_backward(const Tensor& grad, const Tensor& indices, const Tensor& offset2bag,
                       const Tensor& bag_size, int64_t rows, bool scale_by_freq,
                       int64_t mode_number, const Tensor& scales, int64_t padding) {
  const BagMode mode = mode_of(mode_number);
  check(mode != BagMode::Max, "embedding_bag(): mode='max' has no sparse gradients");
  const Tensor spread = spread_gradient(grad, offset2bag, bag_size, mode, scales);
  return ops::embedding_sparse_backward(spread, indices, rows, padding, scale_by_freq);
}

Tensor backward(const Tensor& grad, const Tensor& indices, const Tensor& offsets,
                const Tensor& offset2bag, const Tensor& bag_size, const Tensor& chosen,
                int64_t rows, bool scale_by_freq, int64_t mode, bool sparse, const Tensor& scales,
                int64_t padding) {
  const Tensor bags = bags_by_place(offset2bag, indices, offsets);
  if (sparse)
    return sparse_backward(grad, indices, bags, bag_size, rows, scale_by_freq, mode, scales,
                           padding);
  return ops::_embedding_bag_dense_backward(grad, indices, bags, bag_size, chosen, rows,
                                            scale_by_freq, mode, scales, padding);
}

Tensor scales_backward(const Tensor& grad, const Tensor& weight, const Tensor& indices,
                       const Tensor& offsets, const Tensor& offset2bag, int64_t mode,
                       int64_t padding) {
  check(mode_of(mode) == BagMode::Sum,
        "embedding_bag(): per_sample_weights go with sums alone (mode 0)");
  const Tensor bags = bags_by_place(offset2bag, indices, offsets);
  const Tensor products = ops::mul(per_row(grad, bags), ops::embedding(weight, indices));
  const Tensor sums = ops::sum(products, IntList{-1});
  return padding < 0 ? sums : ops::where(ops::eq(indices, padding), 0, sums);
}

void bag_gradients(Backward& b) {
  const Tensor indices = b["indices"], offsets = b["offsets"], bag_numbers = b.result(1);
  const int64_t mode = b.integer("mode"), padding = b.integer("padding_idx");
  if (b.needs("weight"))
    b.set("weight", ops::_embedding_bag_backward(
                        b.grad(), indices, offsets, bag_numbers, b.result(2), b.result(3),
                        b.sizes("weight")[0], b.flag("scale_grad_by_freq"), mode, b.flag("sparse"),
                        b["per_sample_weights"], padding));
  if (b.needs("per_sample_weights"))
    b.set("per_sample_weights",
          ops::_embedding_bag_per_sample_weights_backward(b.grad(), b["weight"], indices, offsets,
                                                          bag_numbers, mode, padding));
}

// --- what users call

BagResults embedding_bag_padding(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                                 bool scale_by_freq, int64_t mode, bool sparse,
                                 const Tensor& scales, bool include_last,
                                 std::optional<int64_t> padding) {
  check_rows_table(weight);
  const int64_t rows = weight.size(0);
  int64_t row = -1;
  if (padding) {
    check(*padding >= -rows && *padding < rows, "embedding_bag(): padding_idx must be a row from ",
          -rows, " to ", rows - 1, "; got ", *padding);
    row = *padding < 0 ? *padding + rows : *padding;
  }
  return ops::_embedding_bag(weight, indices, offsets, scale_by_freq, mode, sparse, scales,
                             include_last, row);
}
BagResults embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                         bool scale_by_freq, int64_t mode, bool sparse, const Tensor& scales,
                         bool include_last) {
  return ops::_embedding_bag(weight, indices, offsets, scale_by_freq, mode, sparse, scales,
                             include_last, -1);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(embedding_bag){
    .schema =
        "embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool "
        "scale_grad_by_freq=False, int mode=0, "
        "bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False) -> "
        "(Tensor, Tensor, Tensor, Tensor)",
    .doc =
        "Sums (mode 0), means (1) or maxima (2) of bags of rows of weight; bag b starts at "
        "offsets[b] of indices. "
        "Beside them: the bag of each index, the bags' sizes, the rows that maxima came from.",
    .composite = Composite::Implicit,
    .any = typed_kernel<embedding_bag>,
};
OP(embedding_bag_padding_idx){
    .schema =
        "embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool "
        "scale_grad_by_freq, int mode, bool sparse, "
        "Tensor? per_sample_weights, bool include_last_offset, int? padding_idx) -> (Tensor, "
        "Tensor, Tensor, Tensor)",
    .doc = "As embedding_bag, passing over the row padding_idx.",
    .composite = Composite::Implicit,
    .any = typed_kernel<embedding_bag_padding>,
};
OP(_embedding_bag){
    .schema =
        "_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool "
        "scale_grad_by_freq=False, int mode=0, "
        "bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int "
        "padding_idx=-1) -> "
        "(Tensor, Tensor, Tensor, Tensor)",
    .doc = "As embedding_bag, with a row to pass over; -1 stands for none.",
    .forms = function | out,
    .flags = runs_when_called,
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_bags>,
    .cpu = typed_kernel<embed_bags>,
    .derivatives = {vjp(names("weight", "per_sample_weights"), bag_gradients,
                        saves("weight", "indices", "offsets", "per_sample_weights", "result1",
                              "result2", "result3"))},
    .not_differentiable = names("result1", "result2", "result3"),
    .hole = "vmap: samples are done one by one",
};
OP(_embedding_bag_forward_only){
    .schema =
        "_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool "
        "scale_grad_by_freq=False, int mode=0, "
        "bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int "
        "padding_idx=-1) -> "
        "(Tensor, Tensor, Tensor, Tensor)",
    .doc = "_embedding_bag without a gradient.",
    .forms = function | out,
    .flags = runs_when_called,
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_bags>,
    .cpu = typed_kernel<embed_bags>,
    .hole = "made for use without gradients",
};
OP(_embedding_bag_backward){
    .schema =
        "_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, "
        "Tensor bag_size, "
        "Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, bool "
        "sparse, Tensor? per_sample_weights, "
        "int padding_idx=-1) -> Tensor",
    .doc = "Gradient of embedding_bag by its table.",
    .forms = hidden,
    .composite = Composite::Implicit,
    .any = typed_kernel<backward>,
};
OP(_embedding_bag_dense_backward){
    .schema =
        "_embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor offset2bag, Tensor "
        "bag_size, Tensor maximum_indices, "
        "SymInt num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, int "
        "padding_idx=-1) -> Tensor",
    .doc = "Gradient of embedding_bag by its table, as a dense tensor.",
    .forms = hidden | out,
    .composite = Composite::Implicit,
    .any = typed_kernel<dense_backward>,
};
OP(_embedding_bag_per_sample_weights_backward){
    .schema =
        "_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, Tensor indices, "
        "Tensor offsets, Tensor offset2bag, "
        "int mode, int padding_idx=-1) -> Tensor",
    .doc = "Gradient of embedding_bag by the weights of its samples.",
    .forms = hidden | out,
    .composite = Composite::Implicit,
    .any = typed_kernel<scales_backward>,
};
