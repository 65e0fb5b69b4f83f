// Times of MPI's own collectives, with nothing of facula: mpirun -n SIZE mpi_calls FOLDER.
#include <mpi.h>

#include "timed_calls.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);

  std::vector<float> values, sums;
  const auto call = [&](const std::string& name, size_t n) {
    values.resize(n);
    sums.resize(n);
    const int count = static_cast<int>(n);
    if (name == "all_reduce")
      MPI_Allreduce(values.data(), sums.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    else
      MPI_Bcast(values.data(), count, MPI_FLOAT, 0, MPI_COMM_WORLD);
  };
  answer(rank, argv[1], call, [] { MPI_Barrier(MPI_COMM_WORLD); });
  MPI_Finalize();
}
