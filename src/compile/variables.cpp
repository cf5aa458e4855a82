#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/compile/executable.h"

namespace tessera {

void Variables::set(const std::string& name, const Tensor& value) {
  auto found = entries_.find(name);
  if (found == entries_.end()) {
    Entry created{value.data_type(), value.shape(), device_->allocate(static_cast<int64_t>(value.bytes()))};
    found = entries_.emplace(name, std::move(created)).first;
  }
  const Entry& entry = found->second;
  require(entry.type == value.data_type() && entry.shape == value.shape(), ErrorCode::invalid_argument,
          "variable '{}' is {}{}, cannot take {}{}", name, to_string(entry.type), to_string(entry.shape),
          to_string(value.data_type()), to_string(value.shape()));
  device_->copy_from_host(entry.memory.get(), value.raw(), static_cast<int64_t>(value.bytes()));
}

Tensor Variables::get(const std::string& name) const {
  const Entry& found = entry(name);
  Tensor result(found.type, found.shape);
  device_->synchronize();
  device_->copy_to_host(result.raw(), found.memory.get(), static_cast<int64_t>(result.bytes()));
  return result;
}

const Variables::Entry& Variables::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  require(found != entries_.end(), ErrorCode::invalid_argument, "there is no variable '{}'{}", name,
          did_you_mean(name, names()));
  return found->second;
}

void Variables::erase(const std::string& name) {
  entries_.erase(name);
}

std::vector<std::string> Variables::names() const {
  std::vector<std::string> result;
  for (const auto& [name, entry] : entries_) result.push_back(name);
  return result;
}

void* Variables::pointer(const std::string& name) const {
  return entry(name).memory.get();
}
DataType Variables::data_type(const std::string& name) const {
  return entry(name).type;
}
const Shape& Variables::shape(const std::string& name) const {
  return entry(name).shape;
}

int64_t Variables::bytes() const {
  int64_t total = 0;
  for (const auto& [name, entry] : entries_) {
    total += element_count(entry.shape) * static_cast<int64_t>(size_of(entry.type));
  }
  return total;
}

}  // namespace tessera
