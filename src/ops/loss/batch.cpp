// Batching rules of losses: one loss for each element or example, reduced sample by sample.
#include "ops/loss/batch.h"

#include <algorithm>

#include "ops/batch_tools.h"
#include "ops/create/copy.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/where.h"
#include "ops/index/scatter.h"
#include "ops/loss/ctc_loss.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/stack.h"
#include "ops/shape/view.h"

namespace facula::batch {
// --- losses of two tensors

namespace {

enum Reduction : int64_t { None = 0, Mean = 1, Sum = 2 };

void line_up(Batch& b, int from) {
  int64_t rank = 0;
  for (int i = 0; i < b.info().args; ++i)
    if (is_given(b, i)) rank = std::max(rank, b.rank(i));
  for (int i = from; i < b.info().args; ++i)
    if (is_given(b, i) && b.batched(i)) b.set(i, padded(b.tensor(i), rank));
}

Tensor reduced(const Tensor& t, int64_t reduction) {
  if (reduction == None || t.dim() == 1) return t;
  const IntVec dims = sample_dims(t);
  return reduction == Mean ? ops::mean(t, IntList(dims)) : ops::sum(t, IntList(dims));
}

}  // namespace

void loss(Batch& b) {
  const int at = b.arg("reduction");
  const int64_t reduction = b.value(at).i;
  line_up(b, 0);
  b.set(at, static_cast<int64_t>(None));
  b.run();
  b.set_result(0, reduced(b.result(0).as_tensor(), reduction));
}

void loss_backward(Batch& b) {
  const int at = b.arg("reduction");
  const int64_t reduction = b.value(at).i;
  line_up(b, 0);
  const Tensor self = with_batch(b, 1), target = with_batch(b, 2);
  const IntVec sizes = broadcast_sizes(self.sizes(), target.sizes());
  b.set(0, ops::expand(padded(with_batch(b, 0), static_cast<int64_t>(sizes.size()) - 1), sizes));
  b.set(at, static_cast<int64_t>(None));
  b.run();
  if (reduction != Mean) return;
  const int64_t n = b.size() ? checked_numel(sizes) / b.size() : 1;
  b.set_result(0, ops::div(b.result(0).as_tensor(), std::max<int64_t>(n, 1)));
}

// --- negative log-likelihood

namespace {

// Samples without a dimension of their own for examples are the examples.
Tensor joined_examples(Batch& b, int i, bool several) {
  const Tensor t = with_batch(b, i);
  return several ? folded(t) : t;
}

// What each example weighs in a mean.
Tensor weights_of(const Tensor& target, const Tensor& weight, int64_t ignored, DType dtype) {
  const Tensor counts = ops::to(ops::ne(target, ignored), dtype);
  if (!weight.defined()) return counts;
  const Tensor at = ops::where(ops::eq(target, ignored), ops::new_zeros(target, IntSpan()), target);
  const Tensor picked = ops::index_select(weight, 0, ops::reshape(at, {-1}));
  return ops::mul(ops::reshape(picked, target.sizes()), counts);
}

}  // namespace

void nll(Batch& b) {
  if (b.batched(2)) return b.loop();
  const int at = b.arg("reduction");
  const int64_t reduction = b.value(at).i, ignored = b.value(b.arg("ignore_index")).i;
  const bool several = b.rank(0) > 1;
  const Tensor self = with_batch(b, 0), target = with_batch(b, 1);
  const Tensor weights = weights_of(target, optional_tensor(b, 2), ignored, self.dtype());
  b.set(0, joined_examples(b, 0, several));
  b.set(1, joined_examples(b, 1, several));
  b.set(at, static_cast<int64_t>(None));
  b.run();
  Tensor losses = b.result(0).as_tensor();
  if (several) losses = unfolded(losses, b.size());
  const Tensor total = reduced(weights, Sum);
  if (reduction != None) losses = reduced(losses, Sum);
  if (reduction == Mean) losses = ops::div(losses, total);
  b.set_result(0, losses);
  b.set_result(1, reduction == None ? ops::new_zeros(self, {b.size()}) : total);
}

void nll_backward(Batch& b) {
  if (b.batched(3)) return b.loop();
  const int at = b.arg("reduction"), total = b.arg("total_weight");
  const int64_t reduction = b.value(at).i;
  const bool several = b.rank(1) > 1;
  const Tensor target = with_batch(b, 2);
  Tensor grad = with_batch(b, 0);
  if (reduction != None) {
    if (reduction == Mean) grad = ops::div(grad, with_batch(b, total));
    grad = ops::expand(padded(grad, target.dim() - 1), target.sizes());
  }
  b.set(0, several ? folded(grad) : grad);
  b.set(1, joined_examples(b, 1, several));
  b.set(2, several ? folded(target) : target);
  b.set(total, ops::new_zeros(grad, IntSpan()));
  b.set(at, static_cast<int64_t>(None));
  b.run();
  if (several) b.set_result(0, unfolded(b.result(0).as_tensor(), b.size()));
}

// --- connectionist temporal classification

void ctc_loss_by_tensors(Batch& b) {
  check(b.size() > 0, "vmap: ctc_loss() of 0 samples has no result shape");
  const auto part = [&](Name name, int64_t sample) {
    const int at = b.arg(name);
    return b.batched(at) ? ops::select(b.tensor(at), 0, sample) : b.tensor(at);
  };
  std::vector<Tensor> losses, alphas;
  for (int64_t i = 0; i < b.size(); ++i) {
    auto [loss, alpha] = ops::_ctc_loss(
        part("log_probs", i), part("targets", i), part("input_lengths", i),
        part("target_lengths", i), b.value(b.arg("blank")).i, b.value(b.arg("zero_infinity")).b);
    losses.push_back(std::move(loss));
    alphas.push_back(std::move(alpha));
  }
  for (const Tensor& alpha : alphas)
    check(std::ranges::equal(alpha.sizes(), alphas[0].sizes()),
          "vmap: ctc_loss(): the longest target must be equally long in all samples; got partial "
          "alignments of shapes ",
          str(alphas[0].sizes()), " and ", str(alpha.sizes()));
  b.set_result(0, ops::stack(losses));
  b.set_result(1, ops::stack(alphas));
}

}  // namespace facula::batch
