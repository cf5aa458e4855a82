#include "tessera/device/common/normalized_bodies.h"

#include "tessera/device/common/node_body.h"
#include "tessera/device/common/refusal.h"
#include "tessera/passes/batch_norm_expression.h"
#include "tessera/passes/fuse.h"

namespace tessera::backend {
namespace {

const Value* output_of_body(const Node& node, size_t index) {
  return node.body()->outputs().at(index).value;
}

// The node that makes the value, which is of that operator.
const Node& made_by(const Value* value, std::string_view operator_name) {
  const Node* node = producer_of(value, operator_name);
  refuse_unless(node != nullptr, "the body has no {} where one is looked for", operator_name);
  return *node;
}

const Value* before_broadcast(const Value* value) {
  return made_by(value, "broadcast_to").input(0);
}

// What is cast to fp32 or, if the value is not, the value, of fp32 already.
const Value* before_cast(const Value* value) {
  const Node* cast = producer_of(value, "cast");
  return cast == nullptr ? value : cast->input(0);
}

NormalizedTensor parse_normalized(const Node& node, const Value* value) {
  const Node& norm = made_by(value, "batch_norm_inference");
  return {.x = input_index(node, norm.input(0)),
          .scale = input_index(node, norm.input(1)),
          .bias = input_index(node, norm.input(2)),
          .mean = input_index(node, norm.input(3)),
          .variance = input_index(node, norm.input(4)),
          .epsilon = norm.attributes().real("epsilon")};
}

// The mask of a sum as the relu of the sum of two normalizations, in the order of `x`.
std::vector<NormalizedTensor> parse_recomputed_mask(const Node& node, const Node& relu,
                                                    const std::vector<size_t>& x) {
  const Node& sum = made_by(relu.input(0), "add");
  std::vector<NormalizedTensor> norms;
  for (const Value* addend : sum.inputs()) norms.push_back(parse_normalized(node, addend));
  if (norms[0].x != x.front()) std::swap(norms[0], norms[1]);
  refuse_unless(x.size() == 2 && norms[0].x == x[0] && norms[1].x == x[1],
                "the mask is of other normalizations");
  return norms;
}

void refuse_bias(const Node& convolution) {
  refuse_unless(convolution.inputs().size() == 2, "a bias");
}

void check_weight_gradient(const Node& data, const Node& weight) {
  refuse_unless(weight.input(1) == data.input(0), "the gradients are not of one convolution");
}

}  // namespace

const Node& parse_convolution_statistics(const Node& node) {
  const Node& convolution = main_node(node, "convolution");
  const size_t outputs = node.outputs().size();
  refuse_unless(outputs == 3, "the body makes {} values, not a result and two sums", outputs);
  refuse_bias(convolution);
  return convolution;
}

MaskedSumBody parse_masked_sum(const Node& node) {
  MaskedSumBody body{.data = &main_node(node, "convolution_data_gradient"), .addend = 0, .mask = nullptr};
  const Node* sum = sole_reader(body.data->output());
  refuse_unless(sum != nullptr && sum->operator_name() == "add", "the body is no data gradient with a sum");
  body.addend = input_index(node, sum->input(sum->input(0) == body.data->output() ? 1 : 0));
  const Node* last = output_of_body(node, 0)->producer();
  if (last == sum) return body;
  const bool masked = last->operator_name() == "select" && last->input(1) == sum->output() &&
                      scalar_constant(last->input(2)) == 0.0;
  const Node* greater = masked ? producer_of(last->input(0), "greater") : nullptr;
  refuse_unless(greater != nullptr && scalar_constant(greater->input(1)) == 0.0,
                "the body is no data gradient with a sum and a mask");
  body.mask = greater->input(0);
  return body;
}

SummedGradientsBody parse_summed_gradients(const Node& node) {
  SummedGradientsBody body{.sum = parse_masked_sum(node)};
  refuse_unless(body.sum.mask != nullptr, "no mask");
  const Node& data = *body.sum.data;
  body.dy = input_index(node, data.input(0));
  body.weight = input_index(node, data.input(1));
  size_t outputs = node.body()->outputs().size();
  if (const Node* weight = producer_of(output_of_body(node, outputs - 1), "convolution_weight_gradient")) {
    check_weight_gradient(data, *weight);
    refuse_unless(body.sum.mask == weight->input(0), "the mask is not of the convolution's input");
    body.weights = true;
    --outputs;
  }
  refuse_unless(outputs >= 2, "the body has {} outputs", outputs);
  const Node& gradient_sum = made_by(output_of_body(node, 1), "reduce_sum");
  refuse_unless(before_cast(gradient_sum.input(0)) == output_of_body(node, 0),
                "the sum is not of the result");
  for (size_t output = 2; output < outputs; ++output) {
    const Node& product = made_by(made_by(output_of_body(node, output), "reduce_sum").input(0), "multiply");
    refuse_unless(product.input(0) == gradient_sum.input(0), "the product is not with the result");
    const Node& centered = made_by(product.input(1), "subtract");
    body.x.push_back(input_index(node, before_cast(centered.input(0))));
    body.mean.push_back(input_index(node, before_broadcast(centered.input(1))));
  }
  if (const Node* relu = producer_of(body.sum.mask, "relu")) {
    body.recomputed = parse_recomputed_mask(node, *relu, body.x);
  } else {
    body.mask = input_index(node, body.sum.mask);
  }
  return body;
}

NormalizedGradientsBody parse_normalized_gradients(const Node& node) {
  NormalizedGradientsBody body{.data = &main_node(node, "convolution_data_gradient")};
  const Node& weight = main_node(node, "convolution_weight_gradient");
  check_weight_gradient(*body.data, weight);
  refuse_unless(output_of_body(node, 0) == body.data->output() && output_of_body(node, 1) == weight.output(),
                "the outputs are not the two gradients");
  if (const Node* relu = producer_of(weight.input(0), "relu")) {
    body.recomputed = parse_normalized(node, relu->input(0));
  } else {
    body.x = input_index(node, weight.input(0));
  }
  body.weight = input_index(node, body.data->input(1));
  const Node& sum = made_by(before_cast(body.data->input(0)), "add");
  body.offset = input_index(node, before_broadcast(sum.input(1)));
  const Node& products = made_by(sum.input(0), "add");
  const auto parse_product = [&](const Value* value, size_t& tensor, size_t& channels) {
    const Node& product = made_by(value, "multiply");
    tensor = input_index(node, before_cast(product.input(0)));
    channels = input_index(node, before_broadcast(product.input(1)));
  };
  parse_product(products.input(0), body.dy, body.factor);
  parse_product(products.input(1), body.y, body.correlation);
  return body;
}

NormalizedConvolutionBody parse_normalized_convolution(const Node& node) {
  NormalizedConvolutionBody body{.convolution = &main_node(node, "convolution")};
  const Node& convolution = *body.convolution;
  refuse_bias(convolution);
  const size_t outputs = node.body()->outputs().size();
  body.keeps = outputs == 4 && output_of_body(node, 3) == convolution.input(0);
  refuse_unless((outputs == 3 || body.keeps) && output_of_body(node, 0) == convolution.output(),
                "the outputs are not a convolution, two sums and perhaps what it reads");
  const std::optional<NormalizedInput> input = match_normalized_input(convolution.input(0));
  refuse_unless(input.has_value(), "the convolution does not read normalized channels");
  for (const NormalizedChannels& norm : input->norms) {
    body.x.push_back(input_index(node, norm.x));
    body.mean.push_back(input_index(node, norm.mean));
    body.factor.push_back(input_index(node, norm.factor));
    body.bias.push_back(input_index(node, norm.bias));
  }
  if (input->residual != nullptr) body.residual = input_index(node, input->residual);
  body.weight = input_index(node, convolution.input(1));
  return body;
}

}  // namespace tessera::backend
