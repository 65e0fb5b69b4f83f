// Forward mode of normalizations.
#pragma once

namespace facula {
class Forward;
void layer_norm_tangent(Forward& f);
void rms_norm_tangent(Forward& f);
void group_norm_tangent(Forward& f);
void batch_norm_tangent(Forward& f);
}  // namespace facula
