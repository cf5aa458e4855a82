// Several ranks (processes, or threads of one) that compute together: what they exchange, and how they end
// together.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "tessera/base/data_type.h"

namespace tessera {

enum class Reduction : uint8_t { sum, mean, maximum, minimum };

std::string_view to_string(Reduction reduction);
// Throws Error(invalid_argument) naming what there is.
Reduction parse_reduction(std::string_view text);
// The types that reductions are made of: those that arithmetic knows. A mean is of floating types alone.
bool reduces(DataType type, Reduction reduction);

// What an all-reduce takes from one place and puts to another, or the same.
struct ReducedPart {
  const void* input = nullptr;
  void* output = nullptr;
  int64_t elements = 0;
};

// One rank's end of a group. All ranks of the group call the same functions in the same order with the same
// types and counts; a call that differs stops all. Memory is the host's. A call returns when this rank's
// results are there. One thread at a time uses a communicator, but any may check() and abort() it.
//
// Every function throws Error(rank_failure) when another rank has died, given no sign for too long, left or
// aborted, naming it; the communicator is of no more use then.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;

  // Over all ranks, each element for itself, in the order of the ranks: all get the same bits, and so does
  // every run. 16-bit types are added in fp32 and rounded once. A NaN of any rank is the result. Throws
  // Error(invalid_argument) where the type has no such reduction.
  virtual void all_reduce(std::span<const ReducedPart> parts, DataType type, Reduction reduction) = 0;
  // input: [size(), elements]; output: [elements], row rank() of the reduced. They must not overlap.
  virtual void reduce_scatter(const void* input, void* output, int64_t elements, DataType type,
                              Reduction reduction) = 0;
  // input: [bytes] of each rank; output: [size(), bytes]. Input may be the rank's own row of output.
  virtual void all_gather(const void* input, void* output, int64_t bytes) = 0;
  // All get the input of the root; the others' is not read.
  virtual void broadcast(const void* input, void* output, int64_t bytes, int64_t root) = 0;
  virtual void barrier() = 0;

  // The members, in this order, as a group of its own; null for a rank that is not among them. All ranks of
  // this group call it, with disjoint groups or the same. Throws Error(invalid_argument) on a rank that does
  // not exist or stands there twice.
  virtual std::shared_ptr<Communicator> group(std::span<const int64_t> members) = 0;

  // Throws as the others do where a rank has died, hangs or has aborted, and returns at once where none has:
  // for those who wait for the group's results elsewhere. A rank that has left is no error to it. Any thread
  // may call it.
  virtual void check() = 0;

  // From now on every call of every rank throws, with this reason. The first one holds.
  virtual void abort(const std::string& reason) noexcept = 0;
};

}  // namespace tessera
