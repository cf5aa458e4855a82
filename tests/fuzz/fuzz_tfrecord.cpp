// Any bytes either are refused with an Error or hold records that lie inside; and any bytes, taken for an
// example, either are refused or hold features that lie inside.
#include <cstdlib>
#include <span>

#include "tessera/base/error.h"
#include "tessera/data/tfrecord.h"

#include "fuzz.h"

namespace {

using Bytes = std::span<const std::byte>;

bool is_inside(Bytes part, Bytes whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void read_example(Bytes message) {
  try {
    for (const auto& [name, feature] : tessera::data::parse_example(message, "input")) {
      for (const Bytes value : feature.bytes) {
        if (!is_inside(value, message)) std::abort();
      }
      if (feature.reals.size() > message.size() || feature.integers.size() > message.size()) std::abort();
    }
  } catch (const tessera::Error&) {
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes input = std::as_bytes(std::span(data, size));
  read_example(input);
  try {
    for (const tessera::data::RecordPlace& place : tessera::data::parse_tfrecord(input, "input")) {
      if (place.bytes > size || place.offset > size - place.bytes) std::abort();
      read_example(input.subspan(place.offset, place.bytes));
    }
  } catch (const tessera::Error&) {
  }
  return 0;
}
