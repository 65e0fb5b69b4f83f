// Operators over lists of tensors. One kernel serves them all: it calls, for each element, the
// operator that the list operator is named after: `add` for `_foreach_add`, `add_` for its in-place
// variant.
#include "ops/elementwise/foreach.h"

#include <algorithm>

#include "core/interrupts.h"
#include "ops/create/copy.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/powers.h"
#include "ops/meta_rules.h"
#include "ops/reduce/reduce.h"

namespace facula {
namespace {

constexpr int most_args = 8;

bool is_list(const Argument& a) {
  return a.type.list && (a.type.kind == TypeKind::Tensor || a.type.kind == TypeKind::Scalar);
}

// What a record says of the operator that is called for each element: its name, and the argument
// that is a 1-d tensor with a number for each (-1: none; addcmul.Tensor and addcdiv.Tensor).
struct Each {
  const char* element;
  int packed = -1;
};

// The length that all lists of a call have.
size_t common_length(const OpCall& c) {
  const Schema& s = c.info->schema;
  size_t n = 0;
  for (int i = 0; i < c.info->args; ++i) {
    const Argument& a = s.args[static_cast<size_t>(i)];
    if (!is_list(a)) continue;
    const size_t length = c.args[i].length;
    if (n == 0) check(length > 0, "foreach: a tensor list must not be empty");
    if (n == 0) n = length;
    if (a.type.kind == TypeKind::Scalar)
      check(length == n, "foreach: lists must have one scalar for each of the ", n,
            " tensors; got ", length);
    else
      check(length == n, "foreach: tensor lists must have the same length; got ", n, " and ",
            length);
  }
  return n;
}

void check_lone_tensors(const OpCall& c, int packed, size_t n) {
  for (int i = 0; i < c.info->args; ++i) {
    const Argument& a = c.info->schema.args[static_cast<size_t>(i)];
    if (a.type.list || !c.args[i].is_tensor()) continue;
    const Tensor& t = c.tensor(i);
    if (i != packed) {
      check(t.dim() == 0, "foreach: a scalar tensor must be 0-dimensional; got ", t.dim(),
            " dimensions and ", t.numel(), " elements");
      continue;
    }
    check(t.dim() == 1, "foreach: scalars packed in a tensor must be 1-D; got ", t.dim(), "-D");
    check(t.numel() == static_cast<int64_t>(n), "foreach: packed scalars must be ", n,
          ", one for each tensor; got ", t.numel());
  }
}

// The numbers that packed arguments hold, kept while the elements' calls borrow them.
struct Numbers {
  std::vector<complex128> complex;
  std::vector<Value> values;
};
Numbers unpack(const Tensor& t, size_t n) {
  Numbers numbers;
  numbers.complex.resize(n);
  for (size_t k = 0; k < n; ++k) {
    const int64_t at = t.storage_offset() + static_cast<int64_t>(k) * t.stride(0);
    const Scalar s = ops::item(alias_tensor(t, {}, {}, at));
    numbers.complex[k] = s.to<complex128>();
    Value v = s.is_integral() ? Value::of_int(s.to<int64_t>())
                              : Value::of_float(s.is_complex() ? 0 : s.to<double>());
    if (s.is_complex()) {
      v.tag = Tag::Complex;
      v.complex = &numbers.complex[k];
    }
    numbers.values.push_back(v);
  }
  return numbers;
}

Value element(const Argument& a, const Value& v, size_t k) {
  if (!is_list(a)) return v;
  return a.type.kind == TypeKind::Scalar ? v.values[k] : pack(v.tensors[k]);
}

bool accepts(const Operator& op, const Argument& a, const Value& v) {
  if (v.is_tensor()) return a.type.kind == TypeKind::Tensor && !a.type.list;
  if (a.type.kind == TypeKind::Bool) return v.tag == Tag::Bool;
  if (!v.is_number()) return !v.is_none() || a.type.optional;
  return a.type.kind == TypeKind::Scalar ||
         (a.type.kind == TypeKind::Tensor && op.record->numbers.has(a.name));
}

// Places the arguments of an element: those of the same name, else of the same position. False
// where `op` takes others.
bool bind(const Operator& op, const Schema& from, const Value* args, Value* to) {
  const Schema& s = op.info().schema;
  if (s.args.size() > most_args) return false;
  bool given[most_args] = {};
  for (size_t i = 0; i < from.args.size(); ++i) {
    const int named = s.index_of(from.args[i].name);
    const size_t at = named >= 0 ? static_cast<size_t>(named) : i;
    if (at >= s.args.size() || !accepts(op, s.args[at], args[i])) return false;
    to[at] = args[i];
    given[at] = true;
  }
  for (size_t i = 0; i < s.args.size(); ++i) {
    if (given[i]) continue;
    if (!s.args[i].has_default) return false;
    to[i] = default_value(s.args[i]);
  }
  return true;
}

const Operator* find_target(const std::string& name, const Schema& from, const Value* args) {
  Value room[most_args];
  for (const Operator* op : find_overloads("aten", name))
    if (op->variant != Variant::Out && bind(*op, from, args, room)) return op;
  return nullptr;
}

// `add_` of one element; operators without an in-place variant are computed and copied.
struct Target {
  const Operator* op = nullptr;
  bool copies = false;
};
Target target(const OpCall& c, std::string name, const Value* args) {
  const Schema& s = c.info->schema;
  const bool inplace = c.op->variant == Variant::Inplace;
  if (const Operator* op = find_target(inplace ? name + "_" : name, s, args)) return {op, false};
  const Operator* op = inplace ? find_target(name, s, args) : nullptr;
  if (!op)
    throw Error(ErrorKind::NotImplemented, s.name, "(): the operator '", name,
                "' for these arguments is missing");
  return {op, true};
}

void run_each(void* context, OpCall& c) {
  const auto& [name, packed] = *static_cast<const Each*>(context);
  const Schema& s = c.info->schema;
  const size_t n = common_length(c), args = s.args.size();
  check_lone_tensors(c, packed, n);
  const Numbers numbers = packed < 0 ? Numbers() : unpack(c.tensor(packed), n);
  std::vector<Tensor> results;
  Target t;
  Value given[most_args], placed[most_args];
  for (size_t k = 0; k < n; ++k) {
    poll_interrupts();
    for (size_t i = 0; i < args; ++i) given[i] = element(s.args[i], c.args[i], k);
    if (packed >= 0) given[packed] = numbers.values[k];
    if (!t.op || !bind(*t.op, s, given, placed)) {
      t = target(c, name, given);
      bind(*t.op, s, given, placed);
    }
    Tensor result = call_tensor(*t.op, placed);
    if (t.copies) ops::copy_(c.args[0].tensors[k], result);
    if (c.op->variant != Variant::Inplace) results.push_back(std::move(result));
  }
  if (c.op->variant != Variant::Inplace) set_result(c.results[0], std::move(results));
}

// A list of characters as an argument of a template.
template <size_t N>
struct Text {
  consteval Text(const char (&from)[N]) { std::copy_n(from, N, chars); }
  char chars[N];
};
template <Text name, int packed>
constexpr Each each_of{name.chars, packed};
// The kernel that calls an operator, by name, for each element of the lists.
template <Text name, int packed = -1>
constexpr KernelRef each = {{&run_each}, {&each_of<name, packed>}};

// Sums of powers of magnitudes: norms before their root.
std::vector<Tensor> powsum(std::span<const Tensor> self, const Scalar& ord,
                           std::optional<DType> dtype) {
  check(!self.empty(), "foreach: a tensor list must not be empty");
  std::vector<Tensor> results;
  for (const Tensor& t : self) results.push_back(ops::sum(ops::pow(ops::abs(t), ord), dtype));
  return results;
}

}  // namespace
}  // namespace facula

