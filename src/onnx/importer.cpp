#include "onnx/importer.h"

#include <set>

#include "tessera/base/error.h"
#include "tessera/onnx/onnx.h"

#include "onnx/declarations.h"

namespace tessera::onnx {
namespace {

constexpr int kDeepestBody = 32;
constexpr int64_t kMostInstructions = 2'000'000;  // functions put in place of their calls grow fast

std::string domain_of(const std::string& domain) {
  return domain == "ai.onnx" ? "" : domain;
}

std::string function_key(const std::string& domain, const std::string& name, const std::string& overload) {
  return domain_of(domain) + "\n" + name + "\n" + overload;
}

// The value that stands for each operand or result of a function's call; "" for one left out.
template <typename Field>
std::string actual_name(const Field& names, int i, const Names& outer) {
  return i < names.size() ? outer(names.Get(i)) : "";
}

}  // namespace

Importer::Importer(const ::onnx::ModelProto& model, const ExternalFolder& folder)
    : model_(model), folder_(folder) {
  versions_ = versions_of(model.opset_import());
  for (const ::onnx::FunctionProto& function : model.functions()) {
    const std::string key = function_key(function.domain(), function.name(), function.overload());
    require(functions_.emplace(key, &function).second, ErrorCode::invalid_file,
            "two functions are called {} {}", function.domain(), function.name());
  }
}

Importer::Versions Importer::versions_of(
    const google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto>& imports) const {
  Versions versions;
  for (const auto& import : imports) {
    const std::string domain = domain_of(import.domain());
    require(
        !domain.empty() || (import.version() >= kLeastOperatorSet && import.version() <= kMostOperatorSet),
        ErrorCode::unsupported, "operator set {} is not supported, {} to {} are", import.version(),
        kLeastOperatorSet, kMostOperatorSet);
    versions[domain] = import.version();
  }
  return versions;
}

void Importer::count_instruction() {
  require(++instructions_ <= kMostInstructions, ErrorCode::invalid_file,
          "more than {} nodes, those of functions put in place of their calls counted", kMostInstructions);
}

program::Argument Importer::import_argument(const ::onnx::AttributeProto& attribute, const Context& context) {
  using Proto = ::onnx::AttributeProto;
  switch (attribute.type()) {
    case Proto::FLOAT:
      return static_cast<double>(attribute.f());
    case Proto::INT:
      return attribute.i();
    case Proto::STRING:
      return attribute.s();
    case Proto::TENSOR:
      return item_of(attribute.t(), folder_);
    case Proto::SPARSE_TENSOR:
      return item_of(attribute.sparse_tensor());
    case Proto::FLOATS:
      return std::vector<double>(attribute.floats().begin(), attribute.floats().end());
    case Proto::INTS:
      return std::vector<int64_t>(attribute.ints().begin(), attribute.ints().end());
    case Proto::STRINGS:
      return std::vector<std::string>(attribute.strings().begin(), attribute.strings().end());
    case Proto::TYPE_PROTO:
      return attribute.tp().has_tensor_type() ? int64_t{attribute.tp().tensor_type().elem_type()}
                                              : int64_t{0};
    case Proto::GRAPH: {
      require(context.depth < kDeepestBody, ErrorCode::invalid_file,
              "graphs within graphs, more than {} deep", kDeepestBody);
      Context inner = context;
      ++inner.depth;
      return std::make_shared<const program::Block>(import_block(attribute.g(), inner, false));
    }
    default:
      fail(ErrorCode::unsupported, "attribute '{}' is of a kind that is not supported ({})", attribute.name(),
           static_cast<int>(attribute.type()));
  }
}

void Importer::import_call(const ::onnx::FunctionProto& function, const ::onnx::NodeProto& node,
                           const Context& context, program::Block& block) {
  const std::string key = function_key(function.domain(), function.name(), function.overload());
  require(open_calls_.insert(key).second, ErrorCode::invalid_file, "function '{}' calls itself",
          function.name());
  Names names(fmt::format("{}#{}/", function.name(), ++calls_));
  for (int i = 0; i < function.input_size(); ++i)
    names.set(function.input(i), actual_name(node.input(), i, context.names));
  for (int i = 0; i < function.output_size(); ++i) {
    const std::string outer = actual_name(node.output(), i, context.names);
    if (!outer.empty()) names.set(function.output(i), outer);
  }
  Arguments arguments;
  for (const auto& attribute : function.attribute_proto()) arguments[attribute.name()] = &attribute;
  for (const auto& attribute : node.attribute()) {
    const ::onnx::AttributeProto* given = &attribute;
    if (!attribute.ref_attr_name().empty()) {
      const auto outer = context.arguments.find(attribute.ref_attr_name());
      if (outer == context.arguments.end()) continue;
      given = outer->second;
    }
    arguments[attribute.name()] = given;
  }
  const Versions versions = versions_of(function.opset_import());
  const Context inner{versions, arguments, names, context.depth + 1};
  require(inner.depth < kDeepestBody, ErrorCode::invalid_file,
          "functions within functions, more than {} deep", kDeepestBody);
  for (const ::onnx::NodeProto& step : function.node()) import_node(step, inner, block);
  open_calls_.erase(key);
}

void Importer::import_node(const ::onnx::NodeProto& node, const Context& context, program::Block& block) {
  count_instruction();
  const auto function = functions_.find(function_key(node.domain(), node.op_type(), node.overload()));
  if (function != functions_.end()) {
    import_call(*function->second, node, context, block);
    return;
  }
  program::Instruction instruction;
  instruction.name = context.names(node.name());
  instruction.domain = domain_of(node.domain());
  instruction.operator_name = node.op_type();
  const auto version = context.versions.find(instruction.domain);
  require(version != context.versions.end(), ErrorCode::invalid_file,
          "{}: the model imports no operator set of the domain '{}'", instruction.place(),
          instruction.domain);
  instruction.version = version->second;
  for (const std::string& name : node.input()) instruction.operands.push_back(context.names(name));
  for (const std::string& name : node.output()) instruction.results.push_back(context.names(name));
  for (const ::onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.ref_attr_name().empty()) {
      instruction.arguments.emplace(attribute.name(), import_argument(attribute, context));
    } else if (const auto outer = context.arguments.find(attribute.ref_attr_name());
               outer != context.arguments.end()) {
      instruction.arguments.emplace(attribute.name(), import_argument(*outer->second, context));
    }
  }
  block.instructions.push_back(std::move(instruction));
}

