// One rank's process, as its launcher sees it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace tessera::distribute {

struct RankStart {
  int64_t rank = 0;
  std::vector<std::string> command;
  std::vector<std::string> environment;  // "NAME=value", in place of the launcher's own of that name
};

class RankProcess {
 public:
  // Throws Error(io).
  explicit RankProcess(const RankStart& start);
  // Ends what still runs.
  ~RankProcess();
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  int64_t rank() const { return rank_; }
  pid_t process() const { return process_; }
  // Its status as wait() gives it, when it has ended.
  const std::optional<int>& status();
  bool failed();  // ended otherwise than well or interrupted
  // "rank 2 (process 71) was ended by signal 9 (Killed)", "... ended with code 5: the last line that it
  // said".
  std::string end();
  void send(int signal) const;

  // Takes what it has said on standard error. The first rank's goes on to the launcher's own, except for the
  // last complaints, which are kept.
  void read_errors();
  const std::string& complaints() const { return complaints_; }

 private:
  void relay(const std::string& line);

  const int64_t rank_;
  pid_t process_ = -1;
  int errors_ = -1;         // the reading end of its standard error
  std::string unfinished_;  // the line that it is at
  std::string complaints_;  // lines that begin with "tessera: "
  std::optional<int> status_;
};

}  // namespace tessera::distribute
