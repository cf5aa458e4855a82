// Signs of life that all ranks send each other, and their last words.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "tessera/distribute/rank_signs.h"

#include "mpi/session.h"

namespace tessera::mpi {

enum class SignKind : int32_t { beat, left, aborts };

// What one rank sends another.
struct Sign {
  SignKind kind = SignKind::beat;
  int32_t process = 0;
  int32_t waits = 0;
  int64_t silence = 0;  // nanoseconds since the last sign of life
  std::array<char, 64> machine{};
  std::array<char, 1024> reason{};  // of who aborts
};

// Functions of a group are called with the session's mutex held; complaint() and has_left() by any thread
// at any time.
class Signs {
 public:
  Signs(Session& session, const distribute::Rendezvous& place);

  // A beat of this rank, to all that have not left.
  void send_beats();
  // To all; `reason` is of who aborts.
  void send_last_words(SignKind kind, const std::string& reason);
  // Whether MPI has taken all that was sent.
  bool finish_sending();
  // What others sent meanwhile. The reason where one of them has aborted.
  std::optional<std::string> receive();

  // What is wrong with a rank that does not come; "" where nothing is.
  std::string complaint(int64_t rank) const;
  bool has_left(int64_t rank) const;
  bool all_others_left() const;
  // Whether another, which has not left, was heard of in so many seconds.
  bool hears_another(double seconds) const;

 private:
  // What is known of a rank beside its signs.
  struct Heard {
    std::atomic<int64_t> time{0};    // on the monotonic clock
    std::array<char, 64> machine{};  // written once, before the rank counts as joined
  };
  struct Sending {
    Sign sign;
    int64_t rank = 0;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  void send(int64_t rank, const Sign& sign);
  void take(int64_t rank, const Sign& sign);
  double seconds_unheard(int64_t rank) const;

  Session& session_;
  const int64_t rank_;
  const double seconds_;
  distribute::Pulse pulse_;
  distribute::Attention attention_;
  std::vector<distribute::RankSigns> known_;
  std::vector<Heard> heard_;
  std::list<Sending> sending_;  // what MPI still reads
  std::array<char, 64> machine_{};
};

}  // namespace tessera::mpi