program::Block Importer::import_block(const ::onnx::GraphProto& graph, const Context& context, bool is_main) {
  program::Block block;
  block.name = graph.name();
  for (const auto& input : graph.input())
    block.inputs.push_back(declaration_of(input, context.names(input.name())));
  for (const auto& tensor : graph.initializer())
    block.constants.insert_or_assign(context.names(tensor.name()), item_of(tensor, folder_));
  for (const auto& tensor : graph.sparse_initializer())
    block.constants.insert_or_assign(context.names(tensor.values().name()), item_of(tensor));
  for (const ::onnx::NodeProto& node : graph.node()) import_node(node, context, block);
  for (const auto& output : graph.output())
    block.outputs.push_back(declaration_of(output, context.names(output.name())));
  program::Block* const outer =
      is_main ? nullptr : &block;  // what is around a body is checked with the main block
  prepare(block, outer);
  return block;
}

std::shared_ptr<const program::Module> Importer::import(const std::string& name) {
  const Names names;
  const Arguments none;
  const Context context{versions_, none, names};
  auto module = std::make_shared<program::Module>();
  module->name = name;
  for (const auto& entry : model_.metadata_props()) module->metadata[entry.key()] = entry.value();
  module->main = std::make_shared<const program::Block>(import_block(model_.graph(), context, true));
  return module;
}

}  // namespace tessera::onnx
