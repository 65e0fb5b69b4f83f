// Sequences of several lengths as the rows of all their steps, and back.
#include "ops/rnn/pack.h"

#include <algorithm>

#include "core/checked.h"
#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "kernels/cpu/loop/convert.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/rnn/parts.h"
#include "ops/shape/cat.h"
#include "ops/shape/view.h"

namespace facula::rnn {

IntVec list_of(const Tensor& t, const char* op) {
  if (!t->storage->has_memory())
    throw Error(
        ErrorKind::NotImplemented, op,
        "(): the shape of the result depends on data of lengths or batch sizes, which meta and "
        "fake tensors lack");
  check(t.dim() == 1 && t.dtype() == DType::Int64 && t.device().type == DeviceType::CPU, op,
        "(): expected lengths and batch sizes as a 1-D int64 tensor on the CPU; got a ", t.dim(),
        "-D ", info(t.dtype()).legacy_name, " tensor on ", str(t.device()));
  const Tensor flat = cpu::contiguous(t);
  IntVec list;
  for (int64_t i = 0; i < flat.numel(); ++i) list.push_back(flat.data<int64_t>()[i]);
  return list;
}

void check_batch_sizes(IntSpan sizes, int64_t rows, const char* op) {
  check(!sizes.empty(), op, "(): expected at least one batch size; got none");
  int64_t total = 0, before = sizes[0];
  for (int64_t n : sizes) {
    check(n > 0 && n <= before, op, "(): batch sizes must be positive and not grow; got ",
          str(sizes));
    total = checked_add(total, n, "the sum of batch sizes");
    before = n;
  }
  check(total <= rows, op, "(): batch sizes must not add up to more than the rows, ", rows,
        "; got ", total);
}

}  // namespace facula::rnn

