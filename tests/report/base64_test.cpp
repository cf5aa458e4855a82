#include "tessera/report/base64.h"

#include <string_view>

#include <gtest/gtest.h>

namespace tessera::report {
namespace {

std::string encoded(std::string_view text) {
  return encode_base64(std::as_bytes(std::span(text)));
}

TEST(Base64, IsTheStandards) {  // RFC 4648, section 10
  EXPECT_EQ(encoded(""), "");
  EXPECT_EQ(encoded("f"), "Zg==");
  EXPECT_EQ(encoded("fo"), "Zm8=");
  EXPECT_EQ(encoded("foo"), "Zm9v");
  EXPECT_EQ(encoded("foobar"), "Zm9vYmFy");
  EXPECT_EQ(encoded("\xff\xfe\xfd"), "//79");
}

}  // namespace
}  // namespace tessera::report
