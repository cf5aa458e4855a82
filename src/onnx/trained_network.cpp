// Networks in the ONNX format as models from images to classes, which start from the weights of the file.
#include <algorithm>
#include <cstring>
#include <optional>

#include "tessera/base/error.h"
#include "tessera/base/permutation.h"
#include "tessera/models/network_file.h"
#include "tessera/nn/layers.h"
#include "tessera/onnx/onnx.h"
#include "tessera/program/runner.h"

#include "onnx/axis_order.h"
#include "onnx/trained_module.h"

namespace tessera::onnx {
namespace {

// Of weights that are read transposed alone, as those of convolutions are: how. Kept in that order, a step
// transposes neither them nor their gradients.
using Orders = std::map<std::string, std::vector<int64_t>>;

// Other than biases and scales, which exporters may give axes of extent 1.
bool is_matrix(const Shape& shape) {
  return std::count_if(shape.begin(), shape.end(), [](int64_t extent) { return extent != 1; }) > 1;
}

// The variables of a context, with what layers do in its mode.
class ContextOwner : public program::GraphOwner {
 public:
  ContextOwner(nn::Context& context, const Orders& orders) : context_(context), orders_(orders) {}

  Graph& graph() override { return context_.graph(); }
  bool trains() const override { return context_.training(); }

  Value* variable(const std::string& name, const Tensor& contents, bool is_statistic) override {
    nn::Variable variable{.name = name,
                          .role = is_statistic ? InputRole::state : InputRole::parameter,
                          .shape = contents.shape(),
                          .decays = is_matrix(contents.shape())};
    const auto order = orders_.find(name);
    if (order != orders_.end()) {
      variable.file_shape = variable.file_view = contents.shape();
      variable.permutation = order->second;
      for (size_t i = 0; i < order->second.size(); ++i)
        variable.shape[i] = contents.shape()[static_cast<size_t>(order->second[i])];
    }
    variable.initializer = {"file", [variable, contents](Tensor& tensor, uint64_t, uint64_t) {
                              const Tensor start = nn::from_file_layout(variable, contents);
                              std::memcpy(tensor.raw(), start.raw(), tensor.bytes());
                            }};
    if (is_statistic) {
      Value* state = context_.state(variable);
      statistics_[state] = std::move(variable);
      return state;
    }
    Value* value = context_.variable(std::move(variable));
    return order == orders_.end() ? value : ops::transpose(value, inverse_permutation(order->second));
  }

  Value* batch_norm(const std::string& name, Value* x, const BatchNorm& norm) override {
    const auto statistic = [&](const Value* value) -> const nn::Variable& {
      const auto found = statistics_.find(value);
      require(found != statistics_.end(), ErrorCode::unsupported,
              "the running statistics of '{}' are computed, where a training has them as variables", name);
      return found->second;
    };
    const nn::Variable& mean = statistic(norm.mean);
    // Asked for once more: of a layer that is used twice they are new ones by now.
    return nn::normalize_batch(context_, "", x,
                               {.scale = norm.scale,
                                .bias = norm.bias,
                                .mean = context_.state(mean),
                                .variance = context_.state(statistic(norm.variance)),
                                .frozen = context_.is_frozen(mean.name)},
                               {.epsilon = norm.epsilon, .momentum = norm.momentum});
  }

  Value* dropout(Value* x, double rate) override { return nn::dropout(context_, x, rate); }

 private:
  nn::Context& context_;
  const Orders& orders_;
  std::map<const Value*, nn::Variable> statistics_;  // as they were given
};

// A file's network with the shapes that were asked for.
class TrainedNetwork {
 public:
  TrainedNetwork(const std::filesystem::path& path, const models::ClassifierOptions& options)
      : runner_(ready_for_training(*load(path)), {.devices = {Device::reference()}}), options_(options) {
    check_weights();
    find_input();
    require(main().outputs.size() == 1, ErrorCode::unsupported,
            "it has {} outputs, and training takes one, the logits", main().outputs.size());
    try_out();
  }

  Value* forward(nn::Context& context, Value* images) const {
    ContextOwner owner(context, orders_);
    if (channels_first_) images = ops::transpose(images, channels_first_permutation(4));
    return runner_.build({{input_, images}}, owner).at(main().outputs.front().name);
  }

 private:
  const program::Block& main() const { return *runner_.module().main; }

  void check_weights() const {
    for (const auto& [name, item] : main().constants) {
      const Tensor* weight = item.tensor();
      require(weight == nullptr || !is_half(weight->data_type()) || weight->shape().empty(),
              ErrorCode::unsupported, "its weight '{}' is {}, and training starts from weights in fp32", name,
              to_string(item));
    }
  }

