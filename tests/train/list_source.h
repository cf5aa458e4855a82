// Batches from a list, the same in every epoch.
#pragma once

#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/data/source.h"

namespace tessera::testing {

class ListSource : public data::Source {
 public:
  // With `endless` the list begins anew after its end, in one epoch.
  ListSource(std::vector<Field> fields, std::vector<data::Batch> batches, bool endless = false)
      : fields_(std::move(fields)), batches_(std::move(batches)), endless_(endless) {}

  std::vector<Field> fields() const override { return fields_; }
  std::vector<SymbolBindings> sizes() const override {
    std::vector<SymbolBindings> sizes;
    for (const data::Batch& batch : batches_) {
      if (std::find(sizes.begin(), sizes.end(), batch.sizes) == sizes.end()) sizes.push_back(batch.sizes);
    }
    return sizes;
  }
  std::optional<int64_t> batches(int64_t, int64_t) const override {
    return endless_ ? std::nullopt : std::optional<int64_t>(batches_.size());
  }
  std::unique_ptr<data::Stream> open(const data::Cursor& from, const data::Partition&) const override {
    return std::make_unique<Walk>(*this, from);
  }

 private:
  class Walk : public data::Stream {
   public:
    Walk(const ListSource& source, const data::Cursor& from) : source_(source), place_(from) {
      // What a source says of its place comes back to it.
      const std::string expected = place_.batch == 0 ? "" : "after " + std::to_string(place_.batch);
      require(place_.state == expected, ErrorCode::internal, "the state is '{}', not '{}'", place_.state,
              expected);
    }
    std::optional<data::Batch> next() override {
      const auto count = static_cast<int64_t>(source_.batches_.size());
      if (!source_.endless_ && place_.batch == count) return std::nullopt;
      data::Batch batch = source_.batches_[static_cast<size_t>(place_.batch % count)];
      ++place_.batch;
      place_.state = "after " + std::to_string(place_.batch);
      batch.after = place_;
      return batch;
    }

   private:
    const ListSource& source_;
    data::Cursor place_;
  };

  std::vector<Field> fields_;
  std::vector<data::Batch> batches_;
  bool endless_;
};

}  // namespace tessera::testing
