// What tokenizing needs of memory: kept from text to text, one for each thread that is at it.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "text/added_tokens.h"
#include "text/aligned_text.h"
#include "text/pre_tokenizer.h"
#include "text/word_cache.h"

namespace tessera::text {

struct Scratch {
  AlignedText given;  // repaired
  AlignedText normalized;
  AlignedText spare;
  AlignedText prefixed;
  std::vector<TextPart> raw_parts;
  std::vector<TextPart> normalized_parts;
  Spans words;
  Spans more_words;
  std::vector<Piece> pieces;
  JoinMemory joining;
  WordCache cache;
};

class ScratchPool {
 public:
  // One of the pool, or a new one; it goes back at the end of the scope.
  class Lease {
   public:
    explicit Lease(ScratchPool& pool) : pool_(pool), scratch_(pool.take()) {}
    ~Lease() { pool_.give_back(std::move(scratch_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Scratch& operator*() const { return *scratch_; }

   private:
    ScratchPool& pool_;
    std::unique_ptr<Scratch> scratch_;
  };

 private:
  std::unique_ptr<Scratch> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      free_.reserve(++made_);  // so that giving back needs no memory
      return std::make_unique<Scratch>();
    }
    std::unique_ptr<Scratch> last = std::move(free_.back());
    free_.pop_back();
    return last;
  }

  void give_back(std::unique_ptr<Scratch> scratch) noexcept {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(scratch));
  }

  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Scratch>> free_;
  size_t made_ = 0;
};

}  // namespace tessera::text
