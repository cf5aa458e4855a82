// graph_fuzz_tests [--seeds FIRST-LAST] [googletest's flags]: those seeds, however long it takes.
#include <iostream>
#include <string_view>

#include <gtest/gtest.h>

#include "graph_fuzz/seeds.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const bool known = std::string_view(argv[i]) == "--seeds" && i + 1 < argc;
    if (known && tessera::testing::ask_for_seeds(argv[i + 1])) {
      ++i;
      continue;
    }
    std::cerr << "usage: graph_fuzz_tests [--seeds FIRST-LAST] [googletest's flags]\n";
    return 2;
  }
  return RUN_ALL_TESTS();
}
