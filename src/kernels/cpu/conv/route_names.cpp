#include "core/environment.h"
#include "core/error.h"
#include "kernels/cpu/conv/route.h"

namespace facula::cpu {
namespace {

constexpr const char* route_names[route_count] = {"depthwise_planes", "depthwise", "winograd",
                                                  "im2col",           "channels",  "planes"};

std::optional<Route> read_forced_route() {
  const char* asked = environment_value("FACULA_CONV");
  if (asked == nullptr) return std::nullopt;
  for (int i = 0; i < route_count; ++i)
    if (std::string_view(asked) == route_names[i]) return static_cast<Route>(i);
  std::string known = route_names[0];
  for (int i = 1; i < route_count; ++i) known += std::string(", ") + route_names[i];
  throw_error(ErrorKind::Runtime, concat("FACULA_CONV: expected one of ", known, "; got ", asked));
}

}  // namespace

const char* name(Route route) { return route_names[static_cast<int>(route)]; }

const char* name(ConvPass pass) {
  switch (pass) {
    case ConvPass::Forward:
      return "forward";
    case ConvPass::InputGradient:
      return "input gradient";
    case ConvPass::WeightGradient:
      return "weight gradient";
  }
  return "";
}

std::optional<Route> forced_route() {
  static const std::optional<Route> forced = read_forced_route();
  return forced;
}

}  // namespace facula::cpu
