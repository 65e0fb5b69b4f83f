#include "kernels/cpu/matmul/coarse_gelu.h"

#include "kernels/cpu/elementwise/pointwise_loops.h"
#include "kernels/scalar/gelu_coarse.h"

namespace facula::cpu::FACULA_ISA {

[[gnu::flatten]] void coarse_gelu(char* const* data, const int64_t*, int64_t n, const void*) {
  by_packs<4>(reinterpret_cast<float*>(data[0]), reinterpret_cast<const float*>(data[1]), n,
              [](auto x) { return scalar::gelu_erf_coarse::call(x); });
}

}  // namespace facula::cpu::FACULA_ISA
