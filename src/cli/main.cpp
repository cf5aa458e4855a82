#include <csignal>
#include <cstdio>
#include <system_error>

#include <fmt/format.h>

#include "tessera/base/error.h"

#include "cli/commands.h"

namespace tessera::cli {
namespace {

std::atomic<bool> stop_requested{false};

void on_signal(int signal) {
  if (stop_requested.exchange(true)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

// docs/command_line.md holds the table.
int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return 2;
    case ErrorCode::invalid_graph:
      return 3;
    case ErrorCode::invalid_file:
      return 4;
    case ErrorCode::io:
      return 5;
    case ErrorCode::out_of_memory:
      return 6;
    case ErrorCode::unsupported:
      return 7;
    case ErrorCode::not_finite:
      return 8;
    case ErrorCode::internal:
      break;
  }
  return 70;
}

int run(int argc, char** argv) {
  CLI::App program("Tessera: trains, examines and runs neural networks, without Python.", "tessera");
  program.require_subcommand(1);
  program.set_version_flag("--version", TESSERA_VERSION);
  program.footer(
      "Exit codes: 0 success, 2 wrong use, 3 invalid graph, 4 invalid file, 5 input or output failed,\n"
      "6 out of memory, 7 unsupported here, 8 the loss became NaN or infinite, 70 a fault of ours,\n"
      "130 interrupted (training state saved).");
  add_train(program);
  add_eval(program);
  add_predict(program);
  add_bench(program);
  add_explain(program);
  add_profile(program);
  add_doctor(program);
  add_models(program);
  try {
    program.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return program.exit(help);
  } catch (const CLI::CallForAllHelp& help) {
    return program.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return program.exit(version);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "tessera: {} (see --help)\n", error.what());
    return 2;
  }
  return 0;
}

}  // namespace

const std::atomic<bool>& stop_flag() {
  return stop_requested;
}

void install_stop_handler() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

// A full disk behind standard output shows at the latest when its last bytes are written.
static int checked_run(int argc, char** argv) {
  const int code = run(argc, argv);
  require(std::fflush(stdout) == 0 && std::ferror(stdout) == 0, ErrorCode::io,
          "standard output: not everything could be written");
  return code;
}

static int guarded_run(int argc, char** argv) {
  try {
    return checked_run(argc, argv);
  } catch (const Interrupted&) {
    return 130;
  } catch (const Error& error) {
    fmt::print(stderr, "tessera: {}\n", error.what());
    return exit_code(error.code());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "tessera: out of memory\n");
    return exit_code(ErrorCode::out_of_memory);
  } catch (const std::system_error& error) {  // of printing, of the file system, or of starting a thread
    fmt::print(stderr, "tessera: {}\n", error.what());
    const bool scarce = error.code() == std::errc::resource_unavailable_try_again ||
                        error.code() == std::errc::not_enough_memory;
    return exit_code(scarce ? ErrorCode::out_of_memory : ErrorCode::io);
  } catch (const std::exception& error) {
    fmt::print(stderr, "tessera: internal fault: {}\n", error.what());
    return exit_code(ErrorCode::internal);
  }
}

}  // namespace tessera::cli

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit is then an error like a full disk
  return tessera::cli::guarded_run(argc, argv);
}
