#include "mpi/session.h"

#include <array>
#include <cstdlib>

#include "tessera/base/error.h"

namespace tessera::mpi {
namespace {

std::string library_name() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> name{};
  int length = 0;
  MPI_Get_library_version(name.data(), &length);
  const std::string text(name.data());
  return text.substr(0, text.find_first_of(",\n"));
}

// Without it Open MPI ends the process with a page of advice.
void check_launcher() {
  const bool by_srun = std::getenv("SLURM_STEP_NUM_TASKS") != nullptr;
  const bool has_pmix = std::getenv("PMIX_RANK") != nullptr || std::getenv("PMI_RANK") != nullptr;
  require(!by_srun || has_pmix, ErrorCode::invalid_argument,
          "srun started these ranks without PMIx, by which MPI finds the others: srun --mpi=pmix");
}

}  // namespace

void check(int status, const char* what) {
  if (status == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(status, text.data(), &length);
  fail(ErrorCode::rank_failure, "MPI: {} failed: {}", what, text.data());
}

void Session::begin(const distribute::Rendezvous& place) {
  check_launcher();
  int level = MPI_THREAD_SINGLE;
  int is_begun = 0;
  MPI_Initialized(&is_begun);
  if (is_begun != 0) {
    MPI_Query_thread(&level);
  } else {
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level), "beginning");
    begun_here_ = true;
  }
  require(level >= MPI_THREAD_SERIALIZED, ErrorCode::unsupported,
          "{} lets no more than one thread call it, as it was built or begun", library_name());
  check(MPI_Comm_dup(MPI_COMM_WORLD, &handle_), "making a group");
  check(MPI_Comm_set_errhandler(handle_, MPI_ERRORS_RETURN), "making a group");
  int rank = 0;
  int ranks = 0;
  check(MPI_Comm_rank(handle_, &rank), "asking for the rank");
  check(MPI_Comm_size(handle_, &ranks), "asking for the ranks");
  require(rank == place.rank && ranks == place.ranks, ErrorCode::invalid_argument,
          "the launcher says rank {} of {}, and MPI rank {} of {}: the launcher is of another MPI than this "
          "library, {}",
          place.rank, place.ranks, rank, ranks, library_name());
  void* largest = nullptr;
  int is_there = 0;
  check(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest, &is_there), "asking for the largest tag");
  largest_tag_ = is_there != 0 ? *static_cast<int*>(largest) : 32767;  // what the standard promises
}

void Session::end() {
  MPI_Comm_free(&handle_);
  if (begun_here_) MPI_Finalize();
}

}  // namespace tessera::mpi
