// Einstein summation, by way of batched matrix products.
#include "ops/matmul/einsum.h"

#include <algorithm>
#include <map>
#include <vector>

#include "dispatch/rules.h"
#include "dispatch/typed.h"
#include "ops/create/creation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"
#include "ops/shape/view_dims.h"

namespace facula {
namespace {

// Labels are numbers: A to Z, a to z, then the dimensions of the ellipsis from left to right.
using Labels = std::vector<int>;
constexpr int letters = 52;

bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }
int label_of(char c) { return c <= 'Z' ? c - 'A' : c - 'a' + 26; }
char letter_of(int label) { return static_cast<char>(label < 26 ? 'A' + label : 'a' + label - 26); }
bool has(const Labels& l, int x) { return std::ranges::find(l, x) != l.end(); }
int64_t position(const Labels& l, int x) { return std::ranges::find(l, x) - l.begin(); }

// A term of the equation as written: letters, and where the ellipsis stands.
constexpr int ellipsis = -1;

Labels parse_term(std::string_view equation, size_t begin, size_t end, const std::string& where) {
  Labels term;
  for (size_t i = begin; i < end; ++i) {
    const char c = equation[i];
    if (c == ' ') continue;
    if (c == '.') {
      check(!has(term, ellipsis), "einsum(): a term has at most one ellipsis; got another in ",
            where);
      check(i + 2 < end && equation[i + 1] == '.' && equation[i + 2] == '.',
            "einsum(): '.' stands only in an ellipsis, '...'; got another in ", where);
      term.push_back(ellipsis);
      i += 2;
      continue;
    }
    check(is_letter(c), "einsum(): subscripts are the letters a-z and A-Z; got '", c,
          "' at position ", i);
    term.push_back(label_of(c));
  }
  return term;
}

struct Equation {
  std::vector<Labels> inputs;
  Labels output;
  bool explicit_output = false;
};

Equation parse_equation(std::string_view text) {
  Equation e;
  const size_t arrow = text.find("->");
  const size_t end = arrow == std::string_view::npos ? text.size() : arrow;
  for (size_t begin = 0;;) {
    const size_t comma = std::min(text.find(',', begin), end);
    e.inputs.push_back(parse_term(text, begin, comma, concat("operand ", e.inputs.size())));
    if (comma == end) break;
    begin = comma + 1;
  }
  if (arrow == std::string_view::npos) return e;
  e.explicit_output = true;
  e.output = parse_term(text, arrow + 2, text.size(), "the output");
  return e;
}

// --- operands with a label for every dimension

struct Labelled {
  Tensor t;
  Labels labels;
};

int64_t letter_count(const Labels& term) {
  return std::ranges::count_if(term, [](int l) { return l != ellipsis; });
}

int64_t ellipsis_rank(const Equation& e, std::span<const Tensor> tensors) {
  int64_t rank = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int64_t named = letter_count(e.inputs[i]), dims = tensors[i].dim();
    if (!has(e.inputs[i], ellipsis)) {
      check(named == dims, "einsum(): operand ", i, " must have a dimension for each of its ",
            named, " subscripts; got ", dims);
      continue;
    }
    check(named <= dims, "einsum(): operand ", i, " must have at least ", named,
          " dimensions; got ", dims);
    rank = std::max(rank, dims - named);
  }
  return rank;
}

// Puts numbered labels in the ellipsis's place: the last `count` of `rank`.
Labels filled(const Labels& term, int64_t rank, int64_t count) {
  Labels all;
  for (int l : term) {
    if (l != ellipsis) {
      all.push_back(l);
      continue;
    }
    for (int64_t d = rank - count; d < rank; ++d) all.push_back(letters + static_cast<int>(d));
  }
  return all;
}

