// Recipes: what to train, on which data and how, as TOML. docs/recipes.md lists every key.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/report/summary.h"

namespace tessera::recipe {

// A default-made Recipe trains nothing sensible by itself, but every member has the value that a recipe
// without the key gets; those of Optimizer are SGD's, and parse_recipe() takes each optimizer's own. The
// limits of each member and its documentation stand in src/train/recipe_fields.cpp.
struct Recipe {
  struct Model {
    std::string name = "resnet_small";
    std::optional<int64_t> classes = {};  // outputs; parse_recipe() makes it data.classes if not given
    std::optional<int64_t> width = {};    // unset or empty: the model's own, here and below
    std::vector<int64_t> blocks = {};     // residual blocks of each stage
    std::vector<int64_t> hidden = {};     // units of each hidden layer of a perceptron
    std::optional<double> dropout = {};   // probability
    std::string weights = {};             // safetensors file to start from
    bool operator==(const Model&) const = default;
  };

  struct Data {
    std::string kind = "idx";
    std::string path = {};
    int64_t image_size = 28;  // pixels, height and width of what the network sees
    int64_t channels = 1;
    int64_t classes = 10;
    std::optional<int64_t> train_images = {};  // unset: all of them
    std::optional<int64_t> test_images = {};
    bool shuffle = true;
    bool flip = false;
    int64_t crop_padding = 0;       // pixels
    int64_t cutout = 0;             // pixels
    std::vector<double> mean{0.0};  // per channel, of pixels scaled to [0, 1]
    std::vector<double> std{1.0};
    int64_t prefetch = 2;  // batches
    bool operator==(const Data&) const = default;
  };

  struct Train {
    int64_t epochs = 10;
    int64_t batch = 128;             // images of one step of each device, before accumulation
    std::string precision = "auto";  // the device's own, or as parse_precision() has them
    int64_t seed = 1;
    std::string device = "auto";
    int64_t threads = 0;     // 0: one per physical core
    int64_t accumulate = 1;  // batches whose gradients are summed before one update
    double clip_norm = 0.0;  // largest global gradient norm; 0: off
    double smoothing = 0.0;  // of the labels, in [0, 1)
    double ema_decay = 0.0;  // per step; 0: off
    bool deterministic = true;
    std::optional<bool> recompute = {};  // less memory for a little more work; unset: as the device likes it
    int64_t evaluate_every = 1;          // epochs; 0: only after the last
    int64_t checkpoint_every = 1;
    int64_t checkpoint_steps = 0;     // updates; 0: not by updates
    double checkpoint_minutes = 0.0;  // 0: not by time
    int64_t keep_checkpoints = 1;     // 0: all
    bool operator==(const Train&) const = default;
  };

  struct Optimizer {
    std::string name = "sgd";
    double learning_rate = 0.1;  // the schedule's peak
    double momentum = 0.9;
    bool nesterov = false;
    double weight_decay = 0.0;
    bool decay_all = true;  // false: biases and normalization parameters are not decayed
    double beta1 = 0.9;
    double beta2 = 0.999;
    double alpha = 0.99;
    double epsilon = 1e-8;
    double trust = 0.001;
    bool operator==(const Optimizer&) const = default;
  };

  struct Schedule {
    std::string name = "constant";
    double warmup_epochs = 0.0;
    int64_t warmup_steps = 0;
    std::vector<double> milestones = {};  // epochs
    double gamma = 0.1;
    double power = 2.0;
    double initial = 0.04;  // learning rate of the first step as a fraction of the peak
    double final = 0.0;     // learning rate of the last step as a fraction of the peak
    double peak = 0.3;      // where one_cycle peaks, as a fraction of all steps
    bool operator==(const Schedule&) const = default;
  };

  Model model;
  Data data;
  Train train;
  Optimizer optimizer;
  Schedule schedule;
  bool operator==(const Recipe&) const = default;
};

// The recipe in `text`, changed by `overrides` ("optimizer.learning_rate=0.2": a dotted key and a TOML value;
// text that is no TOML value is taken as a string). `name` stands in the messages. Throws
// Error(invalid_argument) that names the line or the override, what is wrong with it and the nearest valid
// name, on bad TOML, unknown keys, wrong types, values out of range and values that contradict each other.
// Touches no file. `warnings`, if given, gets a line for each key that has no effect on the optimizer or
// schedule chosen.
Recipe parse_recipe(std::string_view text, std::string_view name,
                    const std::vector<std::string>& overrides = {},
                    std::vector<std::string>* warnings = nullptr);

// parse_recipe() of a file; logs the warnings. Also throws when the recipe, the data folder or the weights
// that it names are not there: Error(io) with the nearest file name that is.
Recipe load_recipe(const std::filesystem::path& path, const std::vector<std::string>& overrides = {});

// Throws Error(io) that names the key when data.path or model.weights does not exist. load_recipe() calls it.
void check_recipe_files(const Recipe& recipe);

// The recipe with every value spelled out; parse_recipe() of it gives an equal recipe. Unset values stand as
// comments.
std::string to_toml(const Recipe& recipe);

// What a run that was begun with one recipe has otherwise when it goes on with another: each key that has an
// effect and differs. `asked` holds the keys that the user named for it (--set). Throws
// Error(invalid_argument) that begins with `name` and names every key that differs and decides what is
// computed, unless it was asked for, and those on which the order of the data depends in any case.
std::vector<train::SettingChange> changes_on_resume(const Recipe& begun, const Recipe& now,
                                                    const std::set<std::string>& asked,
                                                    std::string_view name);

// The keys that such overrides name.
std::set<std::string> overridden_keys(const std::vector<std::string>& overrides);

// Which keys may differ on resuming, in Markdown. docs/checkpoints.md holds it.
std::string resuming_reference();

// The table of all keys in Markdown: key, type, default, limits, meaning. docs/recipes.md holds it.
std::string recipe_reference();

}  // namespace tessera::recipe
