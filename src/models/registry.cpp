#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/models/model.h"

namespace tessera::models {

TensorType Model::input_type(const Dimension& batch) const {
  return {DataType::fp32, {batch, options.image_size, options.image_size, options.channels}};
}

const std::vector<ModelDescription>& all() {
  static const std::vector<ModelDescription> models = [] {
    const ModelOptions digits{.classes = 10, .image_size = 28, .channels = 1};
    ModelOptions with_dropout;
    with_dropout.dropout = 0.5;
    const auto vgg_of = [](int depth, bool norm) {
      return [=](const ModelOptions& options) { return vgg(depth, norm, options); };
    };
    const auto resnet_of = [](int depth) {
      return [=](const ModelOptions& options) { return resnet(depth, options); };
    };
    const char* const vgg_source = "VGG (Simonyan and Zisserman 2015)";
    const char* const resnet_source = "ResNet v1.5 (He et al. 2016; stride in the 3x3 convolution)";
    return std::vector<ModelDescription>{
        {"alexnet", "AlexNet, one tower (Krizhevsky 2014)", with_dropout, alexnet},
        {"lenet", "LeNet-5 with ReLU and max pooling (LeCun et al. 1998)", digits, lenet},
        {"mlp", "multilayer perceptron with ReLU", digits, mlp},
        {"resnet101", resnet_source, {}, resnet_of(101)},
        {"resnet152", resnet_source, {}, resnet_of(152)},
        {"resnet18", resnet_source, {}, resnet_of(18)},
        {"resnet34", resnet_source, {}, resnet_of(34)},
        {"resnet50", resnet_source, {}, resnet_of(50)},
        {"resnet_small", "residual network for small images (He et al. 2016, section 4.2)", digits,
         resnet_small},
        {"resnext50", "ResNeXt-50 32x4d (Xie et al. 2017)", {}, resnext50},
        {"vgg11", vgg_source, with_dropout, vgg_of(11, false)},
        {"vgg11_bn", vgg_source, with_dropout, vgg_of(11, true)},
        {"vgg13", vgg_source, with_dropout, vgg_of(13, false)},
        {"vgg13_bn", vgg_source, with_dropout, vgg_of(13, true)},
        {"vgg16", vgg_source, with_dropout, vgg_of(16, false)},
        {"vgg16_bn", vgg_source, with_dropout, vgg_of(16, true)},
        {"vgg19", vgg_source, with_dropout, vgg_of(19, false)},
        {"vgg19_bn", vgg_source, with_dropout, vgg_of(19, true)},
    };
  }();
  return models;
}

const ModelDescription& describe(const std::string& name) {
  std::vector<std::string> names;
  for (const ModelDescription& model : all()) {
    if (model.name == name) return model;
    names.push_back(model.name);
  }
  fail(ErrorCode::invalid_argument, "there is no model '{}'{} (`tessera models` lists them)", name,
       did_you_mean(name, names));
}

Model create(const std::string& name, const ModelOptions& options) {
  return describe(name).create(options);
}

Network build(const Model& model, const Dimension& batch, nn::Mode mode) {
  Network network;
  network.graph = std::make_unique<Graph>(model.name);
  nn::Context context(*network.graph, mode);
  Value* images = network.graph->add_input(InputRole::input, "images", model.input_type(batch));
  network.graph->add_output("logits", model.forward(context, images));
  network.variables = context.variables();
  return network;
}

int64_t parameter_count(const std::vector<nn::Variable>& variables) {
  int64_t count = 0;
  for (const nn::Variable& variable : variables) {
    if (variable.role == InputRole::parameter) count += element_count(variable.shape);
  }
  return count;
}

}  // namespace tessera::models
