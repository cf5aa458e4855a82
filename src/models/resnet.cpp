#include "tessera/base/error.h"
#include "tessera/nn/layers.h"

#include "models/common_options.h"

namespace tessera::models {
namespace {

// Convolution without bias and its batch norm: layers "<prefix>conv<n>" and "<prefix>bn<n>".
Value* normalized_convolution(nn::Context& context, const std::string& convolution_name,
                              const std::string& norm_name, Value* x, int64_t outputs, int64_t kernel,
                              int64_t stride, int64_t groups = 1) {
  x = nn::convolution(context, convolution_name, x, outputs, kernel,
                      {.stride = stride,
                       .padding = kernel / 2,
                       .groups = groups,
                       .bias = false,
                       .weight = nn::kaiming_normal_fan_out()});
  return nn::batch_norm(context, norm_name, x);
}

struct BlockOptions {
  int64_t width;  // of the 3x3 convolutions
  int64_t outputs;
  int64_t stride = 1;
  int64_t groups = 1;
};

ops::Expression residual(nn::Context& context, const std::string& prefix, Value* x,
                         const BlockOptions& options) {
  if (options.stride == 1 && x->shape().back() == Dimension(options.outputs)) return x;
  return normalized_convolution(context, prefix + "downsample.0", prefix + "downsample.1", x, options.outputs,
                                1, options.stride);
}

Value* basic_block(nn::Context& context, const std::string& prefix, Value* x, const BlockOptions& options) {
  Value* y =
      normalized_convolution(context, prefix + "conv1", prefix + "bn1", x, options.width, 3, options.stride);
  y = normalized_convolution(context, prefix + "conv2", prefix + "bn2", ops::relu(y), options.outputs, 3, 1);
  return ops::relu(y + residual(context, prefix, x, options));
}

Value* bottleneck(nn::Context& context, const std::string& prefix, Value* x, const BlockOptions& options) {
  Value* y = normalized_convolution(context, prefix + "conv1", prefix + "bn1", x, options.width, 1, 1);
  y = normalized_convolution(context, prefix + "conv2", prefix + "bn2", ops::relu(y), options.width, 3,
                             options.stride, options.groups);
  y = normalized_convolution(context, prefix + "conv3", prefix + "bn3", ops::relu(y), options.outputs, 1, 1);
  return ops::relu(y + residual(context, prefix, x, options));
}

struct ResNetLayout {
  std::string name;
  std::vector<int64_t> blocks;  // per stage
  bool bottlenecks = false;
  int64_t groups = 1;
  int64_t base_width = 64;  // of a bottleneck's 3x3 convolution in the first stage, per group
};

Model resnet_of(const ResNetLayout& layout, const ClassifierOptions& options) {
  return {layout.name, options, [=](nn::Context& context, Value* x) {
            x = ops::relu(normalized_convolution(context, "conv1", "bn1", x, 64, 7, 2));
            x = ops::max_pool(x, {.window = {3, 3}, .strides = {2, 2}, .padding_low = {1, 1}});
            for (size_t stage = 0; stage < layout.blocks.size(); ++stage) {
              const int64_t planes = int64_t{64} << stage;
              for (int64_t block = 0; block < layout.blocks[stage]; ++block) {
                const std::string prefix =
                    "layer" + std::to_string(stage + 1) + "." + std::to_string(block) + ".";
                const int64_t stride = block == 0 && stage > 0 ? 2 : 1;
                x = layout.bottlenecks ? bottleneck(context, prefix, x,
                                                    {planes * layout.base_width / 64 * layout.groups,
                                                     planes * 4, stride, layout.groups})
                                       : basic_block(context, prefix, x, {planes, planes, stride});
              }
            }
            return nn::linear(context, "fc", ops::global_average_pool(x), options.classes);
          }};
}

std::string name_of(int depth) {
  return "resnet" + std::to_string(depth);
}

}  // namespace

Model resnet(int depth, const ClassifierOptions& options) {
  const std::string name = name_of(depth);
  switch (depth) {
    case 18:
      return resnet_of({name, {2, 2, 2, 2}}, options);
    case 34:
      return resnet_of({name, {3, 4, 6, 3}}, options);
    case 50:
      return resnet_of({name, {3, 4, 6, 3}, true}, options);
    case 101:
      return resnet_of({name, {3, 4, 23, 3}, true}, options);
    case 152:
      return resnet_of({name, {3, 8, 36, 3}, true}, options);
    default:
      fail(ErrorCode::invalid_argument, "ResNet comes with 18, 34, 50, 101 or 152 layers, not {}", depth);
  }
}

Model resnext50(const ClassifierOptions& options) {
  return resnet_of(
      {.name = "resnext50", .blocks = {3, 4, 6, 3}, .bottlenecks = true, .groups = 32, .base_width = 4},
      options);
}

Model resnet_small(const ResNetSmallOptions& options) {
  return {"resnet_small",
          {options.classes, options.image_size, options.channels},
          [options](nn::Context& context, Value* x) {
            x = ops::relu(normalized_convolution(context, "conv1", "bn1", x, options.width, 3, 1));
            for (size_t stage = 0; stage < options.blocks.size(); ++stage) {
              const int64_t planes = options.width << stage;
              for (int64_t block = 0; block < options.blocks[stage]; ++block) {
                const std::string prefix =
                    "layer" + std::to_string(stage + 1) + "." + std::to_string(block) + ".";
                x = basic_block(context, prefix, x, {planes, planes, block == 0 && stage > 0 ? 2 : 1});
              }
            }
            x = nn::dropout(context, ops::global_average_pool(x), options.dropout);
            return nn::linear(context, "fc", x, options.classes);
          }};
}

namespace {

NetworkDescription description_of(int depth) {
  return {.name = name_of(depth),
          .documentation = "ResNet v1.5 (He et al. 2016; stride in the 3x3 convolution)",
          .create = [=](const ClassifierOptions& options, const Options&) { return resnet(depth, options); }};
}

NetworkDescription small_description() {
  const ResNetSmallOptions defaults;
  return {.name = "resnet_small",
          .documentation = "residual network for small images (He et al. 2016, section 4.2)",
          .defaults = kDigits,
          .options = {{.key = "width",
                       .value = defaults.width,
                       .documentation = "Channels of the first stage",
                       .limits = Limits::between(1, 65536)},
                      {.key = "blocks",
                       .value = defaults.blocks,
                       .documentation = "Residual blocks of each stage",
                       .limits = Limits::between(1, 1000)},
                      dropout_option(defaults.dropout)},
          .create = [](const ClassifierOptions& options, const Options& own) {
            return resnet_small({.classes = options.classes,
                                 .image_size = options.image_size,
                                 .channels = options.channels,
                                 .width = own.integer("width"),
                                 .blocks = own.integers("blocks"),
                                 .dropout = own.real("dropout")});
          }};
}

const NetworkRegistration kRegistration{
    description_of(18),
    description_of(34),
    description_of(50),
    description_of(101),
    description_of(152),
    {.name = "resnext50",
     .documentation = "ResNeXt-50 32x4d (Xie et al. 2017)",
     .create = [](const ClassifierOptions& options, const Options&) { return resnext50(options); }},
    small_description()};

}  // namespace
}  // namespace tessera::models
