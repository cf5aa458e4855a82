// Learning-rate schedules: the factor on the optimizer's base rate at each step.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tessera::optim {

// factor(step) for step = 0 ... total_steps - 1; a pure function, so that a resumed run has the same rates.
struct Schedule {
  std::string name = "constant";
  std::function<double(int64_t step)> factor = [](int64_t) { return 1.0; };
};

Schedule constant();
// Times gamma at each milestone (in steps).
Schedule step(std::vector<int64_t> milestones, double gamma);
// Half a cosine from 1 down to final_factor (Loshchilov and Hutter 2017).
Schedule cosine(int64_t total_steps, double final_factor = 0);
// (1 - step/total)^power, not below final_factor.
Schedule polynomial(int64_t total_steps, double power = 2, double final_factor = 0);
// Smith 2018 with cosine halves, as torch's OneCycleLR: from `initial` up to 1 in the first `rise` part, then
// down to `final`.
Schedule one_cycle(int64_t total_steps, double rise = 0.3, double initial = 1.0 / 25,
                   double final = 1.0 / 250000);
// sqrt(steps / step) after so many steps, at least 1, and 1 up to them: after a warm-up of as many, Vaswani
// et al. 2017's, as fairseq counts it.
Schedule inverse_sqrt(int64_t steps);
// Times a line from `initial` towards 1 over the first `steps`, reaching 1 at the last. `after` counts from
// step 0, so that a cosine over the run keeps its length.
Schedule warmup(int64_t steps, const Schedule& after, double initial = 0);

}  // namespace tessera::optim
