// What the programs that time an engine's own calls share.
#pragma once

#include <chrono>
#include <fstream>
#include <string>
#include <vector>

// Reads lines `CALL ELEMENTS REPETITIONS` from this rank's pipe in `folder` until it ends; rank 0
// writes the seconds of a call to the pipe `seconds`. A rank that waits for a line sleeps, so that
// other processes can be timed meanwhile.
template <class Call, class Meet>
void answer(int rank, const std::string& folder, const Call& call, const Meet& meet) {
  using Clock = std::chrono::steady_clock;
  std::ifstream lines(folder + "/rank" + std::to_string(rank));
  std::ofstream seconds;
  if (rank == 0) seconds.open(folder + "/seconds");
  std::string name;
  size_t elements = 0;
  int repetitions = 0;
  while (lines >> name >> elements >> repetitions) {
    call(name, elements);
    meet();
    const auto began = Clock::now();
    for (int i = 0; i < repetitions; ++i) call(name, elements);
    const std::chrono::duration<double> took = Clock::now() - began;
    meet();
    if (rank == 0) seconds << took.count() / repetitions << std::endl;
  }
}
