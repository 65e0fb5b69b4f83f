// Rules of forward mode for families, which records name; implemented in
// autograd/forward_rules.cpp. Records without one get their tangents from the rest of the record:
// autograd/forward.h.
#pragma once

namespace facula {
class Forward;
}

namespace facula::forward {

// Linear in each of its first two Tensor arguments, and a function of nothing else that has a
// tangent: mul, mm.
void bilinear(Forward& f);

}  // namespace facula::forward
