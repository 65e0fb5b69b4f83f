#include "kernels/cpu/simd/amx.h"

#include <cmath>
#include <memory>
#include <string_view>

#include "core/environment.h"
#include "core/error.h"

#if defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace facula::cpu {
namespace {

#if defined(__linux__) && defined(__x86_64__)
// The system grants the registers of tiles to a process that asks for them.
bool ask_for_tiles() {
  constexpr long request_permission = 0x1023, tile_data = 18;
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

TileWays hardware_ways() {
  TileWays ways;
  if (!__builtin_cpu_supports("amx-tile")) return ways;
  const bool pairs = __builtin_cpu_supports("amx-bf16") && __builtin_cpu_supports("avx512bf16");
  const bool bytes = __builtin_cpu_supports("amx-int8");
  if ((!pairs && !bytes) || !ask_for_tiles()) return ways;
  if (pairs) ways.bfloat16 = TileWay::hardware;
  if (bytes) ways.bytes = TileWay::hardware;
  return ways;
}
#else
TileWays hardware_ways() { return {}; }
#endif

TileWays find_ways() {
  const char* text = environment_value("FACULA_AMX");
  const std::string_view wish = text ? text : "1";
  check_value(wish == "1" || wish == "0" || wish == "emulated",
              "FACULA_AMX: expected 1, 0 or emulated; got ", wish);
  if (wish == "emulated") {
    // Rows around the tiles are narrowed by an instruction.
    const bool narrows = __builtin_cpu_supports("avx512bf16");
    return {narrows ? TileWay::emulated : TileWay::none, TileWay::emulated};
  }
  return wish == "0" ? TileWays{} : hardware_ways();
}

// The products take subnormal numbers for zeros, and give zeros for them.
float without_subnormals(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

float widened(uint16_t bits) {
  return without_subnormals(__builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16));
}

// a b + c: the product of two bfloat16 has 16 bits, so that only the sum is rounded.
float add_product(uint16_t a, uint16_t b, float c) {
  return without_subnormals(std::fma(widened(a), widened(b), c));
}

template <class T>
T element(const EmulatedRegisters& r, int tile, int64_t row, int64_t index) {
  T value;
  std::memcpy(&value, &r.bytes[tile][row][index * static_cast<int64_t>(sizeof(T))], sizeof(T));
  return value;
}
template <class T>
void set_element(EmulatedRegisters& r, int tile, int64_t row, int64_t index, T value) {
  std::memcpy(&r.bytes[tile][row][index * static_cast<int64_t>(sizeof(T))], &value, sizeof(T));
}

// The processor refuses products of tiles that do not fit each other.
void check_shapes(const TileShapes& s, int sums, int a, int b) {
  check(s.row_bytes[a] == 4 * s.rows[b] && s.rows[a] == s.rows[sums] &&
            s.row_bytes[b] == s.row_bytes[sums],
        "tiles: expected A of as many rows as the sums and as many groups as B has rows; got ",
        int{s.rows[a]}, " rows of ", s.row_bytes[a], " bytes and ", int{s.rows[b]}, " of ",
        s.row_bytes[b], " for ", int{s.rows[sums]}, " of ", s.row_bytes[sums]);
}

}  // namespace

TileWays tile_ways() {
  static const TileWays ways = find_ways();
  return ways;
}

EmulatedRegisters& emulated_registers() {
  // Apart, since a library has little room for what each thread holds itself.
  static thread_local const auto registers = std::make_unique<EmulatedRegisters>();
  return *registers;
}

void EmulatedTiles::configure(const TileShapes& shapes) {
  emulated_registers() = {};
  emulated_registers().shapes = shapes;
}

void EmulatedTiles::release() { emulated_registers() = {}; }

void EmulatedTiles::load_rows(int tile, const char* from, int64_t stride) {
  EmulatedRegisters& r = emulated_registers();
  std::memset(r.bytes[tile], 0, sizeof r.bytes[tile]);
  for (int64_t i = 0; i < r.shapes.rows[tile]; ++i)
    std::memcpy(r.bytes[tile][i], from + i * stride, r.shapes.row_bytes[tile]);
}

void EmulatedTiles::store_rows(int tile, char* to, int64_t stride) {
  const EmulatedRegisters& r = emulated_registers();
  for (int64_t i = 0; i < r.shapes.rows[tile]; ++i)
    std::memcpy(to + i * stride, r.bytes[tile][i], r.shapes.row_bytes[tile]);
}

void emulated_multiply_bfloat16(int sums, int a, int b) {
  EmulatedRegisters& r = emulated_registers();
  const TileShapes& s = r.shapes;
  check_shapes(s, sums, a, b);
  for (int64_t row = 0; row < s.rows[sums]; ++row)
    for (int64_t column = 0; column < s.row_bytes[sums] / 4; ++column) {
      float even = 0, odd = 0;
      for (int64_t k = 0; k < s.rows[b]; ++k) {
        even = add_product(element<uint16_t>(r, a, row, 2 * k),
                           element<uint16_t>(r, b, k, 2 * column), even);
        odd = add_product(element<uint16_t>(r, a, row, 2 * k + 1),
                          element<uint16_t>(r, b, k, 2 * column + 1), odd);
      }
      const float both = without_subnormals(even + odd);
      const float before = without_subnormals(element<float>(r, sums, row, column));
      set_element(r, sums, row, column, without_subnormals(before + both));
    }
}

void emulated_multiply_bytes(int sums, int a, int b) {
  EmulatedRegisters& r = emulated_registers();
  const TileShapes& s = r.shapes;
  check_shapes(s, sums, a, b);
  for (int64_t row = 0; row < s.rows[sums]; ++row)
    for (int64_t column = 0; column < s.row_bytes[sums] / 4; ++column) {
      uint32_t sum = element<uint32_t>(r, sums, row, column);  // wraps around
      for (int64_t k = 0; k < s.row_bytes[a]; ++k) {
        const int product =
            element<uint8_t>(r, a, row, k) * element<int8_t>(r, b, k / 4, 4 * column + k % 4);
        sum += static_cast<uint32_t>(product);
      }
      set_element(r, sums, row, column, sum);
    }
}

}  // namespace facula::cpu
