// Models of the format, made of its own messages.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <onnx/onnx-ml.pb.h>

#include "tessera/onnx/onnx.h"
#include "tessera/program/runner.h"

namespace tessera::onnx {

::onnx::ModelProto model(int64_t version = 20);
::onnx::NodeProto* add_node(::onnx::GraphProto& graph, const std::string& type,
                            const std::vector<std::string>& inputs, const std::vector<std::string>& outputs);
// fp32, with these extents.
void add_input(::onnx::GraphProto& graph, const std::string& name, const std::vector<int64_t>& shape);
void add_output(::onnx::GraphProto& graph, const std::string& name);
::onnx::TensorProto* add_constant(::onnx::GraphProto& graph, const std::string& name,
                                  const std::vector<int64_t>& shape, const std::vector<float>& values);
void set_attribute(::onnx::NodeProto* node, const std::string& name, int64_t value);

std::shared_ptr<const program::Module> parse(const ::onnx::ModelProto& model,
                                             const std::filesystem::path& folder = {});

}  // namespace tessera::onnx
