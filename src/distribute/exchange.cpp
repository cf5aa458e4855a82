#include "tessera/distribute/exchange.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <sstream>

#include <unistd.h>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/distribute/registry.h"

#include "distribute/environment.h"
#include "distribute/foreign_launcher.h"

namespace tessera::distribute {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string line_at(const std::vector<std::string>& lines, size_t number) {
  return number < lines.size() ? "'" + lines[number] + "'" : "nothing";
}

// What no other machine says, nor this one after another start.
std::string own_machine() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  std::string start;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), start);
  return fmt::format("{} {}", name.data(), start);
}

// Numbers and texts one after the other.
class Writer {
 public:
  void number(int64_t value) { bytes(&value, sizeof(value)); }
  void text(const std::string& value) {
    number(std::ssize(value));
    bytes(value.data(), value.size());
  }
  void bytes(const void* data, size_t count) { text_.append(static_cast<const char*>(data), count); }
  const std::string& written() const { return text_; }

 private:
  std::string text_;
};

class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}
  int64_t number() {
    int64_t value = 0;
    bytes(&value, sizeof(value));
    return value;
  }
  std::string text() {
    std::string value(static_cast<size_t>(number()), '\0');
    bytes(value.data(), value.size());
    return value;
  }
  void bytes(void* data, size_t count) {
    require(count <= text_.size() - place_, ErrorCode::internal, "what another rank sent ends too early");
    if (count > 0) std::memcpy(data, text_.data() + place_, count);
    place_ += count;
  }

 private:
  const std::string& text_;
  size_t place_ = 0;
};

std::string to_bytes(const Feeds& tensors) {
  Writer writer;
  writer.number(std::ssize(tensors));
  for (const auto& [name, tensor] : tensors) {
    writer.text(name);
    writer.number(static_cast<int64_t>(tensor.data_type()));
    writer.number(std::ssize(tensor.shape()));
    for (const int64_t extent : tensor.shape()) writer.number(extent);
    writer.bytes(tensor.raw(), tensor.bytes());
  }
  return writer.written();
}

Feeds from_bytes(const std::string& bytes) {
  Reader reader(bytes);
  Feeds tensors;
  for (int64_t left = reader.number(); left > 0; --left) {
    const std::string name = reader.text();
    const auto type = static_cast<DataType>(reader.number());
    Shape shape(static_cast<size_t>(reader.number()));
    for (int64_t& extent : shape) extent = reader.number();
    Tensor tensor(type, shape);
    reader.bytes(tensor.raw(), tensor.bytes());
    tensors.emplace(name, std::move(tensor));
  }
  return tensors;
}

}  // namespace

std::vector<std::string> gather_texts(Communicator& communicator, const std::string& text) {
  const auto ranks = static_cast<size_t>(communicator.size());
  const int64_t length = std::ssize(text);
  std::vector<int64_t> lengths(ranks);
  communicator.all_gather(&length, lengths.data(), sizeof(length));
  const auto longest = static_cast<size_t>(*std::max_element(lengths.begin(), lengths.end()));
  std::string padded = text;
  padded.resize(longest);
  std::string all(ranks * longest, '\0');
  communicator.all_gather(padded.data(), all.data(), static_cast<int64_t>(longest));
  std::vector<std::string> texts;
  for (size_t rank = 0; rank < ranks; ++rank)
    texts.push_back(all.substr(rank * longest, static_cast<size_t>(lengths[rank])));
  return texts;
}

std::vector<Feeds> gather_tensors(Communicator& communicator, const Feeds& tensors) {
  std::vector<Feeds> all;
  for (const std::string& bytes : gather_texts(communicator, to_bytes(tensors)))
    all.push_back(from_bytes(bytes));
  return all;
}

int64_t place_on_machine(Communicator& communicator) {
  if (const std::optional<std::string> told = variable(kPlaceVariable))
    return number_of<int64_t>(kPlaceVariable, *told, parse_integer);
  const std::vector<std::string> machines = gather_texts(communicator, own_machine());
  const auto own = machines.begin() + communicator.rank();
  return std::count(machines.begin(), own, *own);
}

bool any_rank(Communicator& communicator, bool says) {
  return any_rank(communicator, std::vector{says}).front();
}

std::vector<bool> any_rank(Communicator& communicator, const std::vector<bool>& says) {
  std::vector<int32_t> values(says.begin(), says.end());
  const ReducedPart part{values.data(), values.data(), std::ssize(values)};
  communicator.all_reduce({&part, 1}, DataType::int32, Reduction::maximum);
  return {values.begin(), values.end()};
}

void end_all_ranks(Communicator* communicator, const std::exception& error) {
  if (communicator != nullptr)
    communicator->abort(fmt::format("rank {}: {}", communicator->rank(), error.what()));
}

void fail_together(const Communicator& communicator, ErrorCode code, const std::string& message) {
  throw CommonError(code, message, communicator.rank() > 0 && !name_of_foreign_launcher().empty());
}

void require_same(Communicator& communicator, const std::string& kind, const std::string& text) {
  const std::vector<std::string> texts = gather_texts(communicator, text);
  for (size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] == texts[0]) continue;
    const std::vector<std::string> first = lines_of(texts[0]);
    const std::vector<std::string> other = lines_of(texts[rank]);
    size_t line = 0;
    while (line < first.size() && line < other.size() && first[line] == other[line]) ++line;
    const std::string message = fmt::format("rank {} has another {} than rank 0: {} in place of {}", rank,
                                            kind, line_at(other, line), line_at(first, line));
    communicator.abort(message);
    fail_together(communicator, ErrorCode::invalid_argument, message);
  }
}

}  // namespace tessera::distribute
