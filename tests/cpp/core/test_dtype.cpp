// The dispatch from dtypes to C++ types: each dtype finds its own type, others raise.
#include "core/dtype.h"

#include <gtest/gtest.h>

#include <string>

#include "core/error.h"

namespace facula {
namespace {

// Whether elements of the dtype convert to others.
bool has_elements(DType d) { return info(d).kind > DTypeKind::Narrow && d != float4x2; }
template <class F>
void each_dtype(F f) {
  for (int i = 0; i < dtype_slots; ++i)
    if (const DType d{static_cast<int8_t>(i)}; has_elements(d)) f(d);
}

TEST(DType, DispatchFindsTheTypeOfEachDtype) {
  each_dtype([](DType d) {
    DType found = DType::Undefined;
    const auto find = [&]<class T>(Type<T>) { found = dtype_of<T>; };
    dispatch<FloatingTypes, IntegralTypes, bool, WideUnsignedTypes, ComplexTypes, SmallComplexTypes,
             Float8Types>(d, "test", find);
    EXPECT_EQ(found, d) << name(d);
    found = DType::Undefined;
    dispatch_elements(d, "test", find);
    EXPECT_EQ(found, d) << name(d);
  });
}

TEST(DType, DispatchRaisesForWhatIsNotListed) {
  each_dtype([](DType d) {
    bool called = false;
    const auto run = [&] {
      dispatch<FloatingTypes, int64_t>(d, "sort_cpu", [&](auto) { called = true; });
    };
    if (d == DType::Int64 || visit_floating(d, [](auto) {})) {
      run();
      EXPECT_TRUE(called) << name(d);
      return;
    }
    try {
      run();
      ADD_FAILURE() << name(d);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::NotImplemented);
      EXPECT_EQ(std::string(e.what()),
                concat("\"sort_cpu\" not implemented for '", info(d).legacy_name, "'"));
    }
    EXPECT_FALSE(called) << name(d);
  });
}

TEST(DType, SizesThatNoDtypeHasRaise) {
  EXPECT_THROW(visit_size(3, [](auto) {}), Error);
}

}  // namespace
}  // namespace facula
