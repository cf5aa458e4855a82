// A small network for plans, and a file of it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tessera/infer/plan_builder.h"

#include "support/random_tensor.h"

namespace tessera::testing {

// A row of `x` for each sample, and `shift`, which all have in common.
inline std::unique_ptr<Graph> network_at(int64_t batch) {
  return parse_graph(fmt::format(R"(graph network(input %x: fp32[{0}, 8], input %shift: fp32[16],
    parameter %w: fp32[16, 8], parameter %table: int4[3, 3]) {{
  %half = cast(%w) {{type = fp16}}
  %rounded = cast(%half) {{type = fp32}}
  %a = matmul(%x, %rounded) {{transpose_b = true}}
  %b = add(%a, %shift)
  %y = tanh(%b)
  output y = %y
  output table = %table
}})",
                                 batch));
}

inline std::map<std::string, Tensor> weights() {
  return {{"w", random_tensor(DataType::fp32, {16, 8}, -1, 1, 1)},
          {"table", random_tensor(DataType::int4, {3, 3}, -8, 7, 2)}};
}

inline std::map<std::string, Tensor> inputs_of_rows(int64_t rows) {
  return {{"x", random_tensor(DataType::fp32, {rows, 8}, -1, 1, 3)},
          {"shift", random_tensor(DataType::fp32, {16}, -1, 1, 4)}};
}

inline CompileOptions frozen() {
  CompileOptions options;
  options.passes.frozen = true;
  return options;
}

// Bound to the weights.
inline std::unique_ptr<Executable> executable_at(int64_t batch, const std::shared_ptr<Device>& device) {
  auto executable = compile(*network_at(batch), device, frozen());
  executable->load([](const std::string& name) { return weights().at(name); });
  return executable;
}

inline void write_plan(const std::filesystem::path& path, const std::vector<int64_t>& batches,
                       const std::shared_ptr<Device>& device = Device::reference()) {
  infer::PlanBuilder builder("network", device->description(), frozen());
  for (const int64_t batch : batches) builder.add(batch, *executable_at(batch, device));
  builder.write(path);
}

}  // namespace tessera::testing
