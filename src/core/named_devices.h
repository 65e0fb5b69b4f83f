// Kinds of devices that have a name everywhere, though this process need not have one: a program
// compares x.device with device("mps") on any machine.
#pragma once
#include <string_view>

#include "core/device.h"

namespace facula {

// As parse_device, and also the names of kinds that no library has registered. Such a device can
// be compared and printed; check_present() refuses it where something is to be done on it.
Device parse_named_device(std::string_view text);
// RuntimeError for a device that only has a name.
void check_present(Device d);

}  // namespace facula
