#include "cli/run_options.h"

namespace tessera::cli {

void add_run_arguments(CLI::App& command, RunArguments& arguments) {
  command.add_option("run", arguments.folder, "Folder that `tessera train --out` filled")->required();
  command.add_option("--data", arguments.data, "The data's file or folder, if not the recipe's");
  command.add_option("--device", arguments.device,
                     "auto, cpu, cuda, cuda:1 or reference, if not the recipe's");
}

void add_precision(CLI::App& command, RunArguments& arguments) {
  command.add_option("--precision", arguments.precision, "fp32, tf32, bf16 or fp16, if not the recipe's");
}

std::vector<std::string> overrides_of(const RunArguments& arguments) {
  std::vector<std::string> overrides;
  if (!arguments.data.empty()) overrides.push_back("data.path=" + arguments.data);
  if (!arguments.device.empty()) overrides.push_back("train.device=" + arguments.device);
  if (!arguments.precision.empty()) overrides.push_back("train.precision=" + arguments.precision);
  return overrides;
}

}  // namespace tessera::cli
