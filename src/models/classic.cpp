// The networks without normalization: perceptron, LeNet, AlexNet.
#include "tessera/nn/layers.h"

#include "models/common_options.h"

namespace tessera::models {

Model mlp(const MlpOptions& options) {
  return {"mlp",
          {options.classes, options.image_size, options.channels},
          [options](nn::Context& context, Value* x) {
            x = nn::flatten(x);
            size_t layer = 1;
            for (int64_t units : options.hidden) {
              x = ops::relu(nn::linear(context, "fc" + std::to_string(layer++), x, units));
              x = nn::dropout(context, x, options.dropout);
            }
            return nn::linear(context, "fc" + std::to_string(layer), x, options.classes);
          }};
}

Model lenet(const ClassifierOptions& options) {
  return {"lenet", options, [options](nn::Context& context, Value* x) {
            const ops::PoolOptions halve{.window = {2, 2}};
            x = ops::max_pool(ops::relu(nn::convolution(context, "conv1", x, 6, 5, {.padding = 2})), halve);
            x = ops::max_pool(ops::relu(nn::convolution(context, "conv2", x, 16, 5)), halve);
            const int64_t size = x->shape()[1].value();
            x = nn::flatten(x);
            x = ops::relu(nn::linear(context, "fc1", x, 120, {.flattened_from = {size, size, 16}}));
            x = ops::relu(nn::linear(context, "fc2", x, 84));
            return nn::linear(context, "fc3", x, options.classes);
          }};
}

Model alexnet(const DropoutClassifierOptions& options) {
  return {"alexnet",
          {options.classes, options.image_size, options.channels},
          [options](nn::Context& context, Value* x) {
            const ops::PoolOptions pool{.window = {3, 3}, .strides = {2, 2}};
            const auto layer = [&](const char* name, Value* input, int64_t outputs, int64_t kernel,
                                   int64_t stride) {
              const int64_t padding = kernel == 11 ? 2 : kernel / 2;
              return ops::relu(nn::convolution(context, name, input, outputs, kernel,
                                               {.stride = stride, .padding = padding}));
            };
            x = ops::max_pool(layer("features.0", x, 64, 11, 4), pool);
            x = ops::max_pool(layer("features.3", x, 192, 5, 1), pool);
            x = layer("features.6", x, 384, 3, 1);
            x = layer("features.8", x, 256, 3, 1);
            x = ops::max_pool(layer("features.10", x, 256, 3, 1), pool);
            x = nn::flatten(nn::adaptive_average_pool(x, 6));
            x = nn::dropout(context, x, options.dropout);
            x = ops::relu(nn::linear(context, "classifier.1", x, 4096, {.flattened_from = {6, 6, 256}}));
            x = nn::dropout(context, x, options.dropout);
            x = ops::relu(nn::linear(context, "classifier.4", x, 4096));
            return nn::linear(context, "classifier.6", x, options.classes);
          }};
}

namespace {

const NetworkRegistration kRegistration{
    {.name = "mlp",
     .documentation = "multilayer perceptron with ReLU",
     .defaults = kDigits,
     .options = {{.key = "hidden",
                  .value = MlpOptions().hidden,
                  .documentation = "Units of each hidden layer",
                  .limits = Limits::between(1, 1 << 20)},
                 dropout_option(MlpOptions().dropout)},
     .create =
         [](const ClassifierOptions& options, const Options& own) {
           return mlp({.classes = options.classes,
                       .image_size = options.image_size,
                       .channels = options.channels,
                       .hidden = own.integers("hidden"),
                       .dropout = own.real("dropout")});
         }},
    {.name = "lenet",
     .documentation = "LeNet-5 with ReLU and max pooling (LeCun et al. 1998)",
     .defaults = kDigits,
     .create = [](const ClassifierOptions& options, const Options&) { return lenet(options); }},
    {.name = "alexnet",
     .documentation = "AlexNet, one tower (Krizhevsky 2014)",
     .options = {dropout_option(DropoutClassifierOptions().dropout)},
     .create = [](const ClassifierOptions& options,
                  const Options& own) { return alexnet(with_dropout(options, own)); }},
};

}  // namespace
}  // namespace tessera::models
