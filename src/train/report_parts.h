// The sections of the report, each "" when there is nothing to show.
#pragma once

#include <cstdint>
#include <string>

#include "tessera/train/report.h"

namespace tessera::train {

// "1,234,567".
std::string group_digits(int64_t value);

std::string curves_part(const RunHistory& history);
std::string epochs_part(const RunHistory& history);
// A matrix for few classes; for many, the pairs most often confused.
std::string confusion_part(const Report& report);
std::string mistakes_part(const Report& report);

}  // namespace tessera::train
