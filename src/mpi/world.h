// All ranks that MPI knows, as this process and all its groups see them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "mpi/session.h"
#include "mpi/signs.h"

namespace tessera::mpi {

class World {
 public:
  // Begins MPI, or gives what is there already. Throws as Session::begin() does, and Error(rank_failure)
  // where not all ranks begin in time. MPI ends with the last owner, and does not begin again.
  static std::shared_ptr<World> join(const distribute::Rendezvous& place);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int64_t rank() const { return place_.rank; }
  int64_t ranks() const { return place_.ranks; }
  Session& session() { return session_; }

  // Reads what other ranks have sent, which the thread does too, but seldom.
  void look();
  // As those of Signs.
  std::string complaint(int64_t rank) const { return signs_.complaint(rank); }
  bool has_left(int64_t rank) const { return signs_.has_left(rank); }

  bool is_aborted() const { return aborted_; }
  // Tells all ranks. The first reason holds.
  void abort(const std::string& reason) noexcept;
  // The same, and throws Error(rank_failure) with the reason that holds.
  [[noreturn]] void stop(const std::string& reason);

  // The first tag that no group of this process has. Groups are made by one thread at a time.
  int64_t free_tag() const { return free_tag_; }
  // So that it and all before it are not free. Throws Error(unsupported) where there are no more.
  void use_tag(int64_t tag);

  // What MPI may read or write until the process ends.
  void keep(std::shared_ptr<void> memory);

 private:
  // runs until ~World is wanted, ends: in MPI's last call.
  enum class Phase { begins, runs, leaves, ends, ended };

  explicit World(const distribute::Rendezvous& place) : place_(place), signs_(session_, place) {}
  ~World() = default;

  void wait_for_start();
  bool leave();
  // Of the thread.
  void live();
  void run();
  void tell(SignKind kind, const std::string& reason);
  bool wait_for_goodbyes();
  void take_abort(const std::string& reason);
  void enter(Phase phase);

  const distribute::Rendezvous place_;
  Session session_;
  Signs signs_;
  std::atomic<int64_t> free_tag_{1};  // Signs have the first
  std::atomic<bool> aborted_{false};

  std::mutex mutex_;  // of what follows; never held together with the session's
  std::condition_variable changed_;
  Phase phase_ = Phase::begins;
  std::exception_ptr problem_;  // why it does not run
  std::string reason_;          // why it is aborted
  bool tells_ = false;          // the thread is to tell others
  std::vector<std::shared_ptr<void>> kept_;
  std::thread thread_;
};

}  // namespace tessera::mpi