// A label that an operand has twice stands for the diagonal.
Labelled without_repeats(Labelled x, size_t operand) {
  for (size_t i = 0; i < x.labels.size(); ++i)
    for (size_t j = x.labels.size() - 1; j > i; --j) {
      if (x.labels[j] != x.labels[i]) continue;
      check(x.t.sizes()[i] == x.t.sizes()[j], "einsum(): subscript ", letter_of(x.labels[i]),
            " is repeated for operand ", operand, " but the sizes don't match, ", x.t.sizes()[j],
            " != ", x.t.sizes()[i]);
      // The diagonal comes last and goes back to the first of the two.
      x.t = ops::diagonal(x.t, 0, static_cast<int64_t>(i), static_cast<int64_t>(j));
      IntVec order;
      const int64_t last = x.t.dim() - 1;
      for (int64_t d = 0; d < last; ++d) {
        if (d == static_cast<int64_t>(i)) order.push_back(last);
        order.push_back(d);
      }
      if (static_cast<int64_t>(order.size()) == last) order.push_back(last);
      x.t = ops::permute(x.t, order);
      x.labels.erase(x.labels.begin() + static_cast<std::ptrdiff_t>(j));
    }
  return x;
}

Labels implicit_output(const std::vector<Labels>& inputs, int64_t rank) {
  std::map<int, int> seen;
  for (const Labels& l : inputs)
    for (int x : l) ++seen[x];
  Labels output;
  for (int64_t d = 0; d < rank; ++d) output.push_back(letters + static_cast<int>(d));
  for (const auto& [label, times] : seen)
    if (label < letters && times == 1) output.push_back(label);
  return output;
}

void check_output(const Labels& output, const std::vector<Labels>& inputs) {
  for (size_t i = 0; i < output.size(); ++i) {
    if (output[i] >= letters) continue;
    check(std::ranges::count(output, output[i]) == 1,
          "einsum(): an output subscript must stand once; got '", letter_of(output[i]), "' again");
    const bool known =
        std::ranges::any_of(inputs, [&](const Labels& l) { return has(l, output[i]); });
    check(known, "einsum(): each output subscript must stand in an operand's term; got '",
          letter_of(output[i]), "'");
  }
}

void check_sizes(const std::vector<Labelled>& operands) {
  std::map<int, int64_t> sizes;
  for (const Labelled& x : operands)
    for (size_t d = 0; d < x.labels.size(); ++d) {
      const int64_t n = x.t.sizes()[d];
      int64_t& known = sizes.try_emplace(x.labels[d], 1).first->second;
      check(known == n || n == 1 || known == 1, "einsum(): subscript ",
            x.labels[d] < letters ? std::string(1, letter_of(x.labels[d])) : std::string("..."),
            " has size ", n, " for an operand which does not broadcast with previously seen size ",
            known);
      if (n != 1) known = n;
    }
}

// --- contraction

// All operands have their dimensions in one order, the output's and then the contracted ones; those
// that an operand lacks have size one.
Tensor placed(const Labelled& x, const Labels& order) {
  Tensor t = x.t;
  Labels labels = x.labels;
  for (int l : order)
    if (!has(labels, l)) {
      labels.push_back(l);
      t = ops::unsqueeze(t, t.dim());
    }
  IntVec dims;
  for (int l : order) dims.push_back(position(labels, l));
  return ops::permute(t, dims);
}

Labels common_order(const std::vector<Labelled>& operands, const Labels& output) {
  Labels rest;
  for (const Labelled& x : operands)
    for (int l : x.labels)
      if (!has(output, l) && !has(rest, l)) rest.push_back(l);
  std::ranges::sort(rest);
  Labels order = output;
  order.insert(order.end(), rest.begin(), rest.end());
  return order;
}

int64_t product_of(const Tensor& t, const IntVec& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= t.sizes()[d];
  return n;
}
IntVec joined(std::initializer_list<const IntVec*> lists) {
  IntVec all;
  for (const IntVec* list : lists)
    for (int64_t x : *list) all.push_back(x);
  return all;
}