  void find_input() {
    std::vector<const program::Declaration*> given;
    for (const program::Declaration& input : main().inputs) {
      if (!main().constants.contains(input.name)) given.push_back(&input);
    }
    require(given.size() == 1, ErrorCode::unsupported, "it has {} inputs, and training gives one, the images",
            given.size());
    const program::Declaration& input = *given.front();
    const bool takes_images = input.tensor.has_value() && input.tensor->rank() == 4;
    require(takes_images && input.tensor->data_type == DataType::fp32, ErrorCode::unsupported,
            "its input '{}' is {}, and training gives images as fp32[batch, channels, height, width] or "
            "fp32[batch, height, width, channels]",
            input.name, input.type);
    const SymbolicShape& shape = input.tensor->shape;
    const int64_t size = options_.image_size;
    const int64_t channels = options_.channels;
    channels_first_ = fits(shape, {channels, size, size});
    require(channels_first_ || fits(shape, {size, size, channels}), ErrorCode::unsupported,
            "its input '{}' is {}, and the images are of {} x {} pixels with {} channels (data.image_size, "
            "data.channels)",
            input.name, input.type, size, size, channels);
    input_ = input.name;
    if (shape[0].is_static()) batch_in_file_ = shape[0].value();
  }

  static bool fits(const SymbolicShape& shape, const Shape& image) {
    for (size_t axis = 0; axis < image.size(); ++axis) {
      if (shape[axis + 1].is_static() && shape[axis + 1] != Dimension(image[axis])) return false;
    }
    return true;
  }

  // Builds it once, for its result and for what reads its weights.
  void try_out() {
    constexpr int64_t kBatch = 3;
    Graph graph;
    nn::Context context(graph, nn::Mode::inference);
    Value* images = graph.add_input(
        InputRole::input, "images",
        {DataType::fp32, {kBatch, options_.image_size, options_.image_size, options_.channels}});
    const Value* logits = first_forward(context, images);
    const TensorType wanted{DataType::fp32, {kBatch, options_.classes}};
    require(logits->type() == wanted, ErrorCode::unsupported,
            "its output '{}' is {} for {} images, and the task has {} classes (model.classes): {} is wanted",
            main().outputs.front().name, to_string(logits->type()), kBatch, options_.classes,
            to_string(wanted));
    bool has_parameters = false;
    for (const nn::Variable& variable : context.variables()) {
      if (variable.role != InputRole::parameter) continue;
      has_parameters = true;
      note_order(*graph.find_input(variable.name));
    }
    require(has_parameters, ErrorCode::unsupported,
            "it has no weights to train: those are its initializers in fp32");
  }

  // Many files say a batch whose nodes take any.
  Value* first_forward(nn::Context& context, Value* images) const {
    try {
      return forward(context, images);
    } catch (const Error& error) {
      if (!batch_in_file_.has_value()) throw;
      throw Error(error.code(),
                  fmt::format("{} (it is written for batches of {}: export it with an open first "
                              "extent of its input, a symbolic dimension)",
                              error.what(), *batch_in_file_));
    }
  }

  void note_order(const Value& weight) {
    const std::vector<int64_t>* order = nullptr;
    for (const Use& use : weight.uses()) {
      if (use.node->operator_name() != "transpose") return;
      const std::vector<int64_t>& permutation = use.node->attributes().integers("permutation");
      if (order != nullptr && *order != permutation) return;
      order = &permutation;
    }
    if (order != nullptr) orders_[weight.name()] = *order;
  }

  program::Runner runner_;
  models::ClassifierOptions options_;
  std::string input_;
  bool channels_first_ = false;
  std::optional<int64_t> batch_in_file_;  // where its input says it
  Orders orders_;
};

models::Model read_onnx(const std::filesystem::path& path, const models::ClassifierOptions& options) {
  try {
    const auto network = std::make_shared<const TrainedNetwork>(path, options);
    return {path.stem().string(), options,
            [network](nn::Context& context, Value* images) { return network->forward(context, images); }};
  } catch (const Error& error) {
    const std::string message = error.what();
    if (message.starts_with(path.string())) throw;
    throw Error(error.code(), fmt::format("{}: {}", path.string(), message));
  }
}

const models::NetworkFileFormatRegistration kOnnx({.name = ".onnx", .read = read_onnx});

}  // namespace
}  // namespace tessera::onnx
