// One process's life in MPI.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include <mpi.h>

#include "tessera/distribute/registry.h"

namespace tessera::mpi {

// Throws Error(rank_failure) with MPI's own words.
void check(int status, const char* what);

// begin() and end() belong to one thread, which MPI takes for its main one.
class Session {
 public:
  // Waits until all ranks have begun. Throws Error(invalid_argument) where MPI knows other ranks than the
  // launcher says, Error(unsupported) where its library cannot be called by several threads.
  void begin(const distribute::Rendezvous& place);
  // Waits until all ranks end.
  void end();

  MPI_Comm handle() const { return handle_; }
  int64_t largest_tag() const { return largest_tag_; }
  // Held by whoever calls MPI in between.
  std::mutex& mutex() { return mutex_; }

 private:
  MPI_Comm handle_ = MPI_COMM_NULL;
  int64_t largest_tag_ = 0;
  bool begun_here_ = false;  // and not by the program that uses the library
  std::mutex mutex_;
};

}  // namespace tessera::mpi
