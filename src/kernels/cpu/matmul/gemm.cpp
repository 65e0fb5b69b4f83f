#include "kernels/cpu/matmul/gemm.h"

#include "kernels/cpu/matmul/gemm_dispatch.h"

namespace facula::cpu::FACULA_ISA {
namespace {

// Signed integers wrap around as unsigned ones of their width.
template <class T>
struct Unsigned {
  using type = T;
};
template <class T>
  requires std::is_integral_v<T>
struct Unsigned<T> {
  using type = std::make_unsigned_t<T>;
};

template <class T>
auto as_unsigned(const GemmArgs<T>& g) {
  using U = typename Unsigned<T>::type;
  return GemmArgs<U>{g.m,
                     g.n,
                     g.k,
                     reinterpret_cast<const U*>(g.a),
                     g.a_rs,
                     g.a_cs,
                     reinterpret_cast<const U*>(g.b),
                     g.b_rs,
                     g.b_cs,
                     reinterpret_cast<U*>(g.c),
                     g.c_rs,
                     g.c_cs,
                     static_cast<accumulate_t<U>>(g.alpha),
                     static_cast<accumulate_t<U>>(g.beta),
                     g.activation,
                     reinterpret_cast<const U*>(g.row)};
}

}  // namespace

template <class T>
void gemm(const GemmArgs<T>& args) {
  gemm_dispatch(as_unsigned(args));
}

template <class T>
void gemm_batched(const GemmArgs<T>& args, int64_t batch, int64_t a_bs, int64_t b_bs,
                  int64_t c_bs) {
  gemm_dispatch_batched(as_unsigned(args), batch, a_bs, b_bs, c_bs);
}

template void gemm(const GemmArgs<float>&);
template void gemm(const GemmArgs<double>&);
template void gemm(const GemmArgs<Half>&);
template void gemm(const GemmArgs<BFloat16>&);
template void gemm(const GemmArgs<complex64>&);
template void gemm(const GemmArgs<complex128>&);
template void gemm(const GemmArgs<int8_t>&);
template void gemm(const GemmArgs<int16_t>&);
template void gemm(const GemmArgs<int32_t>&);
template void gemm(const GemmArgs<int64_t>&);
template void gemm(const GemmArgs<uint8_t>&);
template void gemm(const GemmArgs<uint16_t>&);
template void gemm(const GemmArgs<uint32_t>&);
template void gemm(const GemmArgs<uint64_t>&);

template void gemm_batched(const GemmArgs<float>&, int64_t, int64_t, int64_t, int64_t);
template void gemm_batched(const GemmArgs<double>&, int64_t, int64_t, int64_t, int64_t);
template void gemm_batched(const GemmArgs<Half>&, int64_t, int64_t, int64_t, int64_t);
template void gemm_batched(const GemmArgs<BFloat16>&, int64_t, int64_t, int64_t, int64_t);
template void gemm_batched(const GemmArgs<complex64>&, int64_t, int64_t, int64_t, int64_t);
template void gemm_batched(const GemmArgs<complex128>&, int64_t, int64_t, int64_t, int64_t);
template void gemm_batched(const GemmArgs<int8_t>&, int64_t, int64_t, int64_t, int64_t);
template void gemm_batched(const GemmArgs<int16_t>&, int64_t, int64_t, int64_t, int64_t);
template void gemm_batched(const GemmArgs<int32_t>&, int64_t, int64_t, int64_t, int64_t);
template void gemm_batched(const GemmArgs<int64_t>&, int64_t, int64_t, int64_t, int64_t);
template void gemm_batched(const GemmArgs<uint8_t>&, int64_t, int64_t, int64_t, int64_t);
template void gemm_batched(const GemmArgs<uint16_t>&, int64_t, int64_t, int64_t, int64_t);
template void gemm_batched(const GemmArgs<uint32_t>&, int64_t, int64_t, int64_t, int64_t);
template void gemm_batched(const GemmArgs<uint64_t>&, int64_t, int64_t, int64_t, int64_t);

}  // namespace facula::cpu::FACULA_ISA
