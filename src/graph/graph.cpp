#include "graph/graph.h"

#include <set>

#include "dispatch/debug_print.h"

namespace facula::graph {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

template <class F>
void for_each_use(const Node& n, F&& f) {
  for (const Argument& a : n.args)
    std::visit(Overloaded{[](const Constant&) {}, [&](const ValueRef& r) { f(r.id); },
                          [&](const ValueRefs& list) {
                            for (ValueId id : list) f(id);
                          }},
               a);
}

template <class F>
void for_each_made(const Node& n, F&& f) {
  for (const Result& r : n.results)
    std::visit(Overloaded{[&](const ValueRef& one) { f(one.id); },
                          [&](const ValueRefs& list) {
                            for (ValueId id : list) f(id);
                          }},
               r);
}

// --- printing

std::string ref(ValueId id) { return id < 0 ? "None" : "%" + std::to_string(id); }

std::string refs(const ValueRefs& list) {
  std::string s = "[";
  for (size_t i = 0; i < list.size(); ++i) s += (i ? ", " : "") + ref(list[i]);
  return s + "]";
}

std::string text(const Argument& a) {
  return std::visit(Overloaded{[](const Constant& k) { return brief(k.value()); },
                               [](const ValueRef& r) { return ref(r.id); },
                               [](const ValueRefs& list) { return refs(list); }},
                    a);
}

std::string left_side(const Node& n) {
  std::string s;
  for (const Result& r : n.results) {
    if (!s.empty()) s += ", ";
    s += std::visit(Overloaded{[](const ValueRef& one) { return ref(one.id); },
                               [](const ValueRefs& list) { return refs(list); }},
                    r);
  }
  return s.empty() ? s : s + " = ";
}

// --- running

class Machine {
 public:
  explicit Machine(const Graph& g) : values_(static_cast<size_t>(g.next_id)) {
    for (const auto& [id, t] : g.constants) put(id, t);
  }
  void put(ValueId id, const Tensor& t) {
    if (id >= 0) values_[static_cast<size_t>(id)] = t;
  }
  Tensor get(ValueId id) const { return id < 0 ? Tensor() : values_[static_cast<size_t>(id)]; }

  void run(const Node& n) {
    Value args[32];
    std::vector<std::vector<Tensor>> lists;
    lists.reserve(n.args.size());
    for (size_t i = 0; i < n.args.size(); ++i) args[i] = value_of(n.args[i], lists);
    Results<8> results;
    call(*n.op, args, results.slots);
    for (size_t k = 0; k < n.results.size(); ++k) store(n.results[k], results.slots[k]);
  }

 private:
  Value value_of(const Argument& a, std::vector<std::vector<Tensor>>& lists) {
    return std::visit(Overloaded{[](const Constant& k) { return k.value(); },
                                 [&](const ValueRef& r) {
                                   return r.id < 0 ? Value()
                                                   : pack(values_[static_cast<size_t>(r.id)]);
                                 },
                                 [&](const ValueRefs& ids) {
                                   std::vector<Tensor>& list = lists.emplace_back();
                                   for (ValueId id : ids) list.push_back(get(id));
                                   return pack(std::span<const Tensor>(list));
                                 }},
                      a);
  }
  void store(const Result& r, Value& v) {
    if (const auto* one = std::get_if<ValueRef>(&r)) return put(one->id, take_tensor(v));
    const ValueRefs& ids = std::get<ValueRefs>(r);
    const std::vector<Tensor> list = take_tensors(v);
    check(list.size() == ids.size(), "graph: a node gave ", list.size(), " tensors where ",
          ids.size(), " were recorded");
    for (size_t i = 0; i < ids.size(); ++i) put(ids[i], list[i]);
  }
  std::vector<Tensor> values_;
};

bool has_effect(const Node& n) { return n.op->info().mutated || (n.op->record->flags & random); }

}  // namespace

std::string str(const Node& n) {
  const std::vector<facula::Argument>& names = n.op->info().schema.args;
  std::string s = left_side(n) + n.op->name() + "(";
  for (size_t i = 0; i < n.args.size(); ++i) {
    if (i) s += ", ";
    if (names[i].keyword_only) s += names[i].name + "=";
    s += text(n.args[i]);
  }
  return s + ")";
}

std::string Graph::str() const {
  std::string s = "graph(";
  for (size_t i = 0; i < inputs.size(); ++i) s += (i ? ", " : "") + ref(inputs[i]);
  s += "):\n";
  for (const auto& [id, t] : constants)
    s += concat("  ", ref(id), " = constant ", name(t.dtype()), facula::str(t.sizes()), "\n");
  for (const Node& n : nodes) s += "  " + graph::str(n) + "\n";
  return s + "  return " + refs(outputs) + "\n";
}

std::vector<Tensor> Graph::run(std::span<const Tensor> given) const {
  check(given.size() == inputs.size(), "Graph.run(): expected ", inputs.size(), " inputs; got ",
        given.size());
  Machine m(*this);
  for (size_t i = 0; i < given.size(); ++i) m.put(inputs[i], given[i]);
  for (const Node& n : nodes) m.run(n);
  std::vector<Tensor> out;
  for (ValueId id : outputs) out.push_back(m.get(id));
  return out;
}

void Graph::eliminate_dead_code() {
  std::set<ValueId> used(outputs.begin(), outputs.end());
  std::vector<Node> kept;
  for (size_t i = nodes.size(); i-- > 0;) {
    bool needed = has_effect(nodes[i]);
    for_each_made(nodes[i], [&](ValueId id) { needed |= used.contains(id); });
    if (!needed) continue;
    for_each_use(nodes[i], [&](ValueId id) { used.insert(id); });
    kept.push_back(std::move(nodes[i]));
  }
  nodes.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
  std::erase_if(constants, [&](const auto& c) { return !used.contains(c.first); });
}

void Graph::check_valid() const {
  std::set<ValueId> known(inputs.begin(), inputs.end());
  for (const auto& [id, t] : constants) known.insert(id);
  for (const Node& n : nodes) {
    for_each_use(n, [&](ValueId id) {
      check(id < 0 || known.contains(id), "graph: ", ref(id), " is used before it is made, in ",
            graph::str(n));
    });
    for_each_made(n, [&](ValueId id) {
      check(id < 0 || known.insert(id).second, "graph: ", ref(id), " is made twice, in ",
            graph::str(n));
    });
  }
  for (ValueId id : outputs)
    check(id < 0 || known.contains(id), "graph: the output ", ref(id), " is never made");
}

}  // namespace facula::graph
