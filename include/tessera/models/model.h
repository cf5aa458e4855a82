// Networks by name: functions from images to logits.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/nn/context.h"

namespace tessera::models {

// What every network from images to classes has.
struct ClassifierOptions {
  int64_t classes = 1000;
  int64_t image_size = 224;  // height and width
  int64_t channels = 3;
};

// A network that can be built into any graph, for training or inference, at any batch size.
struct Model {
  std::string name;
  ClassifierOptions options;
  // images: fp32 [batch, image_size, image_size, channels]; returns logits [batch, classes].
  std::function<Value*(nn::Context& context, Value* images)> forward;

  // The type of the images with a batch of that size, or Dimension::symbol("batch").
  TensorType input_type(const Dimension& batch) const;
};

// The forward graph alone: input "images", output "logits"; and its variables.
struct Network {
  std::unique_ptr<Graph> graph;
  std::vector<nn::Variable> variables;
};
Network build(const Model& model, const Dimension& batch, nn::Mode mode = nn::Mode::inference);
// Trainable numbers; running statistics do not count.
int64_t parameter_count(const std::vector<nn::Variable>& variables);

struct MlpOptions {
  int64_t classes = 10;
  int64_t image_size = 28;
  int64_t channels = 1;
  std::vector<int64_t> hidden = {256, 128};  // units of each hidden layer
  double dropout = 0;
};
Model mlp(const MlpOptions& options = {});

Model lenet(const ClassifierOptions& options = {.classes = 10, .image_size = 28, .channels = 1});

// AlexNet and VGG.
struct DropoutClassifierOptions {
  int64_t classes = 1000;
  int64_t image_size = 224;
  int64_t channels = 3;
  double dropout = 0.5;  // of the fully connected layers
};
Model alexnet(const DropoutClassifierOptions& options = {});
Model vgg(int depth, bool batch_norm, const DropoutClassifierOptions& options = {});  // 11, 13, 16, 19

Model resnet(int depth, const ClassifierOptions& options = {});  // 18, 34, 50, 101, 152; v1.5
Model resnext50(const ClassifierOptions& options = {});          // 32x4d
inline Model resnet50(const ClassifierOptions& options = {}) {
  return resnet(50, options);
}
inline Model resnet18(const ClassifierOptions& options = {}) {
  return resnet(18, options);
}

// For images of about 32 x 32.
struct ResNetSmallOptions {
  int64_t classes = 10;
  int64_t image_size = 28;
  int64_t channels = 1;
  int64_t width = 16;                       // channels of the first stage
  std::vector<int64_t> blocks = {1, 1, 1};  // residual blocks of each stage
  double dropout = 0;                       // before the last layer
};
Model resnet_small(const ResNetSmallOptions& options = {});

}  // namespace tessera::models
