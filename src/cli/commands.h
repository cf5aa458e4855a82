// The subcommands: each adds itself to the program; its callback does the work and throws Error.
#pragma once

#include <atomic>

#include <CLI/CLI.hpp>

namespace tessera::cli {

void add_train(CLI::App& program);
void add_eval(CLI::App& program);
void add_predict(CLI::App& program);
void add_bench(CLI::App& program);
void add_explain(CLI::App& program);
void add_profile(CLI::App& program);
void add_doctor(CLI::App& program);
void add_models(CLI::App& program);

// Set by SIGINT, SIGTERM and SIGHUP after install_stop_handler(); a second SIGINT ends the program at once.
// Standard output whose reader went away is from then on an error of writing, no longer the program's end.
const std::atomic<bool>& stop_flag();
void install_stop_handler();

// Thrown when a run was stopped by a signal after it saved its state: exit code 130.
struct Interrupted {};

}  // namespace tessera::cli
