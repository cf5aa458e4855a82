// From the messages of a model to a module.
#pragma once

#include <map>
#include <set>
#include <string>

#include "tessera/program/module.h"

#include "onnx/tensors.h"

namespace tessera::onnx {

// The names of one graph or one call of a function. Those of a function's body are renamed to what the call
// gives it, and to names of the call's own.
class Names {
 public:
  Names() = default;
  explicit Names(std::string prefix) : prefix_(std::move(prefix)) {}

  void set(const std::string& name, const std::string& outer) { renamed_[name] = outer; }
  std::string operator()(const std::string& name) const {
    if (name.empty()) return name;
    const auto found = renamed_.find(name);
    return found != renamed_.end() ? found->second : prefix_ + name;
  }

 private:
  std::string prefix_;
  std::map<std::string, std::string> renamed_;
};

class Importer {
 public:
  Importer(const ::onnx::ModelProto& model, const ExternalFolder& folder);
  std::shared_ptr<const program::Module> import(const std::string& name);

 private:
  using Versions = std::map<std::string, int64_t>;
  using Arguments = std::map<std::string, const ::onnx::AttributeProto*>;
  // Where nodes stand: in the model's graphs, or in a call of a function.
  struct Context {
    const Versions& versions;
    const Arguments& arguments;  // of the call, for attributes that refer to them
    const Names& names;
    int depth = 0;
  };

  Versions versions_of(const google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto>& imports) const;
  program::Block import_block(const ::onnx::GraphProto& graph, const Context& context, bool is_main);
  void import_node(const ::onnx::NodeProto& node, const Context& context, program::Block& block);
  void import_call(const ::onnx::FunctionProto& function, const ::onnx::NodeProto& node,
                   const Context& context, program::Block& block);
  program::Argument import_argument(const ::onnx::AttributeProto& attribute, const Context& context);
  void count_instruction();

  const ::onnx::ModelProto& model_;
  const ExternalFolder& folder_;
  Versions versions_;
  std::map<std::string, const ::onnx::FunctionProto*> functions_;
  std::set<std::string> open_calls_;  // functions whose bodies are being put in
  int calls_ = 0;
  int64_t instructions_ = 0;
};

}  // namespace tessera::onnx
