#include "kernels/cpu/simd/block_sizes.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string>

#include "core/environment.h"
#include "core/error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace facula::cpu {
namespace {

constexpr int64_t kilo = 1 << 10, mega = 1 << 20;

// Two tiles.
constexpr int64_t few_rows = 28;
// Covers the latency of main memory; rows that do not begin at a cache line gain most.
constexpr int64_t asked_ahead = 8 * kilo;
// Zen 3 and 4: the processor's own prefetching is as early, and requests cost sums an eighth to a
// quarter of their time.
constexpr Processor prefetches_alone{"AuthenticAMD", 25};
// Server cores with 2 MiB of second cache: 64 and 128 rows take 5 to 13 % less time without
// packing.
constexpr Processor reads_far_rows{"GenuineIntel", 6};

struct Measured {
  Processor processor;
  BlockSizes sizes;
};
// One row for each family on which other sizes were tried: those that were fastest there.
constexpr Measured measured[] = {
    // Zen 5, 48 KiB, 1 MiB and 32 MiB: EPYC, 2 cores.
    {{"AuthenticAMD", 26},
     {168, 2048, 128 * kilo, few_rows, 512 * kilo, 8 * mega, 1536 * kilo, 14, asked_ahead}},
};

// Parts of the second cache, and of the third for what threads share, as they turned out on Zen 5
// and, for what is read in place, on Intel.
BlockSizes model(const CacheSizes& caches) {
  const int64_t second = std::clamp(caches.second, 128 * kilo, 8 * mega);
  const int64_t shared = std::clamp(caches.third / 4, second, 8 * mega);
  return {second * 3 / 16 / kilo,
          2 * second / kilo,
          second / 2,
          few_rows,
          second / 2,
          shared,
          second * 3 / 2,
          9,
          asked_ahead};
}

bool same(const Processor& a, const Processor& b) {
  return a.maker == b.maker && a.family == b.family;
}

Processor this_processor() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  static char maker[13] = {};
  if (__get_cpuid(0, &a, &b, &c, &d) == 0) return {};
  std::memcpy(maker, &b, 4);
  std::memcpy(maker + 4, &d, 4);
  std::memcpy(maker + 8, &c, 4);
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return {};
  const unsigned family = a >> 8 & 0xf, more = a >> 20 & 0xff;
  return {maker, static_cast<int>(family == 0xf ? family + more : family)};
#else
  return {};
#endif
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "48K" in bytes; 0 where the text is not of that form.
int64_t bytes_of(const std::string& text) {
  int64_t size = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, size);
  if (error != std::errc() || size <= 0 || size > mega) return 0;
  return std::string_view(rest, end) == "K" ? size * kilo : 0;
}

CacheSizes caches_of_the_system() {
  CacheSizes caches;
  for (int i = 0; i < 5; ++i) {
    const std::string cache = concat("/sys/devices/system/cpu/cpu0/cache/index", i, "/");
    if (first_line(cache + "type") == "Instruction") continue;
    const std::string level = first_line(cache + "level");
    const int64_t size = bytes_of(first_line(cache + "size"));
    if (size == 0) continue;
    if (level == "1") caches.first = size;
    if (level == "2") caches.second = size;
    if (level == "3") caches.third = size;
  }
  return caches;
}

// "48K,1024K,32768K"
CacheSizes parse_caches(std::string_view text) {
  CacheSizes caches;
  for (int64_t* size : {&caches.first, &caches.second, &caches.third}) {
    const auto comma = std::min(text.find(','), text.size());
    *size = bytes_of(std::string(text.substr(0, comma)));
    check(*size > 0,
          "FACULA_CACHES: expected the sizes of three caches such as 48K,1024K,32768K; got ",
          environment_value("FACULA_CACHES"));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return caches;
}

BlockSizes find_sizes() {
  if (const char* asked = environment_value("FACULA_CACHES")) return model(parse_caches(asked));
  return block_sizes_of(this_processor(), caches_of_the_system());
}

}  // namespace

BlockSizes block_sizes_of(const Processor& processor, const CacheSizes& caches) {
  for (const Measured& known : measured)
    if (same(known.processor, processor)) return known.sizes;
  BlockSizes sizes = model(caches);
  if (same(processor, prefetches_alone)) sizes.prefetch_distance = 0;
  if (same(processor, reads_far_rows)) sizes.unpacked_rows = 128;
  return sizes;
}

const BlockSizes& block_sizes() {
  static const BlockSizes sizes = find_sizes();
  return sizes;
}

}  // namespace facula::cpu
