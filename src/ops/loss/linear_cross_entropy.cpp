// Cross entropy of a linear map, by blocks over samples and classes: the logits are never held
// whole, neither on the way forward nor on the way back.
//
// A sample's loss is total * logsumexp(logits) - <share, logits>, where share says how much of its
// target each class has and total is the sum of that. What is not the logsumexp needs no logits: a
// class number picks one row of the matrix, and smoothing is the same for all samples.
#include "ops/loss/linear_cross_entropy.h"

#include <algorithm>

#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "ops/create/copy.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/comparison.h"
#include "ops/elementwise/exp_log.h"
#include "ops/elementwise/logical.h"
#include "ops/index/index.h"
#include "ops/index/scatter.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/variance.h"
#include "ops/shape/cat.h"
#include "ops/shape/split.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"

namespace facula {
namespace {

constexpr const char* op = "linear_cross_entropy(): ";

struct Blocks {
  int64_t rows, columns;
};
// Blocks of 4 M logits, with as many samples as keep a product of matrices busy.
Blocks blocks_of(int64_t samples, int64_t classes, int64_t rows) {
  constexpr int64_t most_rows = 512, most_logits = int64_t{1} << 22;
  const int64_t r =
      std::clamp<int64_t>(rows > 0 ? rows : most_rows, 1, std::max<int64_t>(samples, 1));
  return {r, std::clamp<int64_t>(most_logits / r, 1, std::max<int64_t>(classes, 1))};
}

// What is asked: samples (N, F), a matrix (C, F) and its bias, targets, weights of the classes.
struct Question {
  Tensor input, matrix, bias, target, class_weight;
  int64_t ignored;
  double smoothing;
  DType compute;  // of sums

