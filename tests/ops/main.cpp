// ops_tests [--update] [googletest's flags]: --update rewrites docs/operators.md instead of comparing it.
#include <string_view>

#include <gtest/gtest.h>

#include "ops/documentation_page.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc > 1 && std::string_view(argv[1]) == "--update") {
    tessera::testing::write_documentation_page();
    return 0;
  }
  return RUN_ALL_TESTS();
}
