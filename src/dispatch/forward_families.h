// Forward-mode rules that several records share; implemented in autograd/forward_rules.cpp. For
// records without a rule, autograd/forward.h tells how tangents are computed.
#pragma once

namespace facula {
class Forward;
}

namespace facula::forward {

// Operators that are linear in each of their first two Tensor arguments, and have no other argument
// with a tangent: mul, mm.
void bilinear(Forward& f);

}  // namespace facula::forward