using namespace facula;

OP(_foreach_abs){
    .schema = "_foreach_abs(Tensor[] self) -> Tensor[]",
    .doc = "The abs of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"abs">,
};
OP(_foreach_acos){
    .schema = "_foreach_acos(Tensor[] self) -> Tensor[]",
    .doc = "The acos of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"acos">,
};
OP(_foreach_asin){
    .schema = "_foreach_asin(Tensor[] self) -> Tensor[]",
    .doc = "The asin of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"asin">,
};
OP(_foreach_atan){
    .schema = "_foreach_atan(Tensor[] self) -> Tensor[]",
    .doc = "The atan of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"atan">,
};
OP(_foreach_ceil){
    .schema = "_foreach_ceil(Tensor[] self) -> Tensor[]",
    .doc = "The ceil of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"ceil">,
};
OP(_foreach_cos){
    .schema = "_foreach_cos(Tensor[] self) -> Tensor[]",
    .doc = "The cos of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"cos">,
};
OP(_foreach_cosh){
    .schema = "_foreach_cosh(Tensor[] self) -> Tensor[]",
    .doc = "The cosh of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"cosh">,
};
OP(_foreach_erf){
    .schema = "_foreach_erf(Tensor[] self) -> Tensor[]",
    .doc = "The erf of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"erf">,
};
OP(_foreach_erfc){
    .schema = "_foreach_erfc(Tensor[] self) -> Tensor[]",
    .doc = "The erfc of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"erfc">,
};
OP(_foreach_exp){
    .schema = "_foreach_exp(Tensor[] self) -> Tensor[]",
    .doc = "The exp of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"exp">,
};
OP(_foreach_expm1){
    .schema = "_foreach_expm1(Tensor[] self) -> Tensor[]",
    .doc = "The expm1 of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"expm1">,
};
OP(_foreach_floor){
    .schema = "_foreach_floor(Tensor[] self) -> Tensor[]",
    .doc = "The floor of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"floor">,
};
OP(_foreach_frac){
    .schema = "_foreach_frac(Tensor[] self) -> Tensor[]",
    .doc = "The frac of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"frac">,
};
OP(_foreach_lgamma){
    .schema = "_foreach_lgamma(Tensor[] self) -> Tensor[]",
    .doc = "The lgamma of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"lgamma">,
};
OP(_foreach_log){
    .schema = "_foreach_log(Tensor[] self) -> Tensor[]",
    .doc = "The log of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"log">,
};
OP(_foreach_log10){
    .schema = "_foreach_log10(Tensor[] self) -> Tensor[]",
    .doc = "The log10 of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"log10">,
};
OP(_foreach_log1p){
    .schema = "_foreach_log1p(Tensor[] self) -> Tensor[]",
    .doc = "The log1p of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"log1p">,
};
OP(_foreach_log2){
    .schema = "_foreach_log2(Tensor[] self) -> Tensor[]",
    .doc = "The log2 of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"log2">,
};
OP(_foreach_neg){
    .schema = "_foreach_neg(Tensor[] self) -> Tensor[]",
    .doc = "The neg of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"neg">,
};
OP(_foreach_reciprocal){
    .schema = "_foreach_reciprocal(Tensor[] self) -> Tensor[]",
    .doc = "The reciprocal of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"reciprocal">,
};
OP(_foreach_round){
    .schema = "_foreach_round(Tensor[] self) -> Tensor[]",
    .doc = "The round of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"round">,
};
OP(_foreach_rsqrt){
    .schema = "_foreach_rsqrt(Tensor[] self) -> Tensor[]",
    .doc = "The rsqrt of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"rsqrt">,
};
OP(_foreach_sigmoid){
    .schema = "_foreach_sigmoid(Tensor[] self) -> Tensor[]",
    .doc = "The sigmoid of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"sigmoid">,
};
OP(_foreach_sign){
    .schema = "_foreach_sign(Tensor[] self) -> Tensor[]",
    .doc = "The sign of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"sign">,
};
OP(_foreach_sin){
    .schema = "_foreach_sin(Tensor[] self) -> Tensor[]",
    .doc = "The sin of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"sin">,
};
OP(_foreach_sinh){
    .schema = "_foreach_sinh(Tensor[] self) -> Tensor[]",
    .doc = "The sinh of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"sinh">,
};
OP(_foreach_sqrt){
    .schema = "_foreach_sqrt(Tensor[] self) -> Tensor[]",
    .doc = "The sqrt of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"sqrt">,
};
OP(_foreach_tan){
    .schema = "_foreach_tan(Tensor[] self) -> Tensor[]",
    .doc = "The tan of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"tan">,
};
OP(_foreach_tanh){
    .schema = "_foreach_tanh(Tensor[] self) -> Tensor[]",
    .doc = "The tanh of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"tanh">,
};
OP(_foreach_trunc){
    .schema = "_foreach_trunc(Tensor[] self) -> Tensor[]",
    .doc = "The trunc of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"trunc">,
};
OP(_foreach_add_Scalar){
    .schema = "_foreach_add.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
    .doc = "Sum of each tensor and a number.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"add">,
};
OP(_foreach_add_List){
    .schema = "_foreach_add.List(Tensor[] self, Tensor[] other, *, Scalar alpha=1) -> Tensor[]",
    .doc = "Sum of the tensors at the same place of two lists.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"add">,
};
OP(_foreach_add_ScalarList){
    .schema = "_foreach_add.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
    .doc = "Sum of each tensor and its number.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"add">,
};
OP(_foreach_add_Tensor){
    .schema = "_foreach_add.Tensor(Tensor[] self, Tensor other, *, Scalar alpha=1) -> Tensor[]",
    .doc = "Sum of each tensor and one 0-dim tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"add">,
};
OP(_foreach_sub_Scalar){
    .schema = "_foreach_sub.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
    .doc = "Difference of each tensor and a number.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"sub">,
};
OP(_foreach_sub_List){
    .schema = "_foreach_sub.List(Tensor[] self, Tensor[] other, *, Scalar alpha=1) -> Tensor[]",
    .doc = "Difference of the tensors at the same place of two lists.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"sub">,
};
OP(_foreach_sub_ScalarList){
    .schema = "_foreach_sub.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
    .doc = "Difference of each tensor and its number.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"sub">,
};
OP(_foreach_mul_Scalar){
    .schema = "_foreach_mul.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
    .doc = "Product of each tensor and a number.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"mul">,
};
OP(_foreach_mul_List){
    .schema = "_foreach_mul.List(Tensor[] self, Tensor[] other) -> Tensor[]",
    .doc = "Product of the tensors at the same place of two lists.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"mul">,
};
OP(_foreach_mul_ScalarList){
    .schema = "_foreach_mul.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
    .doc = "Product of each tensor and its number.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"mul">,
};
OP(_foreach_mul_Tensor){
    .schema = "_foreach_mul.Tensor(Tensor[] self, Tensor other) -> Tensor[]",
    .doc = "Product of each tensor and one 0-dim tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"mul">,
};
OP(_foreach_div_Scalar){
    .schema = "_foreach_div.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
    .doc = "Quotient of each tensor and a number.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"div">,
};
OP(_foreach_div_List){
    .schema = "_foreach_div.List(Tensor[] self, Tensor[] other) -> Tensor[]",
    .doc = "Quotient of the tensors at the same place of two lists.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"div">,
};
OP(_foreach_div_ScalarList){
    .schema = "_foreach_div.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
    .doc = "Quotient of each tensor and its number.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"div">,
};
OP(_foreach_div_Tensor){
    .schema = "_foreach_div.Tensor(Tensor[] self, Tensor other) -> Tensor[]",
    .doc = "Quotient of each tensor and one 0-dim tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"div">,
};
OP(_foreach_clamp_max_Scalar){
    .schema = "_foreach_clamp_max.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
    .doc = "No element above its bound: each tensor and a number.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"clamp_max">,
};
OP(_foreach_clamp_max_List){
    .schema = "_foreach_clamp_max.List(Tensor[] self, Tensor[] other) -> Tensor[]",
    .doc = "No element above its bound: tensors at the same place of two lists.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"clamp_max">,
};
OP(_foreach_clamp_max_ScalarList){
    .schema = "_foreach_clamp_max.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
    .doc = "No element above its bound: each tensor and its number.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"clamp_max">,
};
OP(_foreach_clamp_min_Scalar){
    .schema = "_foreach_clamp_min.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
    .doc = "No element below its bound: each tensor and a number.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"clamp_min">,
};
OP(_foreach_clamp_min_List){
    .schema = "_foreach_clamp_min.List(Tensor[] self, Tensor[] other) -> Tensor[]",
    .doc = "No element below its bound: tensors at the same place of two lists.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"clamp_min">,
};
OP(_foreach_clamp_min_ScalarList){
    .schema = "_foreach_clamp_min.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
    .doc = "No element below its bound: each tensor and its number.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"clamp_min">,
};
OP(_foreach_maximum_Scalar){
    .schema = "_foreach_maximum.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
    .doc = "Larger one of elements: each tensor and a number.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"clamp_min">,
};
OP(_foreach_maximum_List){
    .schema = "_foreach_maximum.List(Tensor[] self, Tensor[] other) -> Tensor[]",
    .doc = "Larger one of elements: tensors at the same place of two lists.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"maximum">,
};
OP(_foreach_maximum_ScalarList){
    .schema = "_foreach_maximum.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
    .doc = "Larger one of elements: each tensor and its number.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"clamp_min">,
};
OP(_foreach_minimum_Scalar){
    .schema = "_foreach_minimum.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
    .doc = "Smaller one of elements: each tensor and a number.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"clamp_max">,
};
OP(_foreach_minimum_List){
    .schema = "_foreach_minimum.List(Tensor[] self, Tensor[] other) -> Tensor[]",
    .doc = "Smaller one of elements: tensors at the same place of two lists.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"minimum">,
};
OP(_foreach_minimum_ScalarList){
    .schema = "_foreach_minimum.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
    .doc = "Smaller one of elements: each tensor and its number.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"clamp_max">,
};
OP(_foreach_pow_List){
    .schema = "_foreach_pow.List(Tensor[] self, Tensor[] exponent) -> Tensor[]",
    .doc = "Power of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"pow">,
};
OP(_foreach_pow_Scalar){
    .schema = "_foreach_pow.Scalar(Tensor[] self, Scalar exponent) -> Tensor[]",
    .doc = "Power of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"pow">,
};
OP(_foreach_pow_ScalarList){
    .schema = "_foreach_pow.ScalarList(Tensor[] self, Scalar[] exponent) -> Tensor[]",
    .doc = "Power of each tensor.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"pow">,
};
OP(_foreach_pow_ScalarAndTensor){
    .schema = "_foreach_pow.ScalarAndTensor(Scalar self, Tensor[] exponent) -> Tensor[]",
    .doc = "A number to the power of each tensor.",
    .forms = function,
    .composite = Composite::Implicit,
    .any = each<"pow">,
};
OP(_foreach_lerp_List){
    .schema = "_foreach_lerp.List(Tensor[] self, Tensor[] tensors1, Tensor[] weights) -> Tensor[]",
    .doc = "Each tensor moved towards another by a weight.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"lerp">,
};
OP(_foreach_lerp_Scalar){
    .schema = "_foreach_lerp.Scalar(Tensor[] self, Tensor[] tensors1, Scalar weight) -> Tensor[]",
    .doc = "Each tensor moved towards another by a weight.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"lerp">,
};
OP(_foreach_lerp_ScalarList){
    .schema =
        "_foreach_lerp.ScalarList(Tensor[] self, Tensor[] tensors1, "
        "Scalar[] weight) -> Tensor[]",
    .doc = "Each tensor moved towards another by a weight.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"lerp">,
};
OP(_foreach_addcmul_Scalar){
    .schema =
        "_foreach_addcmul.Scalar(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, "
        "Scalar value=1) -> Tensor[]",
    .doc = "Each tensor plus a multiple of the product of two others.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"addcmul">,
};
OP(_foreach_addcmul_ScalarList){
    .schema =
        "_foreach_addcmul.ScalarList(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, "
        "Scalar[] scalars) -> Tensor[]",
    .doc = "Each tensor plus a multiple of the product of two others.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"addcmul">,
};
OP(_foreach_addcmul_Tensor){
    .schema =
        "_foreach_addcmul.Tensor(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, "
        "Tensor scalars) -> Tensor[]",
    .doc = "Each tensor plus a multiple of the product of two others.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"addcmul", 3>,
};
OP(_foreach_addcdiv_Scalar){
    .schema =
        "_foreach_addcdiv.Scalar(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, "
        "Scalar value=1) -> Tensor[]",
    .doc = "Each tensor plus a multiple of the quotient of two others.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"addcdiv">,
};
OP(_foreach_addcdiv_ScalarList){
    .schema =
        "_foreach_addcdiv.ScalarList(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, "
        "Scalar[] scalars) -> Tensor[]",
    .doc = "Each tensor plus a multiple of the quotient of two others.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"addcdiv">,
};
OP(_foreach_addcdiv_Tensor){
    .schema =
        "_foreach_addcdiv.Tensor(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, "
        "Tensor scalars) -> Tensor[]",
    .doc = "Each tensor plus a multiple of the quotient of two others.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"addcdiv", 3>,
};
OP(_foreach_norm_Scalar){
    .schema =
        "_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]",
    .doc = "Norm of each tensor, seen as a vector.",
    .forms = function,
    .composite = Composite::Implicit,
    .any = each<"linalg_vector_norm">,
};
OP(_foreach_powsum_Scalar){
    .schema =
        "_foreach_powsum.Scalar(Tensor[] self, Scalar ord=2, "
        "ScalarType? dtype=None) -> Tensor[]",
    .doc = "Sum of the magnitudes of each tensor's elements to a power.",
    .forms = function,
    .composite = Composite::Implicit,
    .any = typed_kernel<powsum>,
};
OP(_foreach_max){
    .schema = "_foreach_max(Tensor[] self) -> Tensor[]",
    .doc = "Largest element of each tensor.",
    .forms = function,
    .composite = Composite::Implicit,
    .any = each<"max">,
};
OP(_foreach_mm){
    .schema = "_foreach_mm(Tensor[] self, Tensor[] mat2) -> Tensor[]",
    .doc = "Matrix products of two lists.",
    .forms = function,
    .composite = Composite::Implicit,
    .any = each<"mm">,
};
OP(_foreach_clone){
    .schema = "_foreach_clone(Tensor[] self, *, MemoryFormat? memory_format=None) -> Tensor[]",
    .doc = "A copy of each tensor.",
    .forms = function,
    .composite = Composite::Implicit,
    .any = each<"clone">,
};
OP(_foreach_zero){
    .schema = "_foreach_zero(Tensor[] self) -> Tensor[]",
    .doc = "Zeros like each tensor; in place, fills with zeros.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"zero">,
};
OP(_foreach_copy){
    .schema = "_foreach_copy(Tensor[] self, Tensor[] src, bool non_blocking=False) -> Tensor[]",
    .doc = "The second list's values in the shapes and dtypes of the first.",
    .forms = function | inplace,
    .composite = Composite::Implicit,
    .any = each<"copy">,
};
