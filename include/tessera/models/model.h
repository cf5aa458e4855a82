// Networks by name: functions from images to logits.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/nn/context.h"

namespace tessera::models {

// What all networks share; each takes what concerns it.
struct ModelOptions {
  int64_t classes = 1000;
  int64_t image_size = 224;  // height and width
  int64_t channels = 3;
  int64_t width = 16;                        // resnet_small: channels of the first stage
  std::vector<int64_t> blocks = {1, 1, 1};   // resnet_small: residual blocks of each stage
  std::vector<int64_t> hidden = {256, 128};  // mlp: units of each hidden layer
  double dropout = 0;                        // where the network has a place for it; AlexNet and VGG: 0.5
};

// A network that can be built into any graph, for training or inference, at any batch size.
struct Model {
  std::string name;
  ModelOptions options;
  // images: fp32 [batch, image_size, image_size, channels]; returns logits [batch, classes].
  std::function<Value*(nn::Context& context, Value* images)> forward;

  // The type of the images with a batch of that size, or Dimension::symbol("batch").
  TensorType input_type(const Dimension& batch) const;
};

struct ModelDescription {
  std::string name;
  std::string documentation;  // one line with the source
  ModelOptions defaults;
  std::function<Model(const ModelOptions& options)> create;
};

// Every network, sorted by name.
const std::vector<ModelDescription>& all();
// Throws Error(invalid_argument) with the nearest name.
Model create(const std::string& name, const ModelOptions& options);
const ModelDescription& describe(const std::string& name);

// The forward graph alone: input "images", output "logits"; and its variables.
struct Network {
  std::unique_ptr<Graph> graph;
  std::vector<nn::Variable> variables;
};
Network build(const Model& model, const Dimension& batch, nn::Mode mode = nn::Mode::inference);
// Trainable numbers; running statistics do not count.
int64_t parameter_count(const std::vector<nn::Variable>& variables);

Model mlp(const ModelOptions& options);
Model lenet(const ModelOptions& options);
Model alexnet(const ModelOptions& options);
Model vgg(int depth, bool batch_norm, const ModelOptions& options);  // 11, 13, 16, 19
Model resnet(int depth, const ModelOptions& options);                // 18, 34, 50, 101, 152; v1.5
Model resnext50(const ModelOptions& options);                        // 32x4d
Model resnet_small(const ModelOptions& options);                     // for images of about 32 x 32
inline Model resnet50(const ModelOptions& options = {}) {
  return resnet(50, options);
}
inline Model resnet18(const ModelOptions& options = {}) {
  return resnet(18, options);
}

}  // namespace tessera::models
