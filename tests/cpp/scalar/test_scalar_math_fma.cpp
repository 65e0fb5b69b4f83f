// The tests of scalar functions once more, compiled as kernels for AVX2 are: with fma.
#define ScalarMath ScalarMathWithFma
#include "test_scalar_math.cpp"

namespace {
// Processors without it leave these tests out.
const bool filtered = [] {
  if (!__builtin_cpu_supports("fma")) ::testing::GTEST_FLAG(filter) += ":-ScalarMathWithFma*";
  return true;
}();
}  // namespace
