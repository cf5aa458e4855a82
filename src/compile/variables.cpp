#include "tessera/compile/variables.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

void Variables::set(const std::string& name, const Tensor& value) {
  wait_for_users();
  const std::lock_guard lock(mutex_);
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
  note_change();
}

Tensor Variables::get(const std::string& name) const {
  wait_for_users();
  const std::lock_guard lock(mutex_);
  const Entry& found = entry(name);
  Tensor result(found.type, found.shape);
  device_->copy_to_host(result.raw(), found.memory.get(), static_cast<int64_t>(result.bytes()));
  return result;
}

const Variables::Entry& Variables::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found != entries_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, entry] : entries_) names.push_back(known);
  fail(ErrorCode::invalid_argument, "there is no variable '{}'{}", name, did_you_mean(name, names));
}

bool Variables::contains(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return entries_.contains(name);
}

void Variables::erase(const std::string& name) {
  wait_for_users();
  const std::lock_guard lock(mutex_);
  entries_.erase(name);
  note_change();
}

std::vector<std::string> Variables::names() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> result;
  for (const auto& [name, entry] : entries_) result.push_back(name);
  return result;
}

void* Variables::pointer(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return entry(name).memory.get();
}
DataType Variables::data_type(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return entry(name).type;
}
const Shape& Variables::shape(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return entry(name).shape;
}

int64_t Variables::bytes() const {
  const std::lock_guard lock(mutex_);
  int64_t total = 0;
  for (const auto& [name, entry] : entries_) {
    total += bytes_of(entry.type, element_count(entry.shape));
  }
  return total;
}

std::shared_ptr<void> Variables::derived(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = derived_.find(key);
  if (found == derived_.end() || found->second.version != version_) return nullptr;
  return found->second.memory.lock();
}

void Variables::keep_derived(const std::string& key, const std::shared_ptr<void>& memory) {
  const std::lock_guard lock(mutex_);
  std::erase_if(derived_, [](const auto& entry) { return entry.second.memory.expired(); });
  derived_[key] = {version_, memory};
}

void Variables::add_user(const std::shared_ptr<Queue>& queue, bool updates) {
  const std::lock_guard lock(mutex_);
  std::erase_if(users_, [](const User& user) { return user.queue.expired(); });
  const auto known = std::find_if(users_.begin(), users_.end(),
                                  [&](const User& user) { return user.queue.lock() == queue; });
  if (known == users_.end()) {
    users_.push_back({queue, updates});
  } else {
    known->updates = known->updates || updates;
  }
  const bool one_updates =
      std::any_of(users_.begin(), users_.end(), [](const User& user) { return user.updates; });
  several_queues_ = users_.size() > 1 && one_updates;
}

void Variables::order(Queue& queue, bool updates) const {
  if (!several_queues_) return;
  const std::lock_guard lock(mutex_);
  for (const User& user : users_) {
    const std::shared_ptr<Queue> other = user.queue.lock();
    if (other == nullptr || other.get() == &queue || !(updates || user.updates)) continue;
    queue.wait_for(*other->mark());
  }
}

void Variables::wait_for_users() const {
  std::vector<std::shared_ptr<Queue>> queues;
  {
    const std::lock_guard lock(mutex_);
    for (const User& user : users_) {
      if (std::shared_ptr<Queue> queue = user.queue.lock()) queues.push_back(std::move(queue));
    }
  }
  for (const auto& queue : queues) queue->synchronize();
}

}  // namespace tessera
