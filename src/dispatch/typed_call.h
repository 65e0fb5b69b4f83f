// What the generated typed functions need.
#pragma once
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "dispatch/call.h"
