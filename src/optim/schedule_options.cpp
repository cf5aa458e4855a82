// Schedules as recipes ask for them: in epochs, with a warm-up.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tessera/optim/registry.h"

namespace tessera::optim {
namespace {

int64_t steps_of(double epochs, int64_t steps_per_epoch) {
  return static_cast<int64_t>(std::lround(epochs * static_cast<double>(steps_per_epoch)));
}

Option initial_option() {
  return {.key = "initial",
          .value = 0.04,
          .documentation = "Learning rate of the first step of a warm-up or cycle, as a fraction of the peak",
          .limits = Limits::between(0, 1)};
}

Option final_option() {
  return {.key = "final",
          .value = 0.0,
          .documentation = "Learning rate after the last step, as a fraction of the peak",
          .limits = Limits::between(0, 1)};
}

std::vector<Option> with_warmup(std::vector<Option> options) {
  options.insert(options.begin(),
                 {{.key = "warmup_epochs",
                   .value = 0.0,
                   .documentation = "Epochs of linear rise from `initial` to the peak; may be a fraction",
                   .limits = Limits::between(0, 1e6)},
                  {.key = "warmup_steps",
                   .value = int64_t{0},
                   .documentation = "The same in steps; only one of the two may be given",
                   .limits = Limits::between(0, 1e9)}});
  options.push_back(initial_option());
  return options;
}

int64_t warmup_steps_of(const Options& options, int64_t steps_per_epoch) {
  return options.integer("warmup_steps") + steps_of(options.real("warmup_epochs"), steps_per_epoch);
}

Schedule warmed_up(const Options& options, int64_t steps_per_epoch, const Schedule& after) {
  const int64_t steps = warmup_steps_of(options, steps_per_epoch);
  return steps > 0 ? warmup(steps, after, options.real("initial")) : after;
}

std::vector<Contradiction> check_warmup(const Options& options) {
  if (options.real("warmup_epochs") == 0 || options.integer("warmup_steps") == 0) return {};
  return {{{"warmup_epochs", "warmup_steps"},
           "only one of 'schedule.warmup_epochs' and 'schedule.warmup_steps' may be above 0"}};
}

std::vector<Contradiction> check_milestones(const Options& options) {
  std::vector<Contradiction> found = check_warmup(options);
  const std::vector<double> milestones = options.reals("milestones");
  if (milestones.empty()) {
    found.push_back(
        {{"name", "milestones"}, "the step schedule needs 'schedule.milestones', such as [30, 60, 80]"});
  }
  if (std::adjacent_find(milestones.begin(), milestones.end(), std::greater_equal<>()) != milestones.end())
    found.push_back({{"milestones"}, "'schedule.milestones' must rise"});
  return found;
}

const ScheduleRegistration kConstant({.name = "constant",
                                      .options = with_warmup({}),
                                      .create =
                                          [](const Options& options, int64_t, int64_t per_epoch) {
                                            return warmed_up(options, per_epoch, constant());
                                          },
                                      .check = check_warmup});

const ScheduleRegistration kStep(
    {.name = "step",
     .options =
         with_warmup({{.key = "milestones",
                       .value = std::vector<double>{},
                       .documentation = "Epochs, rising, at which the learning rate is multiplied by `gamma`",
                       .limits = {.low = 0, .high = 1e6, .low_open = true},
                       .unset = "none"},
                      {.key = "gamma",
                       .value = 0.1,
                       .documentation = "Factor at each milestone",
                       .limits = {.low = 0, .high = 1, .low_open = true}}}),
     .create =
         [](const Options& options, int64_t, int64_t per_epoch) {
           std::vector<int64_t> milestones;
           for (const double epochs : options.reals("milestones"))
             milestones.push_back(steps_of(epochs, per_epoch));
           return warmed_up(options, per_epoch, step(milestones, options.real("gamma")));
         },
     .check = check_milestones});

const ScheduleRegistration kCosine({.name = "cosine",
                                    .options = with_warmup({final_option()}),
                                    .create =
                                        [](const Options& options, int64_t total, int64_t per_epoch) {
                                          return warmed_up(options, per_epoch,
                                                           cosine(total, options.real("final")));
                                        },
                                    .check = check_warmup});

const ScheduleRegistration kPolynomial(
    {.name = "polynomial",
     .options = with_warmup({{.key = "power",
                              .value = 2.0,
                              .documentation = "Exponent of the polynomial; 1: a straight line",
                              .limits = {.low = 0, .high = 100, .low_open = true}},
                             final_option()}),
     .create =
         [](const Options& options, int64_t total, int64_t per_epoch) {
           const Schedule after = polynomial(total, options.real("power"), options.real("final"));
           return warmed_up(options, per_epoch, after);
         },
     .check = check_warmup});

// Without a rise it falls from the first step on.
const ScheduleRegistration kInverseSqrt({.name = "inverse_sqrt",
                                         .options = with_warmup({}),
                                         .create =
                                             [](const Options& options, int64_t, int64_t per_epoch) {
                                               return warmed_up(
                                                   options, per_epoch,
                                                   inverse_sqrt(warmup_steps_of(options, per_epoch)));
                                             },
                                         .check = check_warmup});

const ScheduleRegistration kOneCycle(
    {.name = "one_cycle",
     .options = {initial_option(),
                 final_option(),
                 {.key = "peak",
                  .value = 0.3,
                  .documentation = "Where the cycle peaks, as a fraction of all steps",
                  .limits = {.low = 0, .high = 1, .low_open = true, .high_open = true}}},
     .create = [](const Options& options, int64_t total, int64_t) {
       return one_cycle(total, options.real("peak"), options.real("initial"), options.real("final"));
     }});

}  // namespace
}  // namespace tessera::optim
