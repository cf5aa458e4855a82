// The sections of the report, each "" when there is nothing to show.
#pragma once

#include <cstdint>
#include <string>

#include "tessera/report/report.h"

namespace tessera::report {

// "1,234,567".
std::string group_digits(int64_t value);

// "Test loss" for "test_loss" and "test loss".
std::string heading(std::string_view name);

std::string curves_part(const Report& report);
std::string epochs_part(const Report& report);

}  // namespace tessera::report