namespace facula {
namespace {

// Steps [begin, end) that have one batch size.
struct Run {
  int64_t begin, end, size;
};
std::vector<Run> runs_of(IntSpan batch_sizes) {
  std::vector<Run> runs;
  for (size_t t = 0; t < batch_sizes.size(); ++t) {
    const auto at = static_cast<int64_t>(t);
    if (runs.empty() || runs.back().size != batch_sizes[t])
      runs.push_back({at, at + 1, batch_sizes[t]});
    else
      runs.back().end = at + 1;
  }
  return runs;
}

Tensor as_tensor(IntSpan values) {
  const Tensor t = empty_tensor(IntList{static_cast<int64_t>(values.size())}, DType::Int64);
  std::copy(values.begin(), values.end(), t.data<int64_t>());
  return t;
}

// How many sequences are longer than t, for each step t.
IntVec batch_sizes_of(IntSpan lengths) {
  const char* op = "_pack_padded_sequence(): ";
  for (size_t i = 0; i < lengths.size(); ++i) {
    check(lengths[i] > 0, op, "Length of all samples has to be greater than 0; got ", lengths[i]);
    check(i == 0 || lengths[i] <= lengths[i - 1], op,
          "`lengths` must be sorted in decreasing order where `enforce_sorted` is True; got ",
          str(lengths), ". pack_padded_sequence and pack_sequence take enforce_sorted=False");
  }
  IntVec sizes;
  auto longer = static_cast<int64_t>(lengths.size());
  for (int64_t t = 0; t < lengths[0]; ++t) {
    while (lengths[static_cast<size_t>(longer - 1)] <= t) --longer;
    sizes.push_back(longer);
  }
  return sizes;
}

std::tuple<Tensor, Tensor> pack_padded(const Tensor& input, const Tensor& lengths,
                                       bool batch_first) {
  const Tensor steps = batch_first ? ops::transpose(input, 0, 1) : input;
  const IntVec counts = rnn::list_of(lengths, "_pack_padded_sequence");
  check(steps.numel() > 0, "_pack_padded_sequence(): Cannot pack empty tensors; got shape ",
        str(input.sizes()));
  check(static_cast<int64_t>(counts.size()) == steps.size(1),
        "_pack_padded_sequence(): Expected `len(lengths)` to be equal to batch_size, ",
        steps.size(1), "; got ", counts.size());
  check(counts[0] <= steps.size(0), "_pack_padded_sequence(): expected lengths of at most ",
        steps.size(0), " steps; got ", counts[0]);
  const IntVec sizes = batch_sizes_of(counts);
  IntVec rows(steps.sizes().subspan(1));
  rows[0] = -1;
  std::vector<Tensor> parts;
  for (const Run& run : runs_of(sizes)) {
    const Tensor part = ops::slice(ops::slice(steps, 0, run.begin, run.end, 1), 1, 0, run.size, 1);
    parts.push_back(ops::reshape(part, rows));
  }
  return {ops::cat(parts, 0), as_tensor(sizes)};
}

// Puts rows where they came from; sizes are those of the padded steps, time first.
void put_rows(const Tensor& steps, const Tensor& rows, IntSpan batch_sizes) {
  int64_t at = 0;
  for (const Run& run : runs_of(batch_sizes)) {
    const int64_t length = run.end - run.begin, next = at + length * run.size;
    IntVec sizes(steps.sizes());
    sizes[0] = length;
    sizes[1] = run.size;
    const Tensor place = ops::slice(ops::slice(steps, 0, run.begin, run.end, 1), 1, 0, run.size, 1);
    ops::copy_(place, ops::view(ops::slice(rows, 0, at, next, 1), sizes));
    at = next;
  }
}

Tensor pack_backward(const Tensor& grad, IntSpan input_size, const Tensor& batch_sizes,
                     bool batch_first) {
  const IntVec sizes = rnn::list_of(batch_sizes, "_pack_padded_sequence_backward");
  rnn::check_batch_sizes(sizes, grad.size(0), "_pack_padded_sequence_backward");
  IntVec padded(input_size);
  check(padded.size() >= 2, "_pack_padded_sequence_backward(): expected at least 2 input sizes; ",
        "got ", str(input_size));
  if (batch_first) std::swap(padded[0], padded[1]);
  check(padded[0] >= static_cast<int64_t>(sizes.size()) && padded[1] >= sizes[0],
        "_pack_padded_sequence_backward(): input_size must have room for ", sizes.size(),
        " steps of ", sizes[0], "; got ", str(input_size));
  const Tensor steps = ops::new_zeros(grad, padded);
  put_rows(steps, ops::contiguous(grad), sizes);
  return batch_first ? ops::transpose(steps, 0, 1) : steps;
}

IntVec lengths_of(IntSpan batch_sizes) {
  IntVec lengths;
  for (size_t t = batch_sizes.size(); t-- > 0;)
    while (static_cast<int64_t>(lengths.size()) < batch_sizes[t])
      lengths.push_back(static_cast<int64_t>(t) + 1);
  return lengths;
}

std::tuple<Tensor, Tensor> pad_packed(const Tensor& data, const Tensor& batch_sizes,
                                      bool batch_first, const Scalar& value, int64_t total_length) {
  const IntVec sizes = rnn::list_of(batch_sizes, "_pad_packed_sequence");
  check(data.dim() > 0, "_pad_packed_sequence(): data must have a dimension; got none");
  rnn::check_batch_sizes(sizes, data.size(0), "_pad_packed_sequence");
  const auto longest = static_cast<int64_t>(sizes.size());
  check(total_length <= 0 || total_length >= longest,
        "_pad_packed_sequence(): Expected total_length to be at least the length of the longest "
        "sequence in input, ",
        longest, "; got ", total_length);
  IntVec padded{total_length > 0 ? total_length : longest, sizes[0]};
  for (int64_t n : data.sizes().subspan(1)) padded.push_back(n);
  const Tensor steps = ops::full(padded, value, data.dtype(), {}, data.device());
  put_rows(steps, data, sizes);
  return {batch_first ? ops::transpose(steps, 0, 1) : steps, as_tensor(lengths_of(sizes))};
}

// Sequences stacked, each filled up to the longest.
Tensor pad_sequence(std::span<const Tensor> sequences, bool batch_first, double value,
                    std::string_view side) {
  check(!sequences.empty(), "pad_sequence(): received an empty list of sequences");
  check(side == "right" || side == "left",
        "pad_sequence(): Expected padding_side to be one of left or right, but got ", side);
  int64_t longest = 0;
  for (const Tensor& t : sequences) {
    check_index(t.dim() > 0, "pad_sequence(): sequences must have a dimension; got a 0-D one");
    longest = std::max(longest, t.size(0));
  }
  IntVec sizes{static_cast<int64_t>(sequences.size()), longest};
  if (!batch_first) std::swap(sizes[0], sizes[1]);
  for (int64_t n : sequences[0].sizes().subspan(1)) sizes.push_back(n);
  const Tensor out = ops::full(sizes, value, sequences[0].dtype(), {}, sequences[0].device());
  for (size_t i = 0; i < sequences.size(); ++i) {
    const Tensor &t = sequences[i],
                 row = ops::select(out, batch_first ? 0 : 1, static_cast<int64_t>(i));
    const int64_t begin = side == "right" ? 0 : longest - t.size(0);
    ops::copy_(ops::slice(row, 0, begin, begin + t.size(0), 1), t);
  }
  return out;
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(pad_sequence){
    .schema =
        "pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0.0, str "
        "padding_side=\"right\") -> Tensor",
    .doc = "Sequences (length, ...) stacked, each filled up to the longest.",
    .forms = function,
    .python_module = "nn",
    .composite = Composite::Implicit,
    .any = typed_kernel<pad_sequence>,
};

OP(_pack_padded_sequence){
    .schema =
        "_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)",
    .doc = "The rows of all steps of sequences that are sorted by length, and how many each has.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .flags = cross_device,
    .any = typed_kernel<pack_padded>,
    .derivatives = {vjp(
        "input",
        [](Backward& b) {
          return ops::_pack_padded_sequence_backward(b.grad(), IntVec(b.sizes("input")),
                                                     b.result(1), b.flag("batch_first"));
        },
        saves("result1"))},
    .not_differentiable = names("result1", "lengths"),
};
OP(_pack_padded_sequence_backward){
    .schema =
        "_pack_padded_sequence_backward(Tensor grad, SymInt[] input_size, Tensor batch_sizes, bool "
        "batch_first) -> Tensor",
    .doc = "Gradient of _pack_padded_sequence: rows put back into steps, zeros between.",
    .forms = hidden,
    .composite = Composite::Implicit,
    .flags = cross_device,
    .any = typed_kernel<pack_backward>,
};
OP(_pad_packed_sequence){
    .schema =
        "_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar "
        "padding_value, int total_length) -> (Tensor, Tensor)",
    .doc = "Packed rows as (steps, batch, ...) filled up with a value, and the lengths.",
    .composite = Composite::Implicit,
    .flags = cross_device,
    .any = typed_kernel<pad_packed>,
};
