// What a graph says of its inputs and outputs.
#pragma once

#include <onnx/onnx-ml.pb.h>

#include "tessera/program/module.h"

namespace tessera::onnx {

// `name` stands for the message's own.
program::Declaration declaration_of(const ::onnx::ValueInfoProto& value, const std::string& name);

}  // namespace tessera::onnx
