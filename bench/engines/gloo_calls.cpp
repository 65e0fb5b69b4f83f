// Times of Gloo's own collectives, with nothing of facula: gloo_calls RANK SIZE FOLDER.
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "timed_calls.h"

int main(int, char** argv) {
  const int rank = std::stoi(argv[1]), size = std::stoi(argv[2]);
  const std::string folder = argv[3];
  gloo::transport::tcp::attr place;
  place.hostname = "127.0.0.1";
  auto device = gloo::transport::tcp::CreateDevice(place);
  gloo::rendezvous::FileStore store(folder);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  context->connectFullMesh(store, device);

  std::vector<float> values;
  const auto call = [&](const std::string& name, size_t n) {
    values.resize(n);
    if (name == "all_reduce") {
      gloo::AllreduceOptions options(context);
      options.setOutput(values.data(), n);
      options.setReduceFunction([](void* c, const void* a, const void* b, size_t count) {
        gloo::sum<float>(c, a, b, count);
      });
      gloo::allreduce(options);
    } else {
      gloo::BroadcastOptions options(context);
      options.setOutput(values.data(), n);
      options.setRoot(0);
      gloo::broadcast(options);
    }
  };
  const auto meet = [&] {
    gloo::BarrierOptions options(context);
    gloo::barrier(options);
  };
  answer(rank, folder, call, meet);
}
