// Work on a device that has failed without the device's knowledge, such as a collective that was
// given up: its results are not what whoever waits for the device takes them for.
#pragma once
#include <string>

#include "core/device.h"

namespace facula {

// The next call that waits for this device, or for a stream or event of it, raises this.
void note_late_error(Device d, std::string text);
// Somebody was told in another way.
void forget_late_error(Device d);
// AcceleratorError if there is such an error, which is then forgotten.
void raise_late_error(Device d);

}  // namespace facula
