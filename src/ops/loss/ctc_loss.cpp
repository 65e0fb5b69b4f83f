// Connectionist temporal classification.
#include "ops/loss/ctc_loss.h"

#include <algorithm>

#include "core/checked.h"
#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "kernels/cpu/loop/convert.h"
#include "kernels/cpu/loss/ctc.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/clamp.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/where.h"
#include "ops/loss/batch.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/cat.h"
#include "ops/shape/view.h"
#include "ops/shape/view_geometry.h"

namespace facula {
namespace {

std::vector<int64_t> list_of(const Tensor& t) {
  const Tensor wide =
      cpu::contiguous(t.dtype() == DType::Int64 ? t : cpu::converted(t, DType::Int64));
  return {wide.data<int64_t>(), wide.data<int64_t>() + wide.numel()};
}

std::vector<int64_t> lengths_of(const Tensor& t, const char* name) {
  check(is_integral(t.dtype(), true), "ctc_loss(): ", name, " must be integers; got ",
        info(t.dtype()).legacy_name);
  return list_of(t);
}

// Labels of a sample are a row of a matrix, or follow the sample's before in one list.
void place_labels(cpu::CtcBatch& batch, const Tensor& targets) {
  const bool rows = targets.dim() == 2;
  int64_t total = 0;
  for (int64_t n = 0; n < batch.count(); ++n) {
    batch.starts.push_back(rows ? n * targets.sizes()[1] : total);
    if (rows) continue;
    total = checked_add(total, batch.label_counts[static_cast<size_t>(n)],
                        "ctc_loss(): the sum of target_lengths");
  }
  if (!rows)
    return check(targets.numel() == total, "ctc_loss(): targets must hold ", total, " labels; got ",
                 targets.numel());
  check(targets.sizes()[0] == batch.count(), "ctc_loss(): targets must have a row for each of ",
        batch.count(), " samples; got ", targets.sizes()[0]);
  check(targets.sizes()[1] >= batch.longest(), "ctc_loss(): rows of targets must hold ",
        batch.longest(), " labels; got ", targets.sizes()[1]);
}

void check_labels(const cpu::CtcBatch& batch, int64_t classes) {
  for (size_t n = 0; n < batch.starts.size(); ++n)
    for (int64_t i = 0; i < batch.label_counts[n]; ++i) {
      const int64_t label = batch.labels[static_cast<size_t>(batch.starts[n] + i)];
      check(label >= 0 && label < classes, "ctc_loss(): expected labels from 0 to ", classes - 1,
            "; got ", label, " in sample ", n);
    }
}

cpu::CtcBatch batch_of(const Tensor& log_probs, const Tensor& targets, std::vector<int64_t> steps,
                       std::vector<int64_t> label_counts, int64_t blank) {
  check(log_probs.dim() == 3, "_ctc_loss(): expected log_probs (T, N, C); got shape ",
        str(log_probs.sizes()));
  const int64_t samples = log_probs.sizes()[1], classes = log_probs.sizes()[2];
  check(log_probs.numel() > 0, "ctc_loss(): log_probs must not be empty; got shape ",
        str(log_probs.sizes()));
  check(blank >= 0 && blank < classes, "ctc_loss(): blank must be a class from 0 to ", classes - 1,
        "; got ", blank);
  check(static_cast<int64_t>(steps.size()) == samples, "ctc_loss(): there must be ", samples,
        " input_lengths; got ", steps.size());
  check(static_cast<int64_t>(label_counts.size()) == samples, "ctc_loss(): there must be ", samples,
        " target_lengths; got ", label_counts.size());
  check(targets.dim() == 1 || targets.dim() == 2,
        "ctc_loss(): expected targets of one or two dimensions; got shape ", str(targets.sizes()));
  for (int64_t s : steps)
    check(s >= 0 && s <= log_probs.sizes()[0], "ctc_loss(): input_lengths must be from 0 to ",
          log_probs.sizes()[0], "; got ", s);
  for (int64_t s : label_counts)
    check(s >= 0, "ctc_loss(): target_lengths must not be negative; got ", s);
  cpu::CtcBatch batch{list_of(targets), {}, std::move(label_counts), std::move(steps), blank};
  place_labels(batch, targets);
  check_labels(batch, classes);
  return batch;
}

std::vector<int64_t> vector_of(IntSpan s) { return {s.begin(), s.end()}; }

IntVec partial_sizes(const Tensor& log_probs, int64_t longest) {
  const int64_t between = checked_mul(longest, 2, "ctc_loss(): twice the longest target");
  return {log_probs.sizes()[1], log_probs.sizes()[0],
          checked_add(between, 1, "ctc_loss(): labels and blanks")};
}

void meta_by_lists(Meta& m, const Tensor& log_probs, const Tensor&, IntSpan, IntSpan counts,
                   int64_t, bool) {
  check(log_probs.dim() == 3, "_ctc_loss(): expected log_probs (T, N, C); got shape ",
        str(log_probs.sizes()));
  int64_t longest = 0;
  for (int64_t n : counts) longest = std::max(longest, n);
  m.result(0, IntList{log_probs.sizes()[1]}, log_probs.dtype());
  m.result(1, partial_sizes(log_probs, longest), log_probs.dtype());
}
void by_lists(const Tensor& log_probs, const Tensor& targets, IntSpan steps, IntSpan counts,
              int64_t blank, bool, const Tensor& loss, const Tensor& log_alpha) {
  cpu::ctc_loss(log_probs, batch_of(log_probs, targets, vector_of(steps), vector_of(counts), blank),
                loss, log_alpha);
}
std::tuple<Tensor, Tensor> by_tensors(const Tensor& log_probs, const Tensor& targets,
                                      const Tensor& steps, const Tensor& counts, int64_t blank,
                                      bool) {
  const cpu::CtcBatch batch = batch_of(log_probs, targets, lengths_of(steps, "input_lengths"),
                                       lengths_of(counts, "target_lengths"), blank);
  const Tensor loss = empty_tensor(IntList{log_probs.sizes()[1]}, log_probs.dtype());
  const Tensor log_alpha =
      empty_tensor(partial_sizes(log_probs, batch.longest()), log_probs.dtype());
  cpu::ctc_loss(log_probs, batch, loss, log_alpha);
  return {loss, log_alpha};
}

template <class Lengths>
void meta_backward(Meta& m, const Tensor&, const Tensor& log_probs, const Tensor&, Lengths, Lengths,
                   const Tensor&, const Tensor&, int64_t, bool) {
  m.result(0, log_probs.sizes(), log_probs.dtype());
}
void backward(const Tensor& grad, const Tensor& log_probs, const cpu::CtcBatch& batch,
              const Tensor& loss, const Tensor& log_alpha, bool zero_infinity, const Tensor& out) {
  const int64_t samples = log_probs.sizes()[1];
  const IntVec places = partial_sizes(log_probs, batch.longest());
  check(grad.numel() == samples && loss.numel() == samples && same_sizes(log_alpha.sizes(), places),
        "_ctc_loss_backward(): expected a "
        "grad and losses of ",
        samples, " elements and log_alpha of shape ", str(places), "; got shapes ",
        str(grad.sizes()), ", ", str(loss.sizes()), " and ", str(log_alpha.sizes()));
  cpu::ctc_loss_backward(grad, log_probs, batch, loss, log_alpha, zero_infinity, out);
}
void backward_by_lists(const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                       IntSpan steps, IntSpan counts, const Tensor& loss, const Tensor& log_alpha,
                       int64_t blank, bool zero_infinity, const Tensor& out) {
  backward(grad, log_probs,
           batch_of(log_probs, targets, vector_of(steps), vector_of(counts), blank), loss,
           log_alpha, zero_infinity, out);
}
void backward_by_tensors(const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                         const Tensor& steps, const Tensor& counts, const Tensor& loss,
                         const Tensor& log_alpha, int64_t blank, bool zero_infinity,
                         const Tensor& out) {
  const cpu::CtcBatch batch = batch_of(log_probs, targets, lengths_of(steps, "input_lengths"),
                                       lengths_of(counts, "target_lengths"), blank);
  backward(grad, log_probs, batch, loss, log_alpha, zero_infinity, out);
}

// --- what users call

Tensor reduced(Tensor loss, const Tensor& target_lengths, bool batched, int64_t reduction,
               bool zero_infinity) {
  if (zero_infinity) loss = ops::where(ops::eq(loss, __builtin_inf()), 0, loss);
  if (reduction == 1) return ops::mean(ops::div(loss, ops::clamp_min(target_lengths, 1)));
  if (reduction == 2) return ops::sum(loss);
  return batched ? loss : ops::squeeze(loss, 0);
}

// Lengths as a tensor where the loss is; a mode sees it being made.
Tensor lengths_tensor(IntSpan counts, const Tensor& loss) {
  if (counts.empty() || geometry::seen_by_autograd_alone(loss)) {
    const Tensor lengths = empty_tensor(IntList{static_cast<int64_t>(counts.size())}, DType::Int64);
    std::copy(counts.begin(), counts.end(), lengths.data<int64_t>());
    return ops::to(lengths, loss.device(), DType::Int64);
  }
  std::vector<Tensor> parts;
  for (const int64_t n : counts)
    parts.push_back(ops::full(IntList{1}, n, DType::Int64, std::nullopt, loss.device()));
  return ops::cat(parts);
}

Tensor ctc_lists(const Tensor& log_probs, const Tensor& targets, IntSpan steps, IntSpan counts,
                 int64_t blank, int64_t reduction, bool zero_infinity) {
  const bool batched = log_probs.dim() == 3;
  const Tensor loss = std::get<0>(ops::_ctc_loss(batched ? log_probs : ops::unsqueeze(log_probs, 1),
                                                 targets, steps, counts, blank, zero_infinity));
  return reduced(loss, lengths_tensor(counts, loss), batched, reduction, zero_infinity);
}
Tensor ctc_tensors(const Tensor& log_probs, const Tensor& targets, const Tensor& steps,
                   const Tensor& counts, int64_t blank, int64_t reduction, bool zero_infinity) {
  check(is_integral(steps.dtype(), true), "ctc_loss(): input_lengths must be integers; got ",
        name(steps.dtype()));
  check(is_integral(counts.dtype(), true), "ctc_loss(): target_lengths must be integers; got ",
        name(counts.dtype()));
  // Lengths that can be read make a node that keeps no tensors of them.
  if (log_probs.device().is_cpu() && geometry::seen_by_autograd_alone(steps) &&
      geometry::seen_by_autograd_alone(counts))
    return ctc_lists(log_probs, targets, lengths_of(steps, "input_lengths"),
                     lengths_of(counts, "target_lengths"), blank, reduction, zero_infinity);
  const bool batched = log_probs.dim() == 3;
  const Tensor loss = std::get<0>(ops::_ctc_loss(batched ? log_probs : ops::unsqueeze(log_probs, 1),
                                                 targets, ops::reshape(steps, {-1}),
                                                 ops::reshape(counts, {-1}), blank, zero_infinity));
  return reduced(loss, ops::reshape(counts, {-1}), batched, reduction, zero_infinity);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(ctc_loss_IntList){
    .schema =
        "ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] "
        "target_lengths, int blank=0, "
        "int reduction=Mean, bool zero_infinity=False) -> Tensor",
    .doc =
        "Negative log likelihood of label sequences under log_probs (T, N, C) or (T, C), over all "
        "alignments with blanks.",
    .composite = Composite::Implicit,
    .autocast = Autocast::Float32,
    .any = typed_kernel<ctc_lists>,
};
OP(ctc_loss_Tensor){
    .schema =
        "ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor "
        "target_lengths, int blank=0, "
        "int reduction=Mean, bool zero_infinity=False) -> Tensor",
    .doc = "As ctc_loss, with lengths as tensors.",
    .composite = Composite::Implicit,
    .autocast = Autocast::Float32,
    .any = typed_kernel<ctc_tensors>,
};
OP(_ctc_loss){
    .schema =
        "_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, "
        "int blank=0, "
        "bool zero_infinity=False) -> (Tensor, Tensor)",
    .doc = "Losses (N) of log_probs (T, N, C), and the log likelihoods of partial alignments.",
    .forms = function | out,
    .flags = runs_when_called,
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_by_lists>,
    .cpu = typed_kernel<by_lists>,
    .derivatives = {vjp(
        "log_probs",
        [](Backward& b) {
          return ops::_ctc_loss_backward(b.grad(), b["log_probs"], b["targets"],
                                         b.ints("input_lengths"), b.ints("target_lengths"),
                                         b.result(0), b.result(1), b.integer("blank"),
                                         b.flag("zero_infinity"));
        },
        saves("log_probs", "targets", "result0", "result1"))},
    .node = "CtcLossBackward0",
    .not_differentiable = names("result1"),
    .hole = "vmap: samples are done one by one",
};
OP(_ctc_loss_Tensor){
    .schema =
        "_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor "
        "target_lengths, int blank=0, "
        "bool zero_infinity=False) -> (Tensor, Tensor)",
    .doc = "_ctc_loss with lengths as tensors.",
    .forms = function | out,
    .out_name = "Tensor_out",
    .flags = shape_from_data,
    .cpu = typed_kernel<by_tensors>,
    .derivatives = {vjp(
        "log_probs",
        [](Backward& b) {
          return ops::_ctc_loss_backward(b.grad(), b["log_probs"], b["targets"], b["input_lengths"],
                                         b["target_lengths"], b.result(0), b.result(1),
                                         b.integer("blank"), b.flag("zero_infinity"));
        },
        saves("log_probs", "targets", "input_lengths", "target_lengths", "result0", "result1"))},
    .node = "CtcLossBackward1",
    .not_differentiable = names("result1"),
    .batch = batch::ctc_loss_by_tensors,
};
OP(_ctc_loss_backward){
    .schema =
        "_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, "
        "int[] target_lengths, "
        "Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> "
        "Tensor",
    .doc = "Gradient of _ctc_loss by log_probs.",
    .forms = hidden | out,
    .out_layout = OutLayout::Contiguous,
    .overlaps = Overlaps::None,
    .meta = typed_meta<meta_backward<IntSpan>>,
    .cpu = typed_kernel<backward_by_lists>,
    .hole = "PyTorch has no second derivative either",
};
OP(_ctc_loss_backward_Tensor){
    .schema =
        "_ctc_loss_backward.Tensor(Tensor grad, Tensor log_probs, Tensor targets, Tensor "
        "input_lengths, Tensor target_lengths, "
        "Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> "
        "Tensor",
    .doc = "_ctc_loss_backward with lengths as tensors.",
    .forms = hidden,
    .meta = typed_meta<meta_backward<const Tensor&>>,
    .cpu = typed_kernel<backward_by_tensors>,
    .hole = "PyTorch has no second derivative either",
};
