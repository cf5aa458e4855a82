// Memory that goes while a device works.
#pragma once

#include <exception>

#include "tessera/base/log.h"
#include "tessera/compile/queue.h"

namespace tessera {

// Waits, as it goes, for what a queue still does: declared after memory that the work uses, it has ended when
// that is freed, also where an exception is on its way.
class QueueWork {
 public:
  explicit QueueWork(Queue& queue) : queue_(queue) {}
  ~QueueWork() {
    try {
      queue_.synchronize();
    } catch (const std::exception& error) {  // a device that is lost does nothing any more
      log_warning("waiting for the device failed: {}", error.what());
    }
  }
  QueueWork(const QueueWork&) = delete;
  QueueWork& operator=(const QueueWork&) = delete;

 private:
  Queue& queue_;
};

}  // namespace tessera
