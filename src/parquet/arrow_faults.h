// What Arrow's libraries report and throw, as errors of a file.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <utility>

#include <arrow/result.h>
#include <arrow/status.h>
#include <parquet/exception.h>

#include "tessera/base/error.h"

namespace tessera::data {

[[noreturn]] inline void fail_as(const std::string& name, const arrow::Status& status) {
  ErrorCode code = ErrorCode::invalid_file;
  if (status.IsOutOfMemory()) code = ErrorCode::out_of_memory;
  if (status.IsNotImplemented()) code = ErrorCode::unsupported;
  fail(code, "{}: {}", name, status.message());
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
    fail(ErrorCode::invalid_file, "{}: {}", name, error.what());
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