  int64_t samples() const { return input.size(0); }
  int64_t classes() const { return matrix.size(0); }
  bool by_number() const { return target.dim() == 1; }
};

void check_question(const Question& q) {
  check(q.input.dim() == 2 && q.matrix.dim() == 2 && q.input.size(1) == q.matrix.size(1), op,
        "expected input (N, in_features) and linear_weight (C, in_features); got shapes ",
        str(q.input.sizes()), " and ", str(q.matrix.sizes()));
  check(q.classes() > 0, op, "expected a class; got linear_weight of shape ",
        str(q.matrix.sizes()));
  check(is_floating(q.input.dtype()) && q.matrix.dtype() == q.input.dtype(), op,
        "input and linear_weight must be of one floating dtype; got ", name(q.input.dtype()),
        " and ", name(q.matrix.dtype()));
  const int64_t classes[] = {q.classes()};
  for (const Tensor* t : {&q.bias, &q.class_weight})
    if (t->defined())
      check(same_sizes(t->sizes(), classes) && t->dtype() == q.input.dtype(), op,
            "linear_bias and weight must have shape [", classes[0], "] and dtype ",
            name(q.input.dtype()), "; got ", name(t->dtype()), " of shape ", str(t->sizes()));
  const int64_t shares[] = {q.samples(), q.classes()};
  const bool numbers =
      q.target.dtype() == DType::Int64 && same_sizes(q.target.sizes(), {shares, 1});
  const bool probabilities =
      q.target.dtype() == q.input.dtype() && same_sizes(q.target.sizes(), shares);
  check(numbers || probabilities, op, "target must be int64 of shape [", shares[0], "], or ",
        name(q.input.dtype()), " of shape ", str(IntSpan(shares)), "; got ", name(q.target.dtype()),
        " of shape ", str(q.target.sizes()));
  check(q.smoothing >= 0 && q.smoothing <= 1, op, "label_smoothing must be in [0, 1]; got ",
        q.smoothing);
}

Tensor plus(const Tensor& a, const Tensor& b) { return a.defined() ? ops::add(a, b) : b; }
Tensor column(const Tensor& t) { return ops::unsqueeze(t, -1); }
Tensor part(const Tensor& t, int64_t dim, int64_t begin, int64_t count) {
  return t.defined() ? ops::slice(t, dim, begin, begin + count, 1) : t;
}

// Products are of the input's dtype; sums of exponentials are not.
Tensor logits_of(const Question& q, const Tensor& x, int64_t begin, int64_t count) {
  const Tensor y = ops::mm(x, ops::t(part(q.matrix, 0, begin, count)));
  const Tensor wide = ops::to(y, q.compute);
  return q.bias.defined() ? ops::add(wide, part(q.bias, 0, begin, count)) : wide;
}

// --- what is known without logits

// Targets by number: the row that each sample picks, with which weight, and who counts at all.
struct Picks {
  Tensor rows, weight, counted;
};
Picks picks_of(const Question& q) {
  const Tensor counted = ops::ne(q.target, q.ignored);
  const Tensor rows = ops::masked_fill(q.target, ops::logical_not(counted), Scalar(0));
  const Tensor kept = ops::to(counted, q.compute);
  const Tensor weight =
      q.class_weight.defined() ? ops::mul(ops::index_select(q.class_weight, 0, rows), kept) : kept;
  return {rows, ops::to(weight, q.compute), kept};
}

// Each class's weight in what smoothing spreads over all of them.
Tensor spread_weights(const Question& q) {
  const Tensor w = q.class_weight.defined()
                       ? ops::to(q.class_weight, q.compute)
                       : ops::new_ones(q.input, IntList{q.classes()}, q.compute);
  return ops::mul(w, q.smoothing / static_cast<double>(q.classes()));
}

// Shares of some samples and classes, where targets are probabilities.
Tensor shares_of(const Question& q, const Tensor& target, int64_t begin) {
  const Tensor t = ops::add(ops::mul(ops::to(target, q.compute), 1 - q.smoothing),
                            q.smoothing / static_cast<double>(q.classes()));
  return q.class_weight.defined() ? ops::mul(t, part(q.class_weight, 0, begin, target.size(1))) : t;
}

// <rows of a, rows of b>, summed in the compute dtype.
Tensor row_products(const Tensor& a, const Tensor& b, DType compute) {
  return ops::sum(ops::mul(ops::to(a, compute), b), IntList{1});
}
Tensor times_matrix(const Question& q, const Tensor& weights) {
  return ops::mv(ops::t(ops::to(q.matrix, q.compute)), weights);
}

// How much of a target each sample has in all.
Tensor total_of(const Question& q, Blocks size) {
  if (q.by_number()) {
    const Picks p = picks_of(q);
    const Tensor hard = ops::mul(p.weight, 1 - q.smoothing);
    return q.smoothing == 0 ? hard
                            : ops::add(hard, ops::mul(p.counted, ops::sum(spread_weights(q))));
  }
  Tensor total = ops::new_zeros(q.input, IntList{q.samples()}, q.compute);
  for (int64_t c = 0; c < q.classes(); c += size.columns)
    total =
        ops::add(total, ops::sum(shares_of(q, part(q.target, 1, c, size.columns), c), IntList{1}));
  return total;
}

// <share, logits> of targets by number.
Tensor picked_of(const Question& q) {
  const Picks p = picks_of(q);
  Tensor logit = row_products(q.input, ops::index_select(q.matrix, 0, p.rows), q.compute);
  if (q.bias.defined()) logit = ops::add(logit, ops::index_select(q.bias, 0, p.rows));
  const Tensor hard = ops::mul(ops::mul(p.weight, 1 - q.smoothing), logit);
  if (q.smoothing == 0) return hard;
  const Tensor w = spread_weights(q);
  Tensor spread = ops::mv(ops::to(q.input, q.compute), times_matrix(q, w));
  if (q.bias.defined()) spread = ops::add(spread, ops::dot(w, ops::to(q.bias, q.compute)));
  return ops::add(hard, ops::mul(p.counted, spread));
}

// What goes over the logits: the logarithms of sums of exponentials, and for probabilities
// <share, logits> as well.
struct Sums {
  Tensor logarithms, picked;
};
Sums row_sums(const Question& q, const Tensor& x, const Tensor& target, int64_t columns) {
  Sums s;
  for (int64_t c = 0; c < q.classes(); c += columns) {
    const Tensor logits = logits_of(q, x, c, columns);
    const Tensor more = ops::logsumexp(logits, IntList{1});
    s.logarithms = s.logarithms.defined() ? ops::logaddexp(s.logarithms, more) : more;
    if (q.by_number()) continue;
    const Tensor shares = shares_of(q, part(target, 1, c, columns), c);
    s.picked = plus(s.picked, row_products(logits, shares, q.compute));
  }
  return s;
}
Sums sums_of(const Question& q, Blocks size) {
  const Tensor none = ops::new_empty(q.input, IntList{0}, q.compute);
  std::vector<Tensor> logarithms{none}, picked{none};
  for (int64_t r = 0; r < q.samples(); r += size.rows) {
    const Sums s =
        row_sums(q, part(q.input, 0, r, size.rows), part(q.target, 0, r, size.rows), size.columns);
    logarithms.push_back(s.logarithms);
    if (!q.by_number()) picked.push_back(s.picked);
  }
  return {ops::cat(logarithms, 0), q.by_number() ? picked_of(q) : ops::cat(picked, 0)};
}

// What the mean divides by: the weight that counts, or the number of samples.
Tensor divisor(const Question& q) {
  if (q.by_number()) return ops::sum(picks_of(q).weight);
  return ops::new_full(q.input, {}, Scalar(static_cast<double>(q.samples())), q.compute);
}

// Sums are never of a half type.
DType compute_dtype(const Tensor& input, std::optional<DType> wanted) {
  const DType least = compute_of(input.dtype());
  return wanted ? promote(least, *wanted) : least;
}

std::tuple<Tensor, Tensor> by_blocks(const Tensor& input, const Tensor& matrix,
                                     const Tensor& target, const Tensor& bias, const Tensor& weight,
                                     int64_t reduction, int64_t ignored, double smoothing,
                                     int64_t rows, std::optional<DType> acc_dtype) {
  check(!acc_dtype || is_floating(*acc_dtype), op, "acc_dtype must be floating; got ",
        name(acc_dtype.value_or(DType::Float32)));
  const Question q{input,  matrix,  bias,      target,
                   weight, ignored, smoothing, compute_dtype(input, acc_dtype)};
  check_question(q);
  const Blocks size = blocks_of(q.samples(), q.classes(), rows);
  const Sums sums = sums_of(q, size);
  Tensor loss = ops::sub(ops::mul(total_of(q, size), sums.logarithms), sums.picked);
  if (reduction != 0) loss = ops::sum(loss);
  if (reduction == 1) loss = ops::div(loss, divisor(q));
  return {ops::to(loss, input.dtype()), sums.logarithms};
}

// --- the way back

struct Gradients {
  Tensor input, matrix, bias;
};

// What of a block of logits' gradient goes through softmax, and through shares that are given.
Tensor logits_gradient(const Question& q, const Tensor& x, const Tensor& t, const Tensor& sums,
                       const Tensor& by_sum, const Tensor& by_loss, int64_t begin, int64_t count) {
  const Tensor p = ops::exp(ops::sub(logits_of(q, x, begin, count), column(sums)));
  const Tensor g = ops::mul(p, column(by_sum));
  if (q.by_number()) return g;
  return ops::sub(g, ops::mul(shares_of(q, part(t, 1, begin, count), begin), column(by_loss)));
}

// `by_loss` is the gradient of each sample's loss.
Gradients through_blocks(const Question& q, const Tensor& sums, const Tensor& by_loss,
                         const Tensor& total, Blocks size) {
  const Tensor by_sum = ops::mul(by_loss, total);
  const size_t groups = static_cast<size_t>((q.classes() + size.columns - 1) / size.columns);
  std::vector<Tensor> inputs, matrix(groups), bias(groups);
  for (int64_t r = 0; r < q.samples(); r += size.rows) {
    const auto rows = [&](const Tensor& t) { return part(t, 0, r, size.rows); };
    const Tensor x = rows(q.input);
    Tensor gx;
    for (size_t k = 0; k < groups; ++k) {
      const int64_t c = static_cast<int64_t>(k) * size.columns;
      const Tensor g = logits_gradient(q, x, rows(q.target), rows(sums), rows(by_sum),
                                       rows(by_loss), c, size.columns);
      const Tensor narrow = ops::to(g, q.input.dtype());
      gx = plus(gx, ops::to(ops::mm(narrow, part(q.matrix, 0, c, size.columns)), q.compute));
      matrix[k] = plus(matrix[k], ops::to(ops::mm(ops::t(narrow), x), q.compute));
      if (q.bias.defined()) bias[k] = plus(bias[k], ops::sum(g, IntList{0}));
    }
    inputs.push_back(gx);
  }
  return {ops::cat(inputs, 0), ops::cat(matrix, 0),
          q.bias.defined() ? ops::cat(bias, 0) : Tensor()};
}

// Class numbers and smoothing take from few rows, or from all alike.
Gradients without_picked(const Question& q, const Gradients& g, const Tensor& by_loss) {
  const Picks p = picks_of(q);
  const Tensor taken = ops::neg(ops::mul(ops::mul(p.weight, 1 - q.smoothing), by_loss));
  const Tensor x = ops::to(q.input, q.compute);
  Gradients out{ops::add(g.input, ops::mul(ops::index_select(q.matrix, 0, p.rows), column(taken))),
                ops::index_add(g.matrix, 0, p.rows, ops::mul(x, column(taken))),
                q.bias.defined() ? ops::index_add(g.bias, 0, p.rows, taken) : Tensor()};
  if (q.smoothing == 0) return out;
  const Tensor w = spread_weights(q), all = ops::mul(p.counted, by_loss);
  out.input = ops::sub(out.input, ops::outer(all, times_matrix(q, w)));
  out.matrix = ops::sub(out.matrix, ops::outer(w, ops::mv(ops::t(x), all)));
  if (q.bias.defined()) out.bias = ops::sub(out.bias, ops::mul(w, ops::sum(all)));
  return out;
}

void gradient(Backward& b) {
  if (!b.grad(0).defined()) return;
  std::optional<DType> wanted;
  if (!b.is_none("acc_dtype")) wanted = b.value("acc_dtype").dtype;
  const Question q{b["input"],
                   b["linear_weight"],
                   b["linear_bias"],
                   b["target"],
                   b["weight"],
                   b.integer("ignore_index"),
                   b.number("label_smoothing"),
                   compute_dtype(b["input"], wanted)};
  if (q.samples() == 0) {
    b.set("input", ops::zeros_like(q.input));
    b.set("linear_weight", ops::zeros_like(q.matrix));
    if (q.bias.defined()) b.set("linear_bias", ops::zeros_like(q.bias));
    return;
  }
  const Blocks size = blocks_of(q.samples(), q.classes(), b.integer("rows"));
  // Gradients of gradients go through the sums as well, which are saved as numbers.
  const Tensor sums = thread_state.grad_enabled ? sums_of(q, size).logarithms : b.result(1);
  Tensor by_loss = ops::to(b.grad(0), q.compute);
  if (b.integer("reduction") == 1) by_loss = ops::div(by_loss, divisor(q));
  by_loss = ops::expand(by_loss, IntList{q.samples()});
  const Gradients blocks = through_blocks(q, sums, by_loss, total_of(q, size), size);
  const Gradients g = q.by_number() ? without_picked(q, blocks, by_loss) : blocks;
  b.set("input", g.input);
  b.set("linear_weight", g.matrix);
  if (q.bias.defined()) b.set("linear_bias", g.bias);
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(_linear_cross_entropy){
    .schema =
        "_linear_cross_entropy(Tensor input, Tensor linear_weight, Tensor target, Tensor? "
        "linear_bias, Tensor? weight, int reduction, int ignore_index, float label_smoothing, int "
        "rows=0, ScalarType? acc_dtype=None) -> (Tensor loss, Tensor logsumexp)",
    .doc =
        "Cross entropy of input @ linear_weight.T + linear_bias by blocks of `rows` samples (0: "
        "chosen), without the matrix of logits; also gives the logarithms of the sums of their "
        "exponentials.",
    .forms = hidden,
    .composite = Composite::Explicit,
    .any = typed_kernel<by_blocks>,
    .derivatives = {vjp(names("input", "linear_weight", "linear_bias"), gradient,
                        saves("input", "linear_weight", "target", "linear_bias", "weight",
                              "logsumexp"))},
    .not_differentiable = names("target", "weight", "logsumexp"),
};
