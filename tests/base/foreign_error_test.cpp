#include "tessera/base/foreign_error.h"

#include <new>
#include <system_error>

#include <gtest/gtest.h>

namespace tessera {
namespace {

void expect_error_of(const std::exception& exception, ErrorCode code, const std::string& message) {
  const Error error = as_error(exception);
  EXPECT_EQ(error.code(), code) << exception.what();
  EXPECT_EQ(std::string(error.what()).find(message), 0u) << error.what();
}

TEST(ForeignError, HasACodeOfOurs) {
  expect_error_of(Error(ErrorCode::not_finite, "the loss is NaN"), ErrorCode::not_finite, "the loss is NaN");
  expect_error_of(std::bad_alloc(), ErrorCode::out_of_memory, "out of memory");
  const auto refused = [](std::errc code) { return std::system_error(std::make_error_code(code)); };
  for (const std::errc scarce : {std::errc::resource_unavailable_try_again, std::errc::not_enough_memory})
    expect_error_of(refused(scarce), ErrorCode::out_of_memory, "");
  expect_error_of(refused(std::errc::no_space_on_device), ErrorCode::io, "No space left");
  expect_error_of(std::logic_error("no such key"), ErrorCode::internal, "internal fault: no such key");
}

}  // namespace
}  // namespace tessera
