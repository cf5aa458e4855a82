// As GoogleTest's own main, with an option for the seeds.
#include <gtest/gtest.h>
#include <malloc.h>

#include "kernel_fuzz/seeds.h"

int main(int argc, char** argv) {
  // What kernels allocate for themselves is as undefined as the memory that they are given.
  mallopt(M_PERTURB, 0xa5);
  if (!tessera::testing::read_seeds(argc, argv)) return 2;
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
