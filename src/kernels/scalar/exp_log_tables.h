// Tables of sixteen entries for exp, log, log2 and log10.
#pragma once
#include "kernels/scalar/table.h"

namespace facula::scalar::math {
inline namespace FACULA_ISA {
namespace detail {

// 2^(j / 16), and what its rounding left as a part of it.
template <class L>
struct ExpTable;
template <>
struct ExpTable<float> {
  alignas(64) static constexpr float power[] = {
      0x1p+0f,        0x1.0b5586p+0f, 0x1.172b84p+0f, 0x1.2387a6p+0f,
      0x1.306fep+0f,  0x1.3dea64p+0f, 0x1.4bfdaep+0f, 0x1.5ab07ep+0f,
      0x1.6a09e6p+0f, 0x1.7a1148p+0f, 0x1.8ace54p+0f, 0x1.9c4918p+0f,
      0x1.ae89fap+0f, 0x1.c199bep+0f, 0x1.d5818ep+0f, 0x1.ea4afap+0f};
  alignas(64) static constexpr float rest[] = {0,
                                               0x1.8d96d4p-25f,
                                               -0x1.9c0c22p-27f,
                                               0x1.964904p-25f,
                                               0x1.125002p-25f,
                                               0x1.370be4p-25f,
                                               -0x1.0a355p-25f,
                                               -0x1.00d8acp-27f,
                                               0x1.26055cp-26f,
                                               -0x1.05cb44p-25f,
                                               0x1.67a1cap-28f,
                                               0x1.a3b5e4p-28f,
                                               -0x1.f9c304p-27f,
                                               -0x1.6961b4p-28f,
                                               -0x1.a5217cp-28f,
                                               0x1.61428ep-28f};
};
template <>
struct ExpTable<double> {
  alignas(64) static constexpr double power[] = {0x1p+0,
                                                 0x1.0b5586cf9890fp+0,
                                                 0x1.172b83c7d517bp+0,
                                                 0x1.2387a6e756238p+0,
                                                 0x1.306fe0a31b715p+0,
                                                 0x1.3dea64c123422p+0,
                                                 0x1.4bfdad5362a27p+0,
                                                 0x1.5ab07dd485429p+0,
                                                 0x1.6a09e667f3bcdp+0,
                                                 0x1.7a11473eb0187p+0,
                                                 0x1.8ace5422aa0dbp+0,
                                                 0x1.9c49182a3f09p+0,
                                                 0x1.ae89f995ad3adp+0,
                                                 0x1.c199bdd85529cp+0,
                                                 0x1.d5818dcfba487p+0,
                                                 0x1.ea4afa2a490dap+0};
  alignas(64) static constexpr double rest[] = {0,
                                                0x1.79aa65d837b6dp-54,
                                                -0x1.01b15eaa59348p-55,
                                                0x1.68efde3a8a894p-54,
                                                0x1.34d754db0abb6p-55,
                                                0x1.59f48a72a4c6dp-55,
                                                0x1.690cebb7aafbp-56,
                                                0x1.063e1e21c5409p-54,
                                                -0x1.3b3efbf5e2228p-54,
                                                -0x1.b32dcb94da51dp-56,
                                                0x1.db72fc1f0eab4p-55,
                                                0x1.1affc2b91ce27p-56,
                                                0x1.c1a7792cb3387p-55,
                                                0x1.36eae30af0cb3p-56,
                                                0x1.4a385a63d07a7p-56,
                                                -0x1.ff7128fd391fp-55};
};

// Where the leading bits of a significand m in [3/4, 3/2) say j: a number c of five bits with
// -0.038 < m c - 1 <= 1/16, so that m c - 1 is exact, and 1 for the two ranges next to 1.
template <class L>
struct InverseTable {
  alignas(64) static constexpr L at[] = {L(32) / 32, L(29) / 32, L(28) / 32, L(26) / 32,
                                         L(25) / 32, L(24) / 32, L(23) / 32, L(22) / 32,
                                         L(42) / 32, L(40) / 32, L(39) / 32, L(37) / 32,
                                         L(36) / 32, L(35) / 32, L(34) / 32, L(32) / 32};
};

// -log(c) for the same ranges, and log 2, in two parts; 1 / log(base), too. The first parts have so
// few bits that sums of one with multiples of the other are exact.
template <class L>
struct NaturalLogTable;
template <>
struct NaturalLogTable<float> {
  alignas(64) static constexpr float high[] = {0,
                                               0x1.933p-4f,
                                               0x1.1178p-3f,
                                               0x1.a94p-3f,
                                               0x1.f99p-3f,
                                               0x1.2698p-2f,
                                               0x1.522cp-2f,
                                               0x1.7fbp-2f,
                                               -0x1.1674p-2f,
                                               -0x1.c9p-3f,
                                               -0x1.9528p-3f,
                                               -0x1.2958p-3f,
                                               -0x1.e27p-4f,
                                               -0x1.6f1p-4f,
                                               -0x1.f0ap-5f,
                                               0};
  alignas(64) static constexpr float rest[] = {0,
                                               0x1.797566p-18f,
                                               0x1.d044fcp-20f,
                                               -0x1.2c3752p-19f,
                                               0x1.c6cb3cp-19f,
                                               -0x1.deecb2p-18f,
                                               -0x1.1f8c76p-18f,
                                               -0x1.7109fap-20f,
                                               -0x1.cababap-18f,
                                               0x1.070cacp-20f,
                                               0x1.2b185ep-18f,
                                               0x1.683fp-18f,
                                               -0x1.db8abcp-22f,
                                               0x1.6ba8d4p-19f,
                                               -0x1.86008cp-20f,
                                               0};
  static constexpr float step = 0x1.62e4p-1f, step_rest = 0x1.7f7d1cp-20f;
  static constexpr float factor = 0x1p+0f, factor_rest = 0;
};
template <>
struct NaturalLogTable<double> {
  alignas(64) static constexpr double high[] = {0,
                                                0x1.9335e5d594p-4,
                                                0x1.1178e8227ep-3,
                                                0x1.a93ed3c8aep-3,
                                                0x1.f991c6cb3cp-3,
                                                0x1.269621134ep-2,
                                                0x1.522ae0738ap-2,
                                                0x1.7fafa3bd81p-2,
                                                -0x1.1675cababap-2,
                                                -0x1.c8ff7c79aap-3,
                                                -0x1.9525a9cf46p-3,
                                                -0x1.29552f82p-3,
                                                -0x1.e27076e2bp-4,
                                                -0x1.6f0d28ae58p-4,
                                                -0x1.f0a30c0118p-5,
                                                0};
  alignas(64) static constexpr double rest[] = {0,
                                                0x1.3115c3abd47dap-45,
                                                0x1.1ef78ce2d07f2p-45,
                                                -0x1.8724350562169p-45,
                                                -0x1.90d04cd7cc834p-44,
                                                -0x1.1b61f10522625p-44,
                                                0x1.ebe708164c759p-45,
                                                0x1.46fb79bf6d4cbp-44,
                                                -0x1.8380e731f55c4p-44,
                                                0x1.7794f689f8434p-45,
                                                0x1.297137d9f158fp-44,
                                                0x1.5b967f4471dfcp-44,
                                                0x1.a342c2af0003cp-45,
                                                0x1.4b4641b664613p-44,
                                                0x1.d599e83368e91p-45,
                                                0};
  static constexpr double step = 0x1.62e42fefa38p-1, step_rest = 0x1.ef35793c7673p-45;
  static constexpr double factor = 0x1p+0, factor_rest = 0;
};
template <class L>
struct BinaryLogTable;
template <>
struct BinaryLogTable<float> {
  alignas(64) static constexpr float high[] = {0,
                                               0x1.22ep-3f,
                                               0x1.8a9p-3f,
                                               0x1.32cp-2f,
                                               0x1.6cbp-2f,
                                               0x1.a9p-2f,
                                               0x1.e7ep-2f,
                                               0x1.14c4p-1f,
                                               -0x1.91b8p-2f,
                                               -0x1.49a8p-2f,
                                               -0x1.244p-2f,
                                               -0x1.acfp-3f,
                                               -0x1.5cp-3f,
                                               -0x1.08cp-3f,
                                               -0x1.664p-4f,
                                               0};
  alignas(64) static constexpr float rest[] = {0,
                                               -0x1.48f554p-17f,
                                               -0x1.9fd502p-17f,
                                               -0x1.1c8f12p-22f,
                                               0x1.ed0cbap-19f,
                                               -0x1.a39fbep-20f,
                                               -0x1.40358ep-19f,
                                               0x1.60fe68p-17f,
                                               -0x1.d448f8p-17f,
                                               0x1.ed0cbap-20f,
                                               -0x1.eac382p-20f,
                                               -0x1.78b6d4p-17f,
                                               -0x1.a39fbep-19f,
                                               -0x1.62336ap-17f,
                                               0x1.20a6dep-21f,
                                               0};
  static constexpr float step = 0x1p+0f, step_rest = 0;
  static constexpr float factor = 0x1.715476p+0f, factor_rest = 0x1.4ae0cp-26f;
};
template <>
struct BinaryLogTable<double> {
  alignas(64) static constexpr double high[] = {0,
                                                0x1.22dadc2ab4p-3,
                                                0x1.8a8980abfcp-3,
                                                0x1.32bfee370fp-2,
                                                0x1.6cb0f6865dp-2,
                                                0x1.a8ff971811p-2,
                                                0x1.e7df5fe539p-2,
                                                0x1.14c560fe688p-1,
                                                -0x1.91bba891f1p-2,
                                                -0x1.49a784bcd2p-2,
                                                -0x1.24407ab0ep-2,
                                                -0x1.acf5e2db4ep-3,
                                                -0x1.5c01a39fbep-3,
                                                -0x1.08c588cda8p-3,
                                                -0x1.663f6fac9p-4,
                                                0};
  alignas(64) static constexpr double rest[] = {0,
                                                -0x1.6d25a5b8a19b2p-44,
                                                -0x1.66cccab240e9p-46,
                                                -0x1.979a5db68721dp-46,
                                                -0x1.c57f2495fb7fap-44,
                                                -0x1.6879fa00b120ap-44,
                                                -0x1.532c412ba94dbp-44,
                                                0x1.7c407050799bfp-44,
                                                -0x1.c22d2cad415aep-44,
                                                0x1.1d406db502403p-44,
                                                -0x1.ce60916e52e91p-44,
                                                -0x1.927dfc23d978p-44,
                                                0x1.2f0c0bfe9dbecp-44,
                                                0x1.871a7610e40bdp-45,
                                                -0x1.3167ccc538261p-44,
                                                0};
  static constexpr double step = 0x1p+0, step_rest = 0;
  static constexpr double factor = 0x1.71547652b82fep+0, factor_rest = 0x1.777d0ffda0d24p-56;
};
template <class L>
struct DecimalLogTable;
template <>
struct DecimalLogTable<float> {
  alignas(64) static constexpr float high[] = {0,
                                               0x1.5e4p-5f,
                                               0x1.dbp-5f,
                                               0x1.716p-4f,
                                               0x1.b72p-4f,
                                               0x1.ffcp-4f,
                                               0x1.25cp-3f,
                                               0x1.4d4p-3f,
                                               -0x1.e3cp-4f,
                                               -0x1.8dp-4f,
                                               -0x1.5fep-4f,
                                               -0x1.024p-4f,
                                               -0x1.a3p-5f,
                                               -0x1.3ecp-5f,
                                               -0x1.af8p-6f,
                                               0};
  alignas(64) static constexpr float rest[] = {0,
                                               -0x1.a65206p-19f,
                                               0x1.1ed766p-17f,
                                               -0x1.798e4cp-19f,
                                               0x1.cd1716p-20f,
                                               -0x1.ea21c4p-23f,
                                               -0x1.5f7a94p-17f,
                                               0x1.fc13aep-18f,
                                               0x1.f2a79p-19f,
                                               0x1.cf8ef4p-17f,
                                               -0x1.009116p-17f,
                                               -0x1.460f84p-19f,
                                               -0x1.53ac14p-18f,
                                               -0x1.1199a6p-17f,
                                               0x1.036a8p-17f,
                                               0};
  static constexpr float step = 0x1.344p-2f, step_rest = 0x1.3509f8p-18f;
  static constexpr float factor = 0x1.bcb7b2p-2f, factor_rest = -0x1.5b235ep-27f;
};
template <>
struct DecimalLogTable<double> {
  alignas(64) static constexpr double high[] = {0,
                                                0x1.5e3966b7e8p-5,
                                                0x1.db11ed7668p-5,
                                                0x1.715d0ce368p-4,
                                                0x1.b721cd1714p-4,
                                                0x1.ffbfc2bbc8p-4,
                                                0x1.25ba8215bp-3,
                                                0x1.4d43f8275ap-3,
                                                -0x1.e3bc1ab0ep-4,
                                                -0x1.8cf1838864p-4,
                                                -0x1.5fe80488bp-4,
                                                -0x1.02428c1f08p-4,
                                                -0x1.a30a9d60ap-5,
                                                -0x1.3ed1199a6p-5,
                                                -0x1.af5f92b01p-6,
                                                0};
  alignas(64) static constexpr double rest[] = {0,
                                                0x1.2951bb9cd2fb7p-45,
                                                0x1.5fa196e1e0ddap-44,
                                                -0x1.41149840eaa65p-46,
                                                0x1.7e295f660b9dap-44,
                                                -0x1.ff229f20ed3d2p-46,
                                                -0x1.007bf2d8bf07ap-44,
                                                0x1.20ca9a2bcc728p-45,
                                                -0x1.9fe3d562a53fp-44,
                                                -0x1.019365163f2fcp-45,
                                                0x1.606adb567e739p-45,
                                                -0x1.5ea6bc2bc8c2cp-52,
                                                0x1.0163d7e67d282p-45,
                                                0x1.bdafc8ad828b8p-45,
                                                0x1.9f05921f59258p-46,
                                                0};
  static constexpr double step = 0x1.34413509f8p-2, step_rest = -0x1.80433b83b532ap-44;
  static constexpr double factor = 0x1.bcb7b1526e50ep-2, factor_rest = 0x1.95355baaafad3p-57;
};

}  // namespace detail
}  // namespace FACULA_ISA
}  // namespace facula::scalar::math
