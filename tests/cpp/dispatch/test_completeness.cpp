// What every operator record must have, checked on the table itself.
#include <gtest/gtest.h>

#include <set>

#include "dispatch/operator.h"

namespace facula {
namespace {

// Calls f for each record once.
template <class F>
void each_record(F f) {
  for (const OperatorEntry& e : builtin_operators())
    if (e.op->variant == Variant::Base) f(*e.op->record, e);
}
std::string full_name(const OperatorEntry& e) {
  std::string s(e.name);
  if (!e.overload.empty()) s += "." + std::string(e.overload);
  return s;
}
bool has_reason(const OpRecord& r) { return r.hole && *r.hole; }

TEST(Completeness, EveryRecordHasADoc) {
  each_record([](const OpRecord& r, const OperatorEntry& e) {
    EXPECT_TRUE(r.doc && *r.doc) << full_name(e);
  });
}

TEST(Completeness, EveryRecordCanRunOrSaysWhyNot) {
  each_record([](const OpRecord& r, const OperatorEntry& e) {
    EXPECT_TRUE(r.cpu || r.any || has_reason(r)) << full_name(e);
  });
}

TEST(Completeness, CompositesHaveTheirFunction) {
  each_record([](const OpRecord& r, const OperatorEntry& e) {
    EXPECT_TRUE(r.composite == Composite::No || r.any) << full_name(e);
  });
}

TEST(Completeness, DerivativesNameArgumentsOfTheSchema) {
  each_record([](const OpRecord& r, const OperatorEntry& e) {
    const Schema& s = e.op->info().schema;
    for (const Derivative& d : r.derivatives)
      for (std::string_view input : d.inputs.list)
        EXPECT_TRUE(input.empty() || s.index_of(input) >= 0) << full_name(e) << ": " << input;
  });
}

TEST(Completeness, NumbersNameTensorArguments) {
  each_record([](const OpRecord& r, const OperatorEntry& e) {
    const Schema& s = e.op->info().schema;
    for (std::string_view n : r.numbers.list) {
      if (n.empty()) continue;
      const int i = s.index_of(n);
      ASSERT_GE(i, 0) << full_name(e) << ": " << n;
      EXPECT_EQ(s.args[static_cast<size_t>(i)].type.kind, TypeKind::Tensor) << full_name(e);
    }
  });
}

TEST(Completeness, EveryEntryHasAUniqueName) {
  std::set<std::string> seen;
  for (const OperatorEntry& e : builtin_operators())
    EXPECT_TRUE(seen.insert(full_name(e)).second) << full_name(e);
}

}  // namespace
}  // namespace facula
