#include "distribute/rank_process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tessera/base/error.h"

namespace tessera::distribute {
namespace {

constexpr int kCannotStart = 127;
constexpr int kInterrupted = 130;
constexpr std::string_view kComplaint = "tessera: ";  // begins what the program ends with
constexpr size_t kMostComplaints = 1 << 16;           // bytes

// Pointers to them, as exec takes them.
std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::string name_of(const std::string& assignment) {
  return assignment.substr(0, assignment.find('=') + 1);
}

std::vector<std::string> environment_with(const std::vector<std::string>& assignments) {
  std::vector<std::string> environment = assignments;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    bool is_replaced = false;
    for (const std::string& assignment : assignments)
      is_replaced |= std::string_view(*entry).starts_with(name_of(assignment));
    if (!is_replaced) environment.emplace_back(*entry);
  }
  return environment;
}

// In the new process: only what may be called between fork and exec.
[[noreturn]] void become(char* const* command, char* const* environment, int errors, bool shows,
                         pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kCannotStart);  // it died before
  ::dup2(errors, STDERR_FILENO);
  if (!shows) ::dup2(errors, STDOUT_FILENO);
  ::execve(command[0], command, environment);
  const char* reason = ::strerror(errno);
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, reason, ::strlen(reason));
  ::_exit(kCannotStart);
}

}  // namespace

RankProcess::RankProcess(const RankStart& start) : rank_(start.rank) {
  std::vector<std::string> command = start.command;
  std::vector<std::string> environment = environment_with(start.environment);
  const std::vector<char*> words = pointers_to(command);
  const std::vector<char*> assignments = pointers_to(environment);
  int ends[2] = {-1, -1};
  require(::pipe2(ends, O_CLOEXEC) == 0, ErrorCode::io, "no pipe for rank {}: {}", rank_,
          std::strerror(errno));
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  errors_ = ends[0];
  const pid_t parent = ::getpid();
  process_ = ::fork();
  if (process_ == 0) become(words.data(), assignments.data(), ends[1], rank_ == 0, parent);
  const int problem = errno;
  ::close(ends[1]);
  if (process_ > 0) return;
  ::close(errors_);
  fail(ErrorCode::io, "rank {} cannot be started: {}", rank_, std::strerror(problem));
}

RankProcess::~RankProcess() {
  if (!status_.has_value()) {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  ::close(errors_);
}

const std::optional<int>& RankProcess::status() {
  int status = 0;
  if (!status_.has_value() && ::waitpid(process_, &status, WNOHANG) == process_) {
    status_ = status;
    read_errors();
    if (!unfinished_.empty()) relay(std::exchange(unfinished_, ""));
  }
  return status_;
}

bool RankProcess::failed() {
  if (!status().has_value()) return false;
  if (!WIFEXITED(*status_)) return true;
  return WEXITSTATUS(*status_) != 0 && WEXITSTATUS(*status_) != kInterrupted;
}

std::string RankProcess::end() {
  if (!status().has_value()) return fmt::format("rank {} (process {}) runs", rank_, process_);
  if (WIFSIGNALED(*status_)) {
    const int number = WTERMSIG(*status_);
    return fmt::format("rank {} (process {}) was ended by signal {} ({})", rank_, process_, number,
                       ::strsignal(number));
  }
  std::string said = complaints_;
  while (said.ends_with('\n')) said.pop_back();
  if (said.starts_with(kComplaint)) said.erase(0, kComplaint.size());
  return fmt::format("rank {} (process {}) ended with code {}{}{}", rank_, process_, WEXITSTATUS(*status_),
                     said.empty() ? "" : ": ", said);
}

void RankProcess::send(int signal) const {
  if (!status_.has_value()) ::kill(process_, signal);
}

void RankProcess::read_errors() {
  std::array<char, 4096> bytes;
  for (ssize_t count; (count = ::read(errors_, bytes.data(), bytes.size())) > 0;) {
    unfinished_.append(bytes.data(), static_cast<size_t>(count));
    size_t end = 0;
    while ((end = unfinished_.find('\n')) != std::string::npos) {
      relay(unfinished_.substr(0, end + 1));
      unfinished_.erase(0, end + 1);
    }
  }
}

// A complaint of several lines goes on until the end. What else other ranks than the first say before they
// have a log, the first one says too.
void RankProcess::relay(const std::string& line) {
  const bool complains = !complaints_.empty() || line.starts_with(kComplaint);
  if (complains && complaints_.size() < kMostComplaints) complaints_ += line;
  if (!complains && rank_ == 0) std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace tessera::distribute
