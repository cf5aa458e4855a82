// A region that several of OpenMP's threads run, the one place where they begin and end.
#pragma once

#include <cstdint>

#include <omp.h>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace tessera::cpu {

// What the thread sanitizer is told of a region. It does not see how OpenMP's library, which is not compiled
// for it, hands a region to its threads and waits for them: what came before the region happens before all of
// it, and all of it before what follows. Threads of one region stay unordered, so that races among them are
// found.
struct RegionOrder {
#if defined(__SANITIZE_THREAD__)
  static inline char begins = 0;
  static inline char ends = 0;
  static void before() {
    __tsan_release(&begins);
  }
  static void enter() {
    __tsan_acquire(&begins);
  }
  static void leave() {
    __tsan_release(&ends);
  }
  static void after() {
    __tsan_acquire(&ends);
  }
#else
  static void before() {}
  static void enter() {}
  static void leave() {}
  static void after() {}
#endif
};

// OpenMP's own list of what a region takes from outside is written after `before` and read before `enter`:
// it is not instrumented. What `work` does is, since a function is inlined only into one that is like it.
#if defined(__SANITIZE_THREAD__)
#define TESSERA_UNSEEN_REGION __attribute__((no_sanitize("thread")))
#else
#define TESSERA_UNSEEN_REGION
#endif

// Calls work(thread, threads) once in each of at most `threads` threads; how many they are is told.
template <typename Work>
TESSERA_UNSEEN_REGION void in_parallel(int64_t threads, Work&& work) {
  RegionOrder::before();
#pragma omp parallel num_threads(static_cast <int>(threads))
  {
    RegionOrder::enter();
    work(int64_t{omp_get_thread_num()}, int64_t{omp_get_num_threads()});
    RegionOrder::leave();
  }
  RegionOrder::after();
}

#undef TESSERA_UNSEEN_REGION

}  // namespace tessera::cpu
