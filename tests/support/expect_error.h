// EXPECT_ERROR(statement, code, words...): the statement throws Error with this code and a message that holds
// each of the words.
#pragma once

#include <exception>
#include <initializer_list>
#include <string>

#include <gtest/gtest.h>

#include "tessera/base/error.h"

namespace tessera::testing {

template <typename Statement>
::testing::AssertionResult throws_error(Statement&& statement, ErrorCode code,
                                        std::initializer_list<std::string> words) {
  try {
    statement();
  } catch (const Error& error) {
    const std::string message = error.what();
    if (error.code() != code) {
      return ::testing::AssertionFailure() << "error code " << static_cast<int>(error.code()) << ", expected "
                                           << static_cast<int>(code) << ", message: " << message;
    }
    for (const std::string& word : words) {
      if (message.find(word) == std::string::npos)
        return ::testing::AssertionFailure() << "no '" << word << "' in the message: " << message;
    }
    return ::testing::AssertionSuccess();
  } catch (const std::exception& error) {
    return ::testing::AssertionFailure() << "another exception: " << error.what();
  }
  return ::testing::AssertionFailure() << "nothing was thrown";
}

}  // namespace tessera::testing

#define EXPECT_ERROR(statement, code, ...) \
  EXPECT_TRUE(::tessera::testing::throws_error([&] { (void)(statement); }, code, {__VA_ARGS__}))
