// What an operator is: one schema per operator, from which names, parser, documents, checks and tests are
// derived.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/tensor.h"
#include "tessera/graph/attributes.h"
#include "tessera/graph/graph.h"

namespace tessera {

// A set of data types, one bit each. An operator says by such sets which types it takes; a device may refuse
// some of them.
struct TypeSet {
  uint32_t bits = 0;
  constexpr TypeSet() = default;
  constexpr TypeSet(std::initializer_list<DataType> types) {
    for (DataType type : types) bits |= 1u << static_cast<uint32_t>(type);
  }
  constexpr bool contains(DataType type) const { return (bits >> static_cast<uint32_t>(type)) & 1u; }
  constexpr TypeSet operator|(TypeSet other) const {
    TypeSet result;
    result.bits = bits | other.bits;
    return result;
  }
  constexpr TypeSet operator-(TypeSet other) const {
    TypeSet result;
    result.bits = bits & ~other.bits;
    return result;
  }
};

inline constexpr TypeSet kFloatingTypes{DataType::fp32, DataType::fp64, DataType::fp16, DataType::bf16};
inline constexpr TypeSet kIndexTypes{DataType::int32, DataType::int64};
inline constexpr TypeSet kIntegerTypes{DataType::int8, DataType::uint8, DataType::int32, DataType::int64};
inline constexpr TypeSet kNumericTypes = kFloatingTypes | kIntegerTypes;
inline constexpr TypeSet kBooleanTypes{DataType::boolean};
// Those that arithmetic and comparisons know; operators of two elements take some more. The others are
// stored, moved and cast.
inline constexpr TypeSet kComputedTypes = kNumericTypes | kBooleanTypes;
inline constexpr TypeSet kComplexTypes{DataType::complex64, DataType::complex128};
inline constexpr TypeSet kAnyTypes = [] {
  TypeSet all;
  for (DataType type : kAllDataTypes) all = all | TypeSet{type};
  return all;
}();
inline constexpr TypeSet kRealTypes = kAnyTypes - kComplexTypes;  // what a cast takes

struct InputSpecification {
  std::string name;
  TypeSet types = kFloatingTypes;
  std::string type_variable = "T";  // inputs with the same variable must agree in data type; "" for none
  bool optional = false;            // may be left out, wherever it stands
  bool variadic = false;            // one or more; only the last
  // Of whole numbers that count elements of another operand along an axis: which it is.
  struct Counted {
    std::string operand;
    size_t axis = 0;
  };
  std::optional<Counted> counts = {};
};

struct AttributeSpecification {
  std::string name;
  AttributeKind kind = AttributeKind::integer;
  std::optional<Attribute> default_value = {};  // without one the attribute is required
  std::string documentation;
};

// What a node is made of beside its operator and attributes.
struct NodeParts {
  const OperandPlaces& places;
  std::span<const TensorType> inputs;  // of the operands that are there
  std::span<const std::unique_ptr<Graph>> bodies;
};

// What a shape rule sees.
struct InferenceCall : NodeParts {
  const OperatorSchema& schema;
  const Attributes& attributes;

  const TensorType& input(size_t index) const { return inputs[index]; }
  // By its number in OperatorSchema::inputs; null when it is left out.
  const TensorType* operand(size_t specification) const;
  // Throws Error(invalid_graph) with `rule` unless the condition holds; the caller adds node and shapes.
  void require(bool condition, const std::string& rule) const;
};

// What a gradient rule sees: the node, and the gradient of each of its outputs (null where nothing flows
// back).
struct GradientCall {
  const Node& node;
  std::span<Value* const> output_gradients;

