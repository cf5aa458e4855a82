// What a plan says of itself, as text.
#pragma once

#include <string>
#include <string_view>

#include "tessera/infer/plan.h"

namespace tessera::infer {

// In the metadata of the file.
inline constexpr const char* kFormatKey = "tessera.plan";
inline constexpr const char* kDescriptionKey = "tessera.plan.description";
// To be raised when a reader of the one before would take a file for something else than it is.
inline constexpr const char* kFormat = "1";

// Of a tensor that is an artifact of kernels: no value of a graph has a colon in its name.
inline constexpr std::string_view kArtifactPrefix = "artifact:";

std::string format_description(const PlanDescription& description);
// The graphs are verified, and the batches in order. Throws Error(invalid_file) on anything that
// format_description() cannot have written.
PlanDescription parse_description(std::string_view text);

}  // namespace tessera::infer
