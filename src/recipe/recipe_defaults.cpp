#include "recipe/recipe_defaults.h"

#include "tessera/optim/optimizer.h"

namespace tessera::recipe {
namespace {

using IsGiven = std::function<bool(std::string_view path)>;

// The optimizer's own defaults, from the options of its function.
template <typename Options>
void take_defaults(Recipe::Optimizer& optimizer, const IsGiven& is_given) {
  const Options own;
  const auto take = [&](std::string_view path, double& member, double value) {
    if (!is_given(path)) member = value;
  };
  take("optimizer.learning_rate", optimizer.learning_rate, own.learning_rate);
  take("optimizer.weight_decay", optimizer.weight_decay, own.weight_decay);
  if constexpr (requires { own.momentum; }) take("optimizer.momentum", optimizer.momentum, own.momentum);
  if constexpr (requires { own.beta1; }) take("optimizer.beta1", optimizer.beta1, own.beta1);
  if constexpr (requires { own.beta2; }) take("optimizer.beta2", optimizer.beta2, own.beta2);
  if constexpr (requires { own.alpha; }) take("optimizer.alpha", optimizer.alpha, own.alpha);
  if constexpr (requires { own.epsilon; }) take("optimizer.epsilon", optimizer.epsilon, own.epsilon);
  if constexpr (requires { own.eta; }) take("optimizer.trust", optimizer.trust, own.eta);
}

void fill_in_optimizer(Recipe::Optimizer& optimizer, const IsGiven& is_given) {
  const std::string& name = optimizer.name;
  if (name == "sgd") take_defaults<optim::SgdOptions>(optimizer, is_given);
  if (name == "adam" || name == "adamw") take_defaults<optim::AdamOptions>(optimizer, is_given);
  if (name == "lamb") take_defaults<optim::LambOptions>(optimizer, is_given);
  if (name == "lars") take_defaults<optim::LarsOptions>(optimizer, is_given);
  if (name == "rmsprop") take_defaults<optim::RmspropOptions>(optimizer, is_given);
}

}  // namespace

void fill_in(Recipe& recipe, const IsGiven& is_given) {
  fill_in_optimizer(recipe.optimizer, is_given);
  if (!recipe.model.classes) recipe.model.classes = recipe.data.classes;
  if (recipe.data.kind == "synthetic") {
    if (!recipe.data.train_images) recipe.data.train_images = 10000;
    if (!recipe.data.test_images) recipe.data.test_images = 1000;
  }
}

}  // namespace tessera::recipe
