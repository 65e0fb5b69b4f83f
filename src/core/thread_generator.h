// The default CPU generator of one thread.
#pragma once

namespace facula {

class Generator;

// Makes `own` what default_generator() gives on this thread, until it is called with null; `own`
// must live until then. For ranks that are threads, which draw like processes, each on its own.
void set_thread_generator(Generator* own);

}  // namespace facula