// Sum of a * b over the dimensions marked in `gone`, which keep size one.
Tensor pair_product(const Tensor& a, const Tensor& b, const std::vector<bool>& gone) {
  IntVec batch, rows, cols, inner;
  for (int64_t d = 0; d < a.dim(); ++d) {
    const bool in_a = a.sizes()[d] != 1, in_b = b.sizes()[d] != 1;
    (gone[static_cast<size_t>(d)] ? inner : !in_a ? cols : in_b ? batch : rows).push_back(d);
  }
  if (inner.empty()) return ops::mul(a, b);
  // The transposed product is already in order where all of b's dimensions precede a's.
  if (!rows.empty() && !cols.empty() && cols.back() < rows[0]) return pair_product(b, a, gone);
  const int64_t n = product_of(a, batch), r = product_of(a, rows), k = product_of(a, inner),
                c = product_of(b, cols);
  const Tensor x = ops::reshape(ops::permute(a, joined({&batch, &rows, &inner, &cols})), {n, r, k});
  const Tensor y = ops::reshape(ops::permute(b, joined({&batch, &inner, &cols, &rows})), {n, k, c});
  const IntVec order = joined({&batch, &rows, &inner, &cols});
  IntVec sizes, back(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t d = order[i];
    const int64_t size = a.sizes()[d] == 1 ? b.sizes()[d] : a.sizes()[d];
    sizes.push_back(gone[static_cast<size_t>(d)] ? 1 : size);
    back[static_cast<size_t>(d)] = static_cast<int64_t>(i);
  }
  return ops::permute(ops::reshape(ops::bmm(x, y), sizes), back);
}

// The operands yet to be multiplied, and how many of them have each dimension with a size above
// one.
struct Operands {
  std::vector<Tensor> tensors;
  std::vector<int> holders;
  int64_t output_dims;
};

Operands place_all(const std::vector<Labelled>& labelled, const Labels& output) {
  const Labels order = common_order(labelled, output);
  Operands all{{}, std::vector<int>(order.size(), 0), static_cast<int64_t>(output.size())};
  for (const Labelled& x : labelled) {
    all.tensors.push_back(placed(x, order));
    for (size_t d = 0; d < order.size(); ++d) all.holders[d] += all.tensors.back().sizes()[d] != 1;
  }
  return all;
}

// What one operand alone holds is summed before the product; what only the two hold, by it.
Tensor contracted(Operands& all, Tensor a, Tensor b) {
  std::vector<bool> gone(all.holders.size(), false);
  IntVec alone_a, alone_b;
  for (int64_t d = all.output_dims; d < a.dim(); ++d) {
    int& holders = all.holders[static_cast<size_t>(d)];
    const bool in_a = a.sizes()[d] != 1, in_b = b.sizes()[d] != 1;
    if (in_a && in_b) --holders;
    if ((!in_a && !in_b) || holders != 1) continue;
    if (in_a && in_b) gone[static_cast<size_t>(d)] = true;
    if (in_a && !in_b) alone_a.push_back(d);
    if (!in_a && in_b) alone_b.push_back(d);
    holders = 0;
  }
  if (!alone_a.empty()) a = ops::sum(a, std::optional<IntList>(alone_a), true);
  if (!alone_b.empty()) b = ops::sum(b, std::optional<IntList>(alone_b), true);
  return pair_product(a, b, gone);
}

void contract_at(Operands& all, size_t i, size_t j, bool in_front) {
  std::vector<Tensor>& tensors = all.tensors;
  const size_t first = std::min(i, j), second = std::max(i, j);
  Tensor result = contracted(all, tensors[i], tensors[j]);
  tensors.erase(tensors.begin() + static_cast<std::ptrdiff_t>(second));
  tensors.erase(tensors.begin() + static_cast<std::ptrdiff_t>(first));
  tensors.insert(in_front ? tensors.begin() : tensors.end(), std::move(result));
}

// The contracted dimensions after the products: of size one where two operands were multiplied, of
// full size for a lone operand.
Tensor without_rest(const Tensor& t, int64_t output_dims, bool multiplied) {
  if (output_dims == t.dim()) return t;
  if (multiplied) return ops::view(t, t.sizes().first(static_cast<size_t>(output_dims)));
  IntVec rest;
  for (int64_t d = output_dims; d < t.dim(); ++d) rest.push_back(d);
  return ops::sum(t, std::optional<IntList>(rest));
}

