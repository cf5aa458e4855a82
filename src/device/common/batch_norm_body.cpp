#include "tessera/device/common/batch_norm_body.h"

#include "tessera/base/error.h"
#include "tessera/passes/fuse.h"

namespace tessera::backend {
namespace {

std::optional<size_t> input_of(const Node& node, const Value* value) {
  if (node.body() != nullptr) {
    return value->producer() == nullptr ? std::optional(value->index()) : std::nullopt;
  }
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    if (node.input(i) == value) return i;
  }
  return std::nullopt;
}

std::optional<size_t> output_of(const Node& node, const Value* value) {
  if (node.body() == nullptr) return value->index();
  const auto& outputs = node.body()->outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].value == value) return i;
  }
  return std::nullopt;
}

bool is_zero(const Value* value) {
  return scalar_constant(value) == 0.0;
}

class GradientParser {
 public:
  explicit GradientParser(const Node& node) : node_(node), main_(main_node(node, "batch_norm_gradient")) {}

  BatchNormGradientBody parse() {
    check_batch_norm_types(*main_.input(1), *main_.input(2));
    parts_.x = required_input(node_, main_.input(1));
    parts_.scale = required_input(node_, main_.input(2));
    parts_.mean = required_input(node_, main_.input(3));
    parts_.variance = required_input(node_, main_.input(4));
    parts_.epsilon = main_.attributes().real("epsilon");
    parts_.dx = output_of(node_, main_.output(0));
    parts_.dscale = output_of(node_, main_.output(1));
    parts_.dbias = output_of(node_, main_.output(2));
    parse_gradient();
    if (node_.body() == nullptr) return parts_;
    size_t members = 0;
    for (const auto& inner : node_.body()->nodes()) members += inner->operator_name() == "constant" ? 0 : 1;
    require(members == members_ && node_.body()->outputs().size() == outputs(), ErrorCode::unsupported,
            "the body is not a mask and a batch normalisation's gradient");
    return parts_;
  }

 private:
  size_t outputs() const {
    return static_cast<size_t>(parts_.dx.has_value()) + parts_.dscale.has_value() + parts_.dbias.has_value() +
           parts_.dz.has_value();
  }

  // The node of the body that makes the value when it is of this operator.
  const Node* inner(const Value* value, std::string_view operator_name) {
    const Node* producer = node_.body() == nullptr ? nullptr : producer_of(value, operator_name);
    if (producer != nullptr) ++members_;
    return producer;
  }

  void parse_gradient() {
    const Value* gradient = main_.input(0);
    if (const Node* select = inner(gradient, "select")) {
      require(is_zero(select->input(2)), ErrorCode::unsupported, "the mask does not select zero");
      const Node* greater = inner(select->input(0), "greater");
      require(greater != nullptr && is_zero(greater->input(1)), ErrorCode::unsupported,
              "the mask is not x > 0");
      parse_mask(greater->input(0));
      parts_.dz = output_of(node_, gradient);
      gradient = select->input(1);
    }
    if (const Node* sum = inner(gradient, "add")) {
      require(sum->input(0)->type() == sum->input(1)->type(), ErrorCode::unsupported, "the sum broadcasts");
      if (gradient == main_.input(0)) parts_.dz = output_of(node_, gradient);
      parts_.dy = required_input(node_, sum->input(0));
      parts_.dy2 = required_input(node_, sum->input(1));
    } else {
      parts_.dy = required_input(node_, gradient);
    }
  }

  void parse_mask(const Value* y) {
    const Node* recomputed = inner(y, "batch_norm_inference");
    if (recomputed == nullptr) {
      parts_.y = required_input(node_, y);
      return;
    }
    // x, scale, bias, mean, variance against x, scale, mean, variance of the gradient
    const bool same = recomputed->input(0) == main_.input(1) && recomputed->input(1) == main_.input(2) &&
                      recomputed->input(3) == main_.input(3) && recomputed->input(4) == main_.input(4) &&
                      recomputed->attributes().real("epsilon") == parts_.epsilon;
    require(same, ErrorCode::unsupported, "the mask is of another normalisation");
    parts_.bias = required_input(node_, recomputed->input(2));
  }

  const Node& node_;
  const Node& main_;
  BatchNormGradientBody parts_;
  size_t members_ = 1;
};

}  // namespace

size_t required_input(const Node& node, const Value* value) {
  const std::optional<size_t> index = input_of(node, value);
  require(index.has_value(), ErrorCode::unsupported, "'{}' is made inside the body", value->name());
  return *index;
}

const Node& main_node(const Node& node, std::string_view operator_name) {
  if (node.body() == nullptr) return node;
  const Node* main = nullptr;
  for (const auto& inner : node.body()->nodes()) {
    if (inner->operator_name() != operator_name) continue;
    require(main == nullptr, ErrorCode::unsupported, "the body holds several nodes of operator {}",
            operator_name);
    main = inner.get();
  }
  require(main != nullptr, ErrorCode::unsupported, "the body holds no node of operator {}", operator_name);
  return *main;
}

void check_batch_norm_types(const Value& x, const Value& scale) {
  const DataType type = x.data_type();
  require(type == DataType::fp32 || type == DataType::fp16 || type == DataType::bf16, ErrorCode::unsupported,
          "no loop for {}", to_string(type));
  require(scale.data_type() == DataType::fp32, ErrorCode::unsupported, "no loop for statistics in {}",
          to_string(scale.data_type()));
  require(x.type().element_count() > 0, ErrorCode::unsupported, "a tensor without elements");
}

BatchNormBody parse_batch_norm(const Node& node) {
  const Node& main = main_node(node, "batch_norm_training");
  BatchNormBody parts;
  check_batch_norm_types(*main.input(0), *main.input(1));
  parts.x = required_input(node, main.input(0));
  parts.scale = required_input(node, main.input(1));
  parts.bias = required_input(node, main.input(2));
  parts.mean = output_of(node, main.output(1));
  parts.variance = output_of(node, main.output(2));
  parts.epsilon = main.attributes().real("epsilon");
  if (node.body() == nullptr) return parts;

  const Value* result = main.output();
  size_t members = 1;
  const auto next = [&](std::string_view operator_name) -> const Node* {
    const Node* reader = sole_reader(result);
    if (reader == nullptr || reader->operator_name() != operator_name) return nullptr;
    ++members;
    return reader;
  };
  if (const Node* add = next("add")) {
    const Value* other = add->input(add->input(0) == result ? 1 : 0);
    require(other->type() == result->type(), ErrorCode::unsupported, "the sum broadcasts");
    parts.residual = required_input(node, other);
    result = add->output();
  }
  if (const Node* relu = next("relu")) {
    parts.relu = true;
    result = relu->output();
  }
  require(members == node.body()->nodes().size() && output_of(node, result) == 0, ErrorCode::unsupported,
          "the body is not a batch normalisation, a sum and a relu");
  return parts;
}

BatchNormGradientBody parse_batch_norm_gradient(const Node& node) {
  return GradientParser(node).parse();
}

}  // namespace tessera::backend
