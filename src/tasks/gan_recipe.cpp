// A GAN as recipes ask for it.
#include "tessera/tasks/gan.h"
#include "tessera/train/task_registry.h"

#include "tasks/data_kind.h"
#include "tasks/image_data.h"

namespace tessera::tasks {
namespace {

const GanOptions kDefaults;

std::vector<Option> model_options() {
  return {{.key = "noise",
           .value = kDefaults.noise,
           .documentation = "Numbers that a picture is made of",
           .limits = Limits::between(1, 65536)},
          {.key = "width",
           .value = kDefaults.width,
           .documentation = "Channels of the layers next to the picture",
           .limits = Limits::between(1, 65536)}};
}

std::shared_ptr<const data::Source> test_images(const Options& settings) {
  return images_in_order(image_dataset(settings, data::Split::test), settings);
}

train::TestSet make_test_set(const Options& settings) {
  return {test_images(settings), gan_evaluator()};
}

train::PredictionSet make_predictions(const Options& settings) {
  return {test_images(settings), gan_text()};
}

train::Workload create(const Options& settings) {
  return {.task = gan({.image_size = settings.integer("data.image_size"),
                       .channels = settings.integer("data.channels"),
                       .noise = settings.integer("model.noise"),
                       .width = settings.integer("model.width"),
                       .images = image_input(settings)}),
          .data = data_name(settings),
          .training =
              [settings] { return training_images(image_dataset(settings, data::Split::train), settings); },
          .test = [settings] { return make_test_set(settings); },
          .phases = gan_phases,
          .predictions = [settings] { return make_predictions(settings); }};
}

std::vector<Contradiction> check(const Options& settings) {
  std::vector<Contradiction> found = check_image_data(settings);
  if (settings.integer("data.image_size") % 4 != 0)
    found.push_back({{"data.image_size"}, "'data.image_size' must be a multiple of 4: it is halved twice"});
  if (has_open_size(settings))
    found.push_back(
        {{"data.test_size", "data.rectangular"},
         "'data.test_size' and 'data.rectangular' are not for a network that makes images of one size"});
  return found;
}

const train::TaskRegistration kRegistration(
    {.name = "gan",
     .documentation =
         "A generator of pictures and a discriminator, against each other (Radford et al. 2016). Images are "
         "taken to -1..1 by `data.mean` and `data.std` of 0.5; labels are not read.",
     .sections = {{"model", model_options()}, image_data_options()},
     .check = check,
     .create = create});

}  // namespace
}  // namespace tessera::tasks
