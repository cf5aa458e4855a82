// Few files as many: what is measured needs an epoch as long as itself, since threads begin anew with each.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tessera/data/encoded.h"

namespace tessera::cli {

// The samples over and over, `size` of them.
class RepeatedSamples : public data::EncodedSamples {
 public:
  RepeatedSamples(std::shared_ptr<const data::EncodedSamples> samples, int64_t size)
      : samples_(std::move(samples)), size_(size) {}

  int64_t size() const override { return size_; }
  int32_t label(int64_t index) const override { return samples_->label(index % samples_->size()); }
  std::string name(int64_t index) const override { return samples_->name(index % samples_->size()); }
  const std::vector<std::string>& class_names() const override { return samples_->class_names(); }
  std::vector<std::byte> bytes(int64_t index) const override {
    return samples_->bytes(index % samples_->size());
  }

 private:
  std::shared_ptr<const data::EncodedSamples> samples_;
  int64_t size_;
};

}  // namespace tessera::cli
