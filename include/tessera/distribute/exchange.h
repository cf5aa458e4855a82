// What ranks tell each other beside tensors.
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/compile/communicator.h"
#include "tessera/compile/feeds.h"

namespace tessera::distribute {

// All ranks' texts, of any lengths, in the order of the ranks.
std::vector<std::string> gather_texts(Communicator& communicator, const std::string& text);
// All ranks' tensors, of any names, types and shapes, in the order of the ranks.
std::vector<Feeds> gather_tensors(Communicator& communicator, const Feeds& tensors);
// As the launcher says by TESSERA_PLACE, else how many ranks of a lower number run on this rank's machine.
// Throws Error(invalid_argument) where the variable is no number.
int64_t place_on_machine(Communicator& communicator);
// Whether any rank says so.
bool any_rank(Communicator& communicator, bool says);
// The same of several, in one exchange.
std::vector<bool> any_rank(Communicator& communicator, const std::vector<bool>& says);

// An error that all ranks have at once, in the same words. Where a launcher shows what every rank tells
// (mpirun, srun), it is for the first alone to tell it.
class CommonError : public Error {
 public:
  CommonError(ErrorCode code, const std::string& message, bool told_elsewhere)
      : Error(code, message), told_elsewhere_(told_elsewhere) {}
  bool is_told_elsewhere() const { return told_elsewhere_; }

 private:
  bool told_elsewhere_;
};

// For all ranks to call: throws CommonError.
[[noreturn]] void fail_together(const Communicator& communicator, ErrorCode code, const std::string& message);

// Compares what all ranks must have alike with what rank 0 has, line by line. Throws
// CommonError(invalid_argument) on all of them with the first rank that differs, the kind ("recipe") and the
// first line that differs.
void require_same(Communicator& communicator, const std::string& kind, const std::string& text);

// Tells the others why this rank ends, so that they end too: for whoever catches an error that stops a run of
// several ranks. Null: there are none.
void end_all_ranks(Communicator* communicator, const std::exception& error);

// Ends of groups of threads of this process, one for each rank: for tests, and ranks without processes.
std::vector<std::shared_ptr<Communicator>> thread_group(int64_t ranks);

}  // namespace tessera::distribute
