#include "tessera/device/common/batch_norm_body.h"

#include "tessera/device/common/node_body.h"
#include "tessera/device/common/refusal.h"
#include "tessera/passes/fuse.h"

namespace tessera::backend {
namespace {

bool is_zero(const Value* value) {
  return scalar_constant(value) == 0.0;
}

class GradientParser {
 public:
  explicit GradientParser(const Node& node) : node_(node), main_(main_node(node, "batch_norm_gradient")) {}

  BatchNormGradientBody parse() {
    check_batch_norm_types(*main_.input(1), *main_.input(2));
    parts_.x = input_index(node_, main_.input(1));
    parts_.scale = input_index(node_, main_.input(2));
    parts_.mean = input_index(node_, main_.input(3));
    parts_.variance = input_index(node_, main_.input(4));
    parts_.epsilon = main_.attributes().real("epsilon");
    parts_.dx = output_index(node_, main_.output(0));
    parts_.dscale = output_index(node_, main_.output(1));
    parts_.dbias = output_index(node_, main_.output(2));
    parse_gradient();
    if (node_.body() == nullptr) return parts_;
    size_t members = 0;
    for (const auto& inner : node_.body()->nodes()) members += inner->operator_name() == "constant" ? 0 : 1;
    refuse_unless(members == members_ && node_.body()->outputs().size() == outputs(),
                  "the body is not a mask and a batch normalization's gradient");
    return parts_;
  }

  // The max_pool_gradient that makes dy; null without one.
  const Node* pool() const { return pool_; }

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
      refuse_unless(is_zero(select->input(2)), "the mask does not select zero");
      const Node* greater = inner(select->input(0), "greater");
      refuse_unless(greater != nullptr && is_zero(greater->input(1)), "the mask is not x > 0");
      parse_mask(greater->input(0));
      parts_.dz = output_index(node_, gradient);
      gradient = select->input(1);
    }
    if (const Node* sum = inner(gradient, "add")) {
      refuse_unless(sum->input(0)->type() == sum->input(1)->type(), "the sum broadcasts");
      if (gradient == main_.input(0)) parts_.dz = output_index(node_, gradient);
      parts_.dy = input_index(node_, sum->input(0));
      parts_.dy2 = input_index(node_, sum->input(1));
    } else {
      pool_ = inner(gradient, "max_pool_gradient");
      if (pool_ != nullptr) gradient = pool_->input(0);
      parts_.dy = input_index(node_, gradient);
    }
  }

  void parse_mask(const Value* y) {
    const Node* recomputed = inner(y, "batch_norm_inference");
    if (recomputed == nullptr) {
      parts_.y = input_index(node_, y);
      return;
    }
    // x, scale, bias, mean, variance against x, scale, mean, variance of the gradient
    const bool same = recomputed->input(0) == main_.input(1) && recomputed->input(1) == main_.input(2) &&
                      recomputed->input(3) == main_.input(3) && recomputed->input(4) == main_.input(4) &&
                      recomputed->attributes().real("epsilon") == parts_.epsilon;
    refuse_unless(same, "the mask is of another normalization");
    parts_.bias = input_index(node_, recomputed->input(2));
  }

  const Node& node_;
  const Node& main_;
  BatchNormGradientBody parts_;
  const Node* pool_ = nullptr;
  size_t members_ = 1;
};

}  // namespace

void check_batch_norm_types(const Value& x, const Value& scale) {
  const DataType type = x.data_type();
  refuse_unless(type == DataType::fp32 || type == DataType::fp16 || type == DataType::bf16,
                "no batch normalization of {}", to_string(type));
  refuse_unless(scale.data_type() == DataType::fp32, "no statistics in {}", to_string(scale.data_type()));
  refuse_unless(x.type().element_count() > 0, "a tensor without elements");
}

BatchNormBody parse_batch_norm(const Node& node) {
  const Node& main = main_node(node, "batch_norm_training");
  BatchNormBody parts;
  check_batch_norm_types(*main.input(0), *main.input(1));
  parts.x = input_index(node, main.input(0));
  parts.scale = input_index(node, main.input(1));
  parts.bias = input_index(node, main.input(2));
  parts.mean = output_index(node, main.output(1));
  parts.variance = output_index(node, main.output(2));
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
    refuse_unless(other->type() == result->type(), "the sum broadcasts");
    parts.residual = input_index(node, other);
    result = add->output();
  }
  if (const Node* relu = next("relu")) {
    parts.relu = true;
    result = relu->output();
  }
  refuse_unless(members == node.body()->nodes().size() && output_index(node, result) == 0,
                "the body is not a batch normalization, a sum and a relu");
  return parts;
}

BatchNormGradientBody parse_batch_norm_gradient(const Node& node) {
  GradientParser parser(node);
  const BatchNormGradientBody parts = parser.parse();
  refuse_unless(parser.pool() == nullptr, "the gradient comes from a pooling");
  return parts;
}

PooledBatchNormBody parse_pooled_batch_norm(const Node& node) {
  const Node& pool = main_node(node, "max_pool");
  const Node* relu = producer_of(pool.input(0), "relu");
  const Node* norm = relu == nullptr ? nullptr : producer_of(relu->input(0), "batch_norm_inference");
  refuse_unless(norm != nullptr && node.body() != nullptr && node.body()->nodes().size() == 3 &&
                    output_index(node, pool.output(0)) == 0 && output_index(node, pool.output(1)) == 1,
                "the body is not a batch normalization, a relu and a pooling");
  check_batch_norm_types(*norm->input(0), *norm->input(1));
  return {.x = input_index(node, norm->input(0)),
          .scale = input_index(node, norm->input(1)),
          .bias = input_index(node, norm->input(2)),
          .mean = input_index(node, norm->input(3)),
          .variance = input_index(node, norm->input(4)),
          .epsilon = norm->attributes().real("epsilon"),
          .pool = &pool};
}

PooledBatchNormGradientBody parse_pooled_batch_norm_gradient(const Node& node) {
  GradientParser parser(node);
  const BatchNormGradientBody parts = parser.parse();
  refuse_unless(parser.pool() != nullptr && parts.bias.has_value() && !parts.dz.has_value(),
                "the body is not a pooling's gradient, a mask from x and a batch normalization's gradient");
  return {.norm = parts, .positions = input_index(node, parser.pool()->input(1)), .pool = parser.pool()};
}

}  // namespace tessera::backend
