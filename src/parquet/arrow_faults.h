// What Arrow's libraries report and throw, as errors of a file.
#pragma once

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include <arrow/result.h>
#include <arrow/status.h>
#include <parquet/exception.h>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera::data {

// Messages of Thrift and Arrow end their lines, and ours are one.
inline std::string one_line(std::string message) {
  while (!message.empty() && is_space(message.back())) message.pop_back();
  std::replace(message.begin(), message.end(), '\n', ' ');
  return message;
}

[[noreturn]] inline void fail_as(const std::string& name, const arrow::Status& status) {
  ErrorCode code = ErrorCode::invalid_file;
  if (status.IsOutOfMemory()) code = ErrorCode::out_of_memory;
  if (status.IsNotImplemented()) code = ErrorCode::unsupported;
  fail(code, "{}: {}", name, one_line(status.message()));
}

// The result of a function that calls Arrow, and nothing of ours that throws.
template <typename Function>
auto with_faults_of(const std::string& name, const Function& function) {
  try {
    return function();
  } catch (const parquet::ParquetStatusException& error) {
    fail_as(name, error.status());
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::out_of_memory, "{}: there is too little memory to read it", name);
  } catch (const std::exception& error) {
    fail(ErrorCode::invalid_file, "{}: {}", name, one_line(error.what()));
  }
}

// The value of a function's arrow::Result.
template <typename Function>
auto value_of(const std::string& name, const Function& function) {
  auto result = with_faults_of(name, function);
  if (!result.ok()) fail_as(name, result.status());
  return std::move(result).ValueUnsafe();
}

}  // namespace tessera::data
