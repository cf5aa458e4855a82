#include "tessera/base/error.h"
#include "tessera/nn/layers.h"

#include "models/common_options.h"

namespace tessera::models {
namespace {

// Convolutions before each of the five poolings.
std::vector<int> stages_of(int depth) {
  switch (depth) {
    case 11:
      return {1, 1, 2, 2, 2};
    case 13:
      return {2, 2, 2, 2, 2};
    case 16:
      return {2, 2, 3, 3, 3};
    case 19:
      return {2, 2, 4, 4, 4};
    default:
      fail(ErrorCode::invalid_argument, "VGG comes with 11, 13, 16 or 19 layers, not {}", depth);
  }
}

std::string name_of(int depth, bool batch_norm) {
  return "vgg" + std::to_string(depth) + (batch_norm ? "_bn" : "");
}

}  // namespace

Model vgg(int depth, bool batch_norm, const DropoutClassifierOptions& options) {
  const std::vector<int> stages = stages_of(depth);
  return {name_of(depth, batch_norm),
          {options.classes, options.image_size, options.channels},
          [=](nn::Context& context, Value* x) {
            int place = 0;  // in torchvision's sequence, which counts activations and poolings too
            for (size_t stage = 0; stage < stages.size(); ++stage) {
              const int64_t width = std::min<int64_t>(int64_t{64} << stage, 512);
              for (int i = 0; i < stages[stage]; ++i) {
                x = nn::convolution(context, "features." + std::to_string(place++), x, width, 3,
                                    {.padding = 1, .weight = nn::kaiming_normal_fan_out()});
                if (batch_norm) x = nn::batch_norm(context, "features." + std::to_string(place++), x);
                x = ops::relu(x);
                ++place;
              }
              x = ops::max_pool(x, {.window = {2, 2}});
              ++place;
            }
            const auto linear = [&](const char* layer, int64_t outputs, Shape from) {
              return nn::linear(context, layer, x, outputs,
                                {.flattened_from = std::move(from), .weight = nn::normal(0.01)});
            };
            x = nn::flatten(nn::adaptive_average_pool(x, 7));
            x = nn::dropout(context, ops::relu(linear("classifier.0", 4096, {7, 7, 512})), options.dropout);
            x = nn::dropout(context, ops::relu(linear("classifier.3", 4096, {})), options.dropout);
            return linear("classifier.6", options.classes, {});
          }};
}

namespace {

NetworkDescription description_of(int depth, bool batch_norm) {
  return {.name = name_of(depth, batch_norm),
          .documentation = "VGG (Simonyan and Zisserman 2015)",
          .options = {dropout_option(DropoutClassifierOptions().dropout)},
          .create = [=](const ClassifierOptions& options, const Options& own) {
            return vgg(depth, batch_norm, with_dropout(options, own));
          }};
}

const NetworkRegistration kRegistration{
    description_of(11, false), description_of(11, true), description_of(13, false), description_of(13, true),
    description_of(16, false), description_of(16, true), description_of(19, false), description_of(19, true)};

}  // namespace
}  // namespace tessera::models
