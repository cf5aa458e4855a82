#include "tessera/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tessera::optim {
namespace {

// From `start` to `end` along half a cosine; progress in [0, 1].
double cosine_between(double start, double end, double progress) {
  return end + (start - end) * 0.5 * (1 + std::cos(std::numbers::pi * std::clamp(progress, 0.0, 1.0)));
}

double progress_of(int64_t step, int64_t total) {
  return total <= 0 ? 1.0 : std::min(1.0, static_cast<double>(step) / static_cast<double>(total));
}

}  // namespace

Schedule constant() {
  return {};
}

Schedule step(std::vector<int64_t> milestones, double gamma) {
  return {"step", [milestones = std::move(milestones), gamma](int64_t now) {
            const auto passed =
                std::count_if(milestones.begin(), milestones.end(), [&](int64_t m) { return m <= now; });
            return std::pow(gamma, static_cast<double>(passed));
          }};
}

Schedule cosine(int64_t total_steps, double final_factor) {
  return {"cosine",
          [=](int64_t now) { return cosine_between(1, final_factor, progress_of(now, total_steps)); }};
}

Schedule polynomial(int64_t total_steps, double power, double final_factor) {
  return {"polynomial", [=](int64_t now) {
            return std::max(final_factor, std::pow(1 - progress_of(now, total_steps), power));
          }};
}

Schedule one_cycle(int64_t total_steps, double rise, double initial, double final) {
  return {"one_cycle", [=](int64_t now) {
            const double top = rise * static_cast<double>(total_steps) - 1;
            const double length = static_cast<double>(total_steps) - 1 - top;
            const auto position = static_cast<double>(now);
            if (position <= top) return cosine_between(initial, 1, top > 0 ? position / top : 1);
            return cosine_between(1, final, length > 0 ? (position - top) / length : 1);
          }};
}

Schedule inverse_sqrt(int64_t steps) {
  const auto first = static_cast<double>(std::max<int64_t>(steps, 1));
  return {"inverse_sqrt",
          [first](int64_t now) { return std::sqrt(first / std::max(first, static_cast<double>(now))); }};
}

Schedule warmup(int64_t steps, const Schedule& after, double initial) {
  return {"warmup+" + after.name, [steps, initial, factor = after.factor](int64_t now) {
            if (now >= steps) return factor(now);
            const double progress = static_cast<double>(now + 1) / static_cast<double>(steps);
            return (initial + (1 - initial) * progress) * factor(now);
          }};
}

}  // namespace tessera::optim
