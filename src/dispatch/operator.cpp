#include "dispatch/operator.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "core/error.h"
#include "core/fork.h"
#include "dispatch/operator_text.h"

namespace facula {
namespace {

// --- operators made at run time: names to operators, under one lock

struct RuntimeTable {
  ForkSafeMutex lock{ForkOrder::Operators};
  std::map<std::string, Operator*> by_name;  // "ns::name.overload"
};
RuntimeTable& runtime() {
  static auto* t = new RuntimeTable;  // never destroyed: calls may outlive static destruction
  return *t;
}

ForkSafeMutex& info_lock() {
  static constinit ForkSafeMutex m(ForkOrder::OperatorInfo);
  return m;
}

std::string full_name(std::string_view ns, std::string_view name, std::string_view overload) {
  std::string s = std::string(ns) + "::" + std::string(name);
  if (!overload.empty()) s += "." + std::string(overload);
  return s;
}

// --- schemas of variants

std::string default_out_overload(const Schema& s, const OpRecord& r) {
  if (*r.out_name) return r.out_name;
  if (s.overload.empty() || s.overload == "Tensor") return "out";
  return s.overload + "_out";
}

AliasInfo written(int letter) {
  AliasInfo a;
  a.before = a.after = 1u << letter;
  a.write = true;
  return a;
}

void make_inplace(Schema& s) {
  s.name += "_";
  s.args[0].alias = written(0);
  if (s.args[0].type.list)
    return s.results.clear();  // PyTorch's operators over lists return nothing
  s.results.resize(1);
  s.results[0].name.clear();
  s.results[0].alias = written(0);
}

void make_out(Schema& s, const OpRecord& r) {
  s.overload = default_out_overload(s, r);
  for (size_t i = 0; i < s.results.size(); ++i) {
    Argument a;
    const Argument& result = s.results[i];
    if (s.results.size() == 1)
      a.name = "out";
    else
      a.name = result.name.empty() ? "out" + std::to_string(i) : result.name;
    a.name_hash = name_hash(a.name);
    a.type = result.type;
    a.alias = written(static_cast<int>(i));
    a.keyword_only = true;
    s.args.push_back(a);
    s.results[i].alias = a.alias;
  }
  if (s.results.size() == 1 && s.results[0].type.list)
    s.results.clear();  // lists are written, not returned
}

void make_functional(Schema& s) {
  if (!s.name.empty() && s.name.back() == '_') s.name.pop_back();
  for (Argument& a : s.args) a.alias = {};
  if (s.results.empty()) {
    Argument result;
    result.type = s.args[0].type;
    s.results.push_back(result);
  }
  for (Argument& a : s.results) a.alias = {};
}

Schema variant_schema(const OpRecord& r, Variant v) {
  Schema s = parse_schema(r.schema);
  if (s.ns.empty()) s.ns = "aten";
  if (v == Variant::Inplace) make_inplace(s);
  if (v == Variant::Out) make_out(s, r);
  if (v == Variant::Functional) make_functional(s);
  return s;
}

// --- positions in place of names

void resolve_derivatives(OpInfo& info, const OpRecord& r) {
  std::fill(std::begin(info.derivative_of), std::end(info.derivative_of), -1);
  // The text of the record's own schema: result names stay as written there.
  const Schema s = parse_schema(r.schema);
  // Results without a name are "result", or "result0", "result1", ... where there are several.
  auto name_of = [&](size_t i) {
    if (!s.results[i].name.empty()) return s.results[i].name;
    return s.results.size() == 1 ? std::string("result") : "result" + std::to_string(i);
  };
  info.own_results = static_cast<uint8_t>(s.results.size());
  for (size_t i = 0; i < s.results.size(); ++i) info.result_names[i] = name_hash(name_of(i));
  auto result_index = [&](std::string_view n) {
    for (size_t i = 0; i < s.results.size(); ++i)
      if (name_of(i) == n || (n == "result" && s.results.size() == 1)) return static_cast<int>(i);
    return -1;
  };
  for (size_t i = 0; i < s.results.size(); ++i)
    if (!r.not_differentiable.has(name_of(i))) info.differentiable_results |= 1u << i;
  // Beside a derivative, an argument without one refuses tensors that require grad.
  for (std::string_view n : r.not_differentiable.list)
    if (const int at = n.empty() || r.derivatives[0].inputs.empty() ? -1 : s.index_of(n); at >= 0)
      info.derivative_of[at] = -2;
  int row = 0;
  for (const Derivative& d : r.derivatives) {
    if (d.inputs.empty()) break;
    info.differentiable = true;
    for (std::string_view n : d.inputs.list) {
      if (n.empty()) continue;
      const int at = s.index_of(n);
      check(at >= 0, s.name, ": the derivative table names '", n, "', which is no argument");
      info.derivative_of[at] = static_cast<int8_t>(row);
    }
    for (std::string_view n : d.saved.list) {
      if (n.empty()) continue;
      const int at = s.index_of(n), from = result_index(n);
      check(at >= 0 || from >= 0, s.name, ": saves '", n, "', which is no argument or result");
      if (at >= 0)
        info.saved_args[row] |= 1u << at;
      else
        info.saved_results[row] |= 1u << from;
    }
    ++row;
  }
  // What only an in-place variant differentiates: comparisons, whose results are bool.
  if (!info.differentiable_results && !info.mutated) {
    info.differentiable = false;
    std::fill(std::begin(info.derivative_of), std::end(info.derivative_of), -1);
  }
}

void resolve_aliases(OpInfo& info) {
  const Schema& s = info.schema;
  for (size_t k = 0; k < s.results.size() && k < std::size(info.alias_of); ++k) {
    const AliasInfo& to = s.results[k].alias;
    if (!to) continue;
    for (size_t i = 0; i < s.args.size(); ++i) {
      const AliasInfo& from = s.args[i].alias;
      if (!from || !(from.before & to.before)) continue;
      info.alias_of[k] = static_cast<int8_t>(i);
      if (!to.write) {
        info.view = true;
        info.multi_view |= s.results[k].type.list || s.results.size() > 1;
      }
      break;
    }
  }
}

OpInfo* build_info(const OpRecord& r, Variant v) {
  auto info = std::make_unique<OpInfo>();
  info->schema = variant_schema(r, v);
  const Schema& s = info->schema;
  check(s.args.size() <= 32 && s.results.size() <= 8, full_name(s.ns, s.name, s.overload),
        ": an operator has at most 32 arguments and 8 results; got ", s.args.size(), " and ",
        s.results.size());
  info->args = static_cast<uint8_t>(s.args.size());
  info->results = static_cast<uint8_t>(s.results.size());
  info->base_args =
      static_cast<uint8_t>(v == Variant::Out ? parse_schema(r.schema).args.size() : s.args.size());
  for (size_t i = 0; i < s.args.size(); ++i) {
    const Argument& a = s.args[i];
    const uint32_t bit = 1u << i;
    if (a.type.kind == TypeKind::Tensor) (a.type.list ? info->list_args : info->tensor_args) |= bit;
    if (a.alias && a.alias.write) info->mutated |= bit;
    if (a.type.kind == TypeKind::Device && info->device_arg < 0)
      info->device_arg = static_cast<int8_t>(i);
    if (a.type.kind == TypeKind::Layout && info->layout_arg < 0)
      info->layout_arg = static_cast<int8_t>(i);
    if (a.type.kind == TypeKind::ScalarType && info->dtype_arg < 0)
      info->dtype_arg = static_cast<int8_t>(i);
  }
  info->reads_strides = (r.flags & reads_strides) != 0;
  info->numbers_stand_apart = !r.number_nodes.empty();
  info->implicit = r.composite == Composite::Implicit || r.composite == Composite::Selecting;
  resolve_aliases(*info);
  resolve_derivatives(*info, r);
  return info.release();
}

}  // namespace

const OpInfo& Operator::make_info() const {
  std::lock_guard hold(info_lock());
  auto& slot = const_cast<std::atomic<const OpInfo*>&>(info_);
  if (const OpInfo* there = slot.load(std::memory_order_acquire)) return *there;
  const OpInfo* made = build_info(*record, variant);
  slot.store(made, std::memory_order_release);
  return *made;
}

std::string Operator::name() const {
  const Schema& s = info().schema;
  return full_name(s.ns, s.name, s.overload);
}

std::ostream& operator<<(std::ostream& s, const Operator& op) { return s << op.name(); }

namespace {

// Stands in a table for what was looked for and is not there.
constinit const OpRecord no_record{};
constinit const Operator absent_operator(&no_record, Variant::Base);

const Operator* known_or_null(const Operator* op) { return op == &absent_operator ? nullptr : op; }

// Built-in variants of one record share its pointer; those made at run time know each other.
const Operator* find_variant(const OpRecord* record, Variant v) {
  for (const OperatorEntry& e : builtin_operators())
    if (e.op->record == record && e.op->variant == v) return e.op;
  return nullptr;
}

}  // namespace

const Operator* Operator::variant_of(Variant v) const {
  if (v == variant) return this;
  std::atomic<const Operator*>& known = variants_[static_cast<int>(v)];
  if (const Operator* op = known.load(std::memory_order_acquire)) return known_or_null(op);
  const Operator* found = find_variant(record, v);
  known.store(found ? found : &absent_operator, std::memory_order_release);
  return found;
}

const Operator* Operator::partner(Partner p) const {
  std::atomic<const Operator*>& known = partners_[static_cast<int>(p)];
  if (const Operator* op = known.load(std::memory_order_acquire)) return known_or_null(op);
  const std::string_view text = p == Partner::Copy ? record->copy_form : record->view_form;
  if (text.empty() || variant != Variant::Base) {
    known.store(&absent_operator, std::memory_order_release);
    return nullptr;
  }
  const size_t dot = text.find('.');
  const std::string_view overload = dot == text.npos ? "" : text.substr(dot + 1);
  const Operator* found = find_operator(info().schema.ns, text.substr(0, dot), overload);
  check(found && found->info().args <= info().args, name(), ": its record names ", text,
        ", which is no operator that takes its arguments");
  known.store(found, std::memory_order_release);
  return found;
}

const Operator* pure_form(const Operator& op) {
  if (!op.info().mutated) return nullptr;
  const Operator* base = op.variant_of(Variant::Base);
  if (base && !base->info().mutated) return base;
  return op.variant_of(Variant::Functional);
}

// --- look-up

namespace {

std::span<const OperatorEntry> builtin_range(std::string_view name) {
  const auto all = builtin_operators();
  const auto [first, last] = std::ranges::equal_range(all, name, {}, &OperatorEntry::name);
  return {first, last};
}

// Python tries overloads in this order: those that take tensors before those that take numbers, one
// integer before a list (which takes loose integers too), and the plain one first.
int preference(const Operator* op) {
  const Schema& s = op->info().schema;
  int score = s.overload.empty() ? 0 : 1;
  for (const Argument& a : s.args) {
    if (a.keyword_only) continue;
    if (a.type.kind == TypeKind::Scalar) score += 8;
    if (a.type.list && a.type.kind == TypeKind::Int) score += 2;
    if (a.type.kind == TypeKind::Dimname) score += 64;
    if (a.type.kind == TypeKind::Any) score += 128;
  }
  return score;
}

}  // namespace

Operator* find_operator(std::string_view ns, std::string_view name, std::string_view overload) {
  if (overload == "default") overload = "";
  if (ns == "aten")
    for (const OperatorEntry& e : builtin_range(name))
      if (e.overload == overload) return e.op;
  std::lock_guard hold(runtime().lock);
  const auto it = runtime().by_name.find(full_name(ns, name, overload));
  return it == runtime().by_name.end() ? nullptr : it->second;
}

std::vector<Operator*> find_overloads(std::string_view ns, std::string_view name) {
  std::vector<Operator*> found;
  if (ns == "aten")
    for (const OperatorEntry& e : builtin_range(name)) found.push_back(e.op);
  {
    // Overloads of one name stand side by side: no character of a name sorts before the dot.
    std::lock_guard hold(runtime().lock);
    const std::string first = full_name(ns, name, "");
    for (auto it = runtime().by_name.lower_bound(first); it != runtime().by_name.end(); ++it) {
      const std::string_view full = it->first;
      if (!full.starts_with(first) || (full.size() > first.size() && full[first.size()] != '.'))
        break;
      found.push_back(it->second);
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](Operator* a, Operator* b) { return preference(a) < preference(b); });
  return found;
}

std::vector<std::string> runtime_operator_names(std::string_view ns) {
  std::vector<std::string> names;
  std::lock_guard hold(runtime().lock);
  for (const auto& [full, op] : runtime().by_name)
    if (op->info().schema.ns == ns) names.push_back(op->info().schema.name);
  return names;
}

namespace {

// As much of a record as its maker knew of; what it did not know of is as in a new one.
OpRecord* copy_of(const OpRecord* like) {
  auto record = std::make_unique<OpRecord>();
  if (like) {
    static_assert(std::is_trivially_copyable_v<OpRecord>);
    check(like->size >= offsetof(OpRecord, doc) && like->version == record->version,
          "define(): expected a record of version ", record->version, "; got one of version ",
          like->version, " with ", like->size, " bytes");
    std::memcpy(static_cast<void*>(record.get()), like,
                std::min<size_t>(like->size, sizeof(OpRecord)));
    record->size = sizeof(OpRecord);
  }
  return record.release();
}

// The operators of a record made at run time, which know each other.
std::vector<Operator*> made_variants(const OpRecord* record) {
  std::vector<Operator*> made = {new Operator(record, Variant::Base)};
  if (record->forms & inplace) made.push_back(new Operator(record, Variant::Inplace));
  if (record->forms & out) made.push_back(new Operator(record, Variant::Out));
  if (record->forms & functional) made.push_back(new Operator(record, Variant::Functional));
  for (const Operator* a : made) {
    for (int v = 0; v < 4; ++v) a->variants_[v] = &absent_operator;
    for (const Operator* b : made) a->variants_[static_cast<int>(b->variant)] = b;
    a->info();  // raises where the schema cannot have this variant
  }
  return made;
}

// Puts operators into the table; returns the first.
Operator& publish(const std::vector<Operator*>& made) {
  std::vector<std::string> names;
  for (const Operator* op : made) names.push_back(op->name());
  std::lock_guard hold(runtime().lock);
  for (const std::string& name : names)
    check(!runtime().by_name.contains(name), "define(): the operator ", name,
          " is defined already");
  for (size_t i = 0; i < made.size(); ++i) runtime().by_name[names[i]] = made[i];
  return *made[0];
}

}  // namespace

Operator& define_operator(std::string_view text, const OpRecord* like) {
  const Schema s = parse_schema(text);
  check(!s.ns.empty(),
        "define(): expected a schema with a namespace, as in 'my::op(Tensor x) -> Tensor'; got '",
        text, "'");
  const std::string full = full_name(s.ns, s.name, s.overload);
  check(!find_operator(s.ns, s.name, s.overload), "define(): the operator ", full,
        " is defined already");
  OpRecord* record = copy_of(like);
  record->schema = (new std::string(text))->c_str();
  record->flags |= runs_when_called;  // what it raises is not known
  return publish(made_variants(record));
}

void undefine_operator(Operator& op) {
  std::lock_guard hold(runtime().lock);
  for (Variant v : {Variant::Base, Variant::Inplace, Variant::Out, Variant::Functional}) {
    const Operator* variant = op.variant_of(v);
    if (variant) runtime().by_name.erase(variant->name());
  }
}

}  // namespace facula
