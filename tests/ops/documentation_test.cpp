#include "tessera/ops/documentation.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "tessera/base/error.h"

#include "ops/documentation_page.h"
#include "test_folder.h"

namespace tessera::testing {
namespace {

std::filesystem::path page() {
  return std::filesystem::path(TESSERA_TEST_FOLDER) / "../../docs/operators.md";
}

TEST(Documentation, PageIsUpToDate) {
  std::ifstream file(page());
  ASSERT_TRUE(file.is_open()) << page();
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_TRUE(text == ops::operators_markdown()) << "docs/operators.md is old: run ops_tests --update";
}

}  // namespace

void write_documentation_page() {
  std::ofstream file(page());
  file << ops::operators_markdown();
  file.close();
  require(file.good(), ErrorCode::io, "{}: cannot write", page().string());
}

}  // namespace tessera::testing
