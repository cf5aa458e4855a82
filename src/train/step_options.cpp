#include "train/step_options.h"

#include "tessera/base/error.h"

namespace tessera::train {
namespace {

constexpr auto kCode = ErrorCode::invalid_argument;

void check_local_steps(const StepOptions& options) {
  require(options.local_steps >= 1, kCode, "local_steps is {}: ranks average after 1 step or more",
          options.local_steps);
  if (options.local_steps == 1) return;
  require(options.gradient_delay == 0, kCode,
          "local_steps and gradient_delay exclude each other: ranks exchange either parameters or gradients");
  require(options.ranks.batch_norm_ranks == 1, kCode,
          "local_steps and batch_norm_ranks exclude each other: a local step waits for no other rank");
  require(
      !options.shard_optimizer, kCode,
      "local_steps and shard_optimizer exclude each other: in a local step a rank updates all parameters");
}

void check_reduce_type(const StepOptions& options) {
  const DataType type = options.reduce_type;
  require(type == DataType::fp32 || type == DataType::bf16 || type == DataType::fp16, kCode,
          "gradients cannot be added up over ranks as {}: fp32, bf16 or fp16", to_string(type));
  require(type != DataType::fp16 || options.precision == Precision::fp16, kCode,
          "gradients travel as fp16 only where precision is fp16: without a loss scale many would be 0");
}

}  // namespace

void check_step_options(const StepOptions& options) {
  require(options.gradient_delay == 0 || options.gradient_delay == 1, kCode,
          "gradient_delay is {}: gradients can be of this step (0) or of the one before it (1)",
          options.gradient_delay);
  check_local_steps(options);
  check_reduce_type(options);
}

bool is_local(const StepOptions& options) {
  return options.local_steps > 1 && options.ranks.count > 1;
}

}  // namespace tessera::train