// `path` holds pairs of positions, as opt_einsum gives them: each pair goes and its product joins
// the end of the list.
void follow_path(Operands& all, IntSpan path) {
  const std::vector<Tensor>& operands = all.tensors;
  check(path.size() == 2 * (operands.size() - 1),
        "einsum(): path must hold two positions for each contraction, ", 2 * (operands.size() - 1),
        " in all; got ", path.size());
  for (size_t p = 0; p < path.size(); p += 2) {
    const int64_t count = static_cast<int64_t>(operands.size());
    const bool valid = path[p] != path[p + 1] && path[p] >= 0 && path[p + 1] >= 0 &&
                       path[p] < count && path[p + 1] < count;
    check(valid, "einsum(): invalid contraction path (", path[p], ", ", path[p + 1], ") for ",
          count, " operands");
    contract_at(all, static_cast<size_t>(path[p]), static_cast<size_t>(path[p + 1]), false);
  }
}

Tensor einsum(std::string_view equation, std::span<const Tensor> tensors,
              const std::optional<IntSpan>& path) {
  check(!tensors.empty(), "einsum(): expected an operand; got none");
  const Equation e = parse_equation(equation);
  check(e.inputs.size() >= tensors.size(), "einsum(): the equation has ", e.inputs.size(),
        " terms for operands; got more operands, ", tensors.size());
  check(e.inputs.size() <= tensors.size(), "einsum(): the equation has ", e.inputs.size(),
        " terms for operands; got fewer operands, ", tensors.size());
  const int64_t rank = ellipsis_rank(e, tensors);
  std::vector<Labels> inputs;
  std::vector<Labelled> operands;
  for (size_t i = 0; i < tensors.size(); ++i) {
    inputs.push_back(filled(e.inputs[i], rank, tensors[i].dim() - letter_count(e.inputs[i])));
    operands.push_back(without_repeats({tensors[i], inputs.back()}, i));
  }
  const Labels output =
      e.explicit_output ? filled(e.output, rank, rank) : implicit_output(inputs, rank);
  check_output(output, inputs);
  check_sizes(operands);
  Operands all = place_all(operands, output);
  if (path && operands.size() > 1) follow_path(all, *path);
  while (all.tensors.size() > 1) contract_at(all, 0, 1, true);
  return without_rest(all.tensors[0], all.output_dims, operands.size() > 1);
}

// --- products of three

Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                const Tensor& bias) {
  check(input1.dim() == input2.dim(),
        "bilinear(): input1 and input2 must have as many dimensions; got ", input1.dim(), " and ",
        input2.dim());
  check(input1.dim() > 0 && weight.dim() == 3,
        "bilinear(): expected inputs with dimensions and weight with three; got ",
        str(input1.sizes()), ", ", str(weight.sizes()));
  const int64_t last = input1.dim() - 1;
  for (int64_t d = 0; d < last; ++d)
    check(input1.sizes()[d] == input2.sizes()[d],
          "bilinear(): input1 and input2 must agree in batch dimension ", d, "; got sizes ",
          input1.sizes()[d], " and ", input2.sizes()[d]);
  check(input1.sizes()[last] == weight.sizes()[1],
        "bilinear(): input1's last size must be weight's size in dimension 1, ", weight.sizes()[1],
        "; got ", input1.sizes()[last]);
  check(input2.sizes()[last] == weight.sizes()[2],
        "bilinear(): input2's last size must be weight's size in dimension 2, ", weight.sizes()[2],
        "; got ", input2.sizes()[last]);
  check(!bias.defined() || (bias.dim() == 1 && bias.sizes()[0] == weight.sizes()[0]),
        "bilinear(): bias must have shape [", weight.sizes()[0], "]; got ",
        bias.defined() ? str(bias.sizes()) : str(IntSpan()));
  const int64_t out = weight.sizes()[0], n1 = weight.sizes()[1], n2 = weight.sizes()[2];
  IntVec sizes(input1.sizes());
  sizes[last] = out;
  int64_t rows = 1;
  for (int64_t d = 0; d < last; ++d) rows *= sizes[d];
  const Tensor first = ops::mm(ops::reshape(input1, {rows, n1}),
                               ops::reshape(ops::permute(weight, {1, 0, 2}), {n1, out * n2}));
  const Tensor both =
      ops::bmm(ops::reshape(first, {rows, out, n2}), ops::reshape(input2, {rows, n2, 1}));
  const Tensor y = ops::reshape(both, sizes);
  return bias.defined() ? ops::add(y, bias) : y;
}

