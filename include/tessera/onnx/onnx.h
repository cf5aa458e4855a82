// Networks in the ONNX format (https://onnx.ai, IR version 3 to 13, operator sets to 27).
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "tessera/program/module.h"

namespace tessera::onnx {

// Of the format's own domain. Before 6 only operators that have not changed since are known.
inline constexpr int64_t kLeastOperatorSet = 1;
inline constexpr int64_t kMostOperatorSet = 27;

// Reads a model with its external data, which must lie in the model's folder or below it. Local functions are
// put in place of their calls. Throws Error(io) and Error(invalid_file), and Error(unsupported) for an
// operator set outside the limits; operators that no rule knows are for program::Runner to refuse.
std::shared_ptr<const program::Module> load(const std::filesystem::path& path);

// The same of bytes. `name` stands in messages; external data is looked for in `folder`, and refused without
// one.
std::shared_ptr<const program::Module> parse(std::span<const std::byte> bytes, const std::string& name,
                                             const std::filesystem::path& folder = {});

// The word that a dimension which a file names so is called in graphs: letters, digits and underscores, the
// first no digit, others replaced by underscores.
std::string symbol_of(const std::string& name);

// A single value as the format's test data holds it: a TensorProto, SequenceProto or OptionalProto.
enum class ValueKind : uint8_t { tensor, sequence, optional };
program::Item load_value(const std::filesystem::path& path, ValueKind kind);

}  // namespace tessera::onnx