  Value* input(size_t index) const { return node.input(index); }
  Value* operand(size_t specification) const { return node.operand(specification); }
  Value* output(size_t index = 0) const { return node.output(index); }
  Value* gradient(size_t index = 0) const { return output_gradients[index]; }
  // What the rule returns, of gradients by the operands' numbers: those of operands that are there.
  std::vector<Value*> of_inputs(std::span<Value* const> by_specification) const;
};

// What a reference loop sees: host tensors, outputs allocated with their inferred types.
struct ReferenceCall {
  const Node& node;
  std::span<const Tensor* const> inputs;
  std::span<Tensor* const> outputs;
  const Attributes& attributes() const { return node.attributes(); }
  // By its number in OperatorSchema::inputs; null when it is left out.
  const Tensor* operand(size_t specification) const;
};

struct Cost {
  double flops = 0;  // a multiply-add counts two
  double bytes = 0;  // read and written at least
};

// Inputs for the tests derived from the schema: uniform in [low, high], integers for integer types.
struct ExampleInput {
  Shape shape;
  double low = -1;
  double high = 1;
  DataType data_type =
      DataType::fp32;  // a floating type is also tried as every other floating type it may be
};
struct OperatorExample {
  std::vector<ExampleInput> inputs = {};
  Attributes attributes = {};
};

// How passes and devices may treat the operator.
enum class OperatorClass {
  source,         // constants and random numbers
  elementwise,    // each output element depends on the input elements at its (broadcast) place
  reduction,      // sums or extremes over axes
  contraction,    // matrix products and convolutions
  normalization,  // batch, layer, group norms; softmax
  movement,       // moves elements without arithmetic
  indexing,       // gather, scatter, top-k: data-dependent addresses
  pooling,
  loss,
  communication,  // needs the other ranks of a group; for a group of one the identity
  control,        // chooses among its bodies or repeats them; what they read are its operands
  fused,          // several nodes in one: its body
};

// Where an operator runs in a network whose products are in 16 bits.
enum class LowPrecision : uint8_t {
  wide,     // in fp32: results or sums need the digits
  follows,  // in 16 bits where its data is already: it loses nothing there, or little
  narrow,   // in 16 bits, for which its data is cast
};

enum class ReductionKind : uint8_t { none, sum, mean, maximum, minimum, product };

// What passes and devices ask of an operator beside its class, so that no list of names stands anywhere else.
struct Traits {
  // Contractions are narrow and movements follow, whatever stands here.
  LowPrecision low_precision = LowPrecision::wide;
  bool activation = false;  // elementwise, of one operand: a kernel of a product may end with it
  // The same work for axes in another order, when its attributes name them anew; operands of fewer axes stay.
  bool any_axis_order = false;
  bool joins_clusters = false;                    // although it is not elementwise
  bool view = false;                              // its result is its input's memory, whatever the shapes
  bool random = false;                            // another result at each run
  ReductionKind reduction = ReductionKind::none;  // of all elements along its attribute `axes`
  // Of a collective.
  bool in_place = false;    // each result may be made where the operand of its number lies
  bool moves_only = false;  // without arithmetic: bytes, of whatever type
};

// Every member has an initializer, so that a registration leaves out what it does not need.
struct OperatorSchema {
  std::string name;
  std::string documentation;  // one paragraph
  OperatorClass operator_class = OperatorClass::elementwise;
  Traits traits = {};
  // The inputs broadcast against each other as in NumPy: one that was broadcast before may stay small.
  bool broadcasts = false;
  std::vector<InputSpecification> inputs = {};
  std::vector<AttributeSpecification> attributes = {};
  std::vector<std::string> outputs = {};  // names; a variable number of outputs is ruled by infer
  // How many graphs a node holds: one when it is fused, as many as it takes when it is control, else none.
  size_t bodies = 0;

  std::function<std::vector<TensorType>(const InferenceCall&)> infer = {};
  // One gradient per input that is there, null where there is none. Empty function: not differentiable.
  std::function<std::vector<Value*>(const GradientCall&)> gradient = {};
  std::function<double(const Node&)> flops = {};  // empty: none worth counting
  // Empty: every value that is an input is read once, and every output written once.
  std::function<double(const Node&)> bytes = {};
  std::function<void(const ReferenceCall&)> reference = {};
  std::vector<OperatorExample> examples = {};

  // Of a static movement that changes no order: at which byte of its first operand each result would begin if
  // it lay there, or of its result each operand. Empty where not all of them are contiguous there.
  std::function<std::vector<int64_t>(const Node&)> result_offsets = {};
  std::function<std::vector<int64_t>(const Node&)> operand_offsets = {};

  // A primitive elementwise operator: one element. Sets `reference` through the registry when that is empty.
  std::function<double(std::span<const double>, const Attributes&)> scalar = {};
  // A composite operator: the same work in simpler operators; makes `reference` and `gradient` when empty.
  std::function<std::vector<Value*>(const Node& node, std::span<Value* const> inputs)> decompose = {};

  // That of an operand by its number; a variadic one goes on for ever.
  const InputSpecification& operand(size_t number) const;
  const AttributeSpecification* find_attribute(std::string_view attribute) const;
  LowPrecision low_precision() const;
};

// All operators by name. Filled before main() by the OperatorRegistration objects of ops/.
class OperatorRegistry {
 public:
  static OperatorRegistry& instance();
  void add(OperatorSchema schema);
  // Throws Error(invalid_graph) with the nearest name.
  const OperatorSchema& get(std::string_view name) const;
  const OperatorSchema* find(std::string_view name) const;
  std::vector<const OperatorSchema*> all() const;  // sorted by name

 private:
  std::map<std::string, OperatorSchema, std::less<>> schemas_;
};

struct OperatorRegistration {
  explicit OperatorRegistration(OperatorSchema schema) {
    OperatorRegistry::instance().add(std::move(schema));
  }
};

// Checks arity, types, attributes and the number of bodies, fills in default attributes and infers the
// outputs' types. Throws Error(invalid_graph) naming node, operator, input types and rule.
std::vector<TensorType> infer_outputs(const OperatorSchema& schema, const std::string& node_name,
                                      const NodeParts& parts, Attributes& attributes);

// By the schema, and bytes by the types where it says nothing of them, of a static node.
Cost cost_of(const Node& node);

// Runs the node's reference loop: allocates and returns its outputs.
std::vector<Tensor> run_reference(const Node& node, std::span<const Tensor* const> inputs);

// Runs a whole graph through the reference loops; inputs in the order of graph.inputs().
struct ReferenceResult {
  std::vector<Tensor> outputs;  // in the order of graph.outputs()
  std::vector<Tensor> updates;  // in the order of graph.updates()
};
ReferenceResult run_reference(const Graph& graph, std::span<const Tensor> inputs);

}  // namespace tessera