Tensor with_ones(Tensor t, IntSpan dims) {
  for (int64_t d : dims) t = ops::unsqueeze(t, d);
  return t;
}
Tensor conjugate(const Tensor& t) { return is_complex(t.dtype()) ? ops::conj(t) : t; }

// Repeated over what the factor alone had; what it had not is summed on the way to it.
Tensor repeated_to(const Tensor& t, IntSpan sizes) {
  return ops::expand(t, broadcast_sizes(t.sizes(), sizes));
}

// The gradient of one factor is a sum of products as well, over the dimensions it was given.
Tensor trilinear_first(Backward& b) {
  const Tensor g =
      ops::_trilinear(b.grad(), conjugate(b["i2"]), conjugate(b["i3"]), b.ints("sumdim"),
                      b.ints("expand2"), b.ints("expand3"), b.ints("expand1"));
  return repeated_to(g, b.sizes("i1"));
}
Tensor trilinear_second(Backward& b) {
  const Tensor g =
      ops::_trilinear(conjugate(b["i1"]), b.grad(), conjugate(b["i3"]), b.ints("expand1"),
                      b.ints("sumdim"), b.ints("expand3"), b.ints("expand2"));
  return repeated_to(g, b.sizes("i2"));
}
Tensor trilinear_third(Backward& b) {
  const Tensor g =
      ops::_trilinear(conjugate(b["i1"]), conjugate(b["i2"]), b.grad(), b.ints("expand1"),
                      b.ints("expand2"), b.ints("sumdim"), b.ints("expand3"));
  return repeated_to(g, b.sizes("i3"));
}

Tensor _trilinear(const Tensor& i1, const Tensor& i2, const Tensor& i3, IntSpan expand1,
                  IntSpan expand2, IntSpan expand3, IntSpan sumdim, int64_t) {
  const Tensor a = with_ones(i1, expand1), b = with_ones(i2, expand2), c = with_ones(i3, expand3);
  const Tensor product = ops::mul(ops::mul(a, b), c);
  return sumdim.empty()
             ? product
             : ops::sum(product, std::optional<IntList>(IntList(sumdim)), false, product.dtype());
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(einsum){
    .schema = "einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor",
    .doc =
        "Sum of products over the dimensions that the equation names: einsum('ij,jk->ik', a, b) is "
        "a @ b.",
    .composite = Composite::Implicit,
    .any = typed_kernel<einsum>,
};
OP(bilinear){
    .schema = "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
    .doc =
        "input1 @ weight[k] @ input2 for each k, plus bias, over the last dimensions of the "
        "inputs.",
    .composite = Composite::Implicit,
    .autocast = Autocast::Promote,
    .autocast_cpu = Autocast::None,
    .any = typed_kernel<bilinear>,
};
OP(_trilinear){
    .schema =
        "_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, "
        "int[] sumdim, "
        "int unroll_dim=1) -> Tensor",
    .doc =
        "Sum over sumdim of the product of three tensors, each given dimensions of size one first.",
    .forms = function | out,
    .composite = Composite::Explicit,
    .any = typed_kernel<_trilinear>,
    .derivatives = {vjp("i1", trilinear_first, saves("i2", "i3")),
                    vjp("i2", trilinear_second, saves("i1", "i3")),
                    vjp("i3", trilinear_third, saves("i1", "i2"))},
};
