#include <chrono>
#include <csignal>
#include <cstdio>
#include <new>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "tessera/base/foreign_error.h"
#include "tessera/base/text.h"
#include "tessera/distribute/exchange.h"

#include "cli/commands.h"

namespace tessera::cli {
namespace {

std::atomic<bool> stop_requested{false};

// A user who presses Ctrl-C twice does not want to wait. The others come in pairs by themselves: a session
// that ends sends SIGHUP after SIGTERM, or twice.
void on_signal(int signal) {
  const bool again = stop_requested.exchange(true);
  if (again && signal == SIGINT) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

// A descriptor that is closed would be given to the next file that is opened, and messages would go into it:
// make it one that cannot be written.
void fill_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) < 0) {
      [[maybe_unused]] const int opened =
          ::open("/dev/null", O_RDONLY);  // gets the lowest number that is free
    }
  }
}

// One line on standard error, if that can be written: what could not be told is no reason for another exit
// code.
void complain(const char* message, const char* suffix = "") noexcept {
  std::signal(SIGPIPE, SIG_IGN);
  std::fprintf(stderr, "tessera: %s%s\n", message, suffix);
  std::fflush(stderr);
}

// What all ranks say at once one of them tells. It has a moment for that: mpirun ends all when one has ended.
void complain_together(const distribute::CommonError& error) {
  if (error.is_told_elsewhere()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  } else {
    complain(error.what());
  }
}

// A word in the command's place that is none: the parser would only say that a command is missing.
void check_command(int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "";
  if (word.empty() || word[0] == '-' || commands().find(word) != nullptr) return;
  fail(ErrorCode::invalid_argument, "there is no command '{}'{} (see --help)", word,
       did_you_mean(word, commands().names()));
}

int run(int argc, char** argv) {
  CLI::App program("Tessera: trains, examines and runs neural networks, without Python.", "tessera");
  program.require_subcommand(1);
  program.set_version_flag("--version", TESSERA_VERSION);
  program.footer(
      "Exit codes: 0 success, 2 wrong use, 3 invalid graph, 4 invalid file, 5 input or output failed,\n"
      "6 out of memory, 7 unsupported here, 8 the loss became NaN or infinite, 9 the device failed,\n"
      "10 another rank failed, 70 a fault of ours, 130 interrupted (training state saved).");
  for (const CommandDescription* command : commands().all())
    command->add(program.add_subcommand(command->name, command->documentation));
  check_command(argc, argv);
  try {
    program.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return program.exit(help);
  } catch (const CLI::CallForAllHelp& help) {
    return program.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return program.exit(version);
  } catch (const CLI::ParseError& error) {
    complain(error.what(), " (see --help)");
    return 2;
  }
  return 0;
}

}  // namespace

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
    case ErrorCode::device_fault:
      return 9;
    case ErrorCode::rank_failure:
      return 10;
    case ErrorCode::internal:
      break;
  }
  return 70;
}

Registry<CommandDescription>& commands() {
  static Registry<CommandDescription> commands("command");
  return commands;
}

const std::atomic<bool>& stop_flag() {
  return stop_requested;
}

void install_stop_handler() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  struct sigaction present {};
  const bool known = sigaction(SIGHUP, nullptr, &present) == 0;
  if (!known || present.sa_handler != SIG_IGN) std::signal(SIGHUP, on_signal);  // nohup has it ignored
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is then an error of writing
}

// That standard output goes to a full disk shows at the latest when its last bytes are written.
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
  } catch (const RanksEnded& ended) {
    complain(ended.failure.c_str());
    return ended.code;
  } catch (const distribute::CommonError& error) {
    complain_together(error);
    return exit_code(error.code());
  } catch (const std::bad_alloc&) {  // without memory for an Error
    complain("out of memory");
    return exit_code(ErrorCode::out_of_memory);
  } catch (const std::exception& exception) {
    const Error error = as_error(exception);
    complain(error.what());
    return exit_code(error.code());
  }
}

}  // namespace tessera::cli

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit is then an error like a full disk
  tessera::cli::fill_standard_descriptors();
  return tessera::cli::guarded_run(argc, argv);
}
