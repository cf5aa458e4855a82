#include "tessera/compile/executable_family.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>

namespace tessera {
namespace {

// Calls work(i) for each i below `count`, on as many threads as the machine has processors, as if by this
// one: with its device's settings. Throws what the first i that failed threw; later ones may not have begun.
void for_each_at_once(const Device& device, size_t count, const std::function<void(size_t)>& work) {
  std::vector<std::exception_ptr> failures(count);
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  const auto take_work = [&] {
    for (size_t i = next++; i < count && !failed; i = next++) {
      try {
        work(i);
      } catch (...) {
        failures[i] = std::current_exception();
        failed = true;
      }
    }
  };
  const std::function<void()> adopt_settings = device.settings_of_thread();
  const size_t helpers = std::min<size_t>(count, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  try {
    while (threads.size() + 1 < helpers) {
      threads.emplace_back([&] {
        adopt_settings();
        take_work();
      });
    }
  } catch (const std::system_error&) {  // the machine has no more: those that it has will do
  }
  take_work();
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure != nullptr) std::rethrow_exception(failure);
  }
}

}  // namespace

ExecutableFamily::ExecutableFamily(std::shared_ptr<Device> device, Build build, CompileOptions options,
                                   size_t most_members)
    : device_(std::move(device)),
      build_(std::move(build)),
      options_(std::move(options)),
      most_members_(std::max<size_t>(most_members, 1)) {
  if (options_.workspace == nullptr) options_.workspace = std::make_shared<Workspace>(device_);
}

void ExecutableFamily::bind(std::shared_ptr<Variables> variables) {
  variables_ = std::move(variables);
  for (Member& member : members_) member.bound = false;
}

void ExecutableFamily::bind(Member& member) const {
  if (member.bound || variables_ == nullptr) return;
  member.executable->bind(variables_);
  member.bound = true;
}

ExecutableFamily::Member* ExecutableFamily::find(const SymbolBindings& sizes) {
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [&](const Member& member) { return member.sizes == sizes; });
  return found == members_.end() ? nullptr : &*found;
}

std::shared_ptr<Executable> ExecutableFamily::at(const SymbolBindings& sizes) {
  if (Member* known = find(sizes)) {
    std::rotate(known, known + 1, members_.data() + members_.size());
  } else {
    std::shared_ptr<Executable> executable = compile(*build_(sizes), device_, options_);
    // Before the new one is bound: it may need the memory.
    while (members_.size() >= most_members_) members_.erase(members_.begin());
    members_.push_back({sizes, std::move(executable)});
  }
  bind(members_.back());
  return members_.back().executable;
}

void ExecutableFamily::prepare(const std::vector<SymbolBindings>& sizes) {
  std::erase_if(members_, [&](const Member& member) {
    return std::find(sizes.begin(), sizes.end(), member.sizes) == sizes.end();
  });
  std::vector<Member> missing;
  std::vector<std::unique_ptr<Graph>> graphs;
  for (const SymbolBindings& one : sizes) {
    const bool repeated = std::any_of(missing.begin(), missing.end(),
                                      [&](const Member& member) { return member.sizes == one; });
    if (repeated || find(one) != nullptr) continue;
    missing.push_back({one, nullptr});
    graphs.push_back(build_(one));  // by this thread alone: nobody has promised more of what it calls
  }
  most_members_ = std::max(most_members_, members_.size() + missing.size());
  const auto compile_one = [&](size_t i) {
    missing[i].executable = compile(*graphs[i], device_, options_);
    graphs[i].reset();
  };
  if (options_.tune) {  // what is timed needs the device for itself
    for (size_t i = 0; i < missing.size(); ++i) compile_one(i);
  } else {
    for_each_at_once(*device_, missing.size(), compile_one);
  }
  for (Member& member : missing) members_.push_back(std::move(member));
  // The workspace grows once.
  std::vector<Member*> largest_first;
  for (Member& member : members_) largest_first.push_back(&member);
  std::stable_sort(largest_first.begin(), largest_first.end(), [](const Member* a, const Member* b) {
    return a->executable->memory_plan().peak_bytes > b->executable->memory_plan().peak_bytes;
  });
  for (Member* member : largest_first) bind(*member);
}

void ExecutableFamily::discard() {
  for (const Member& member : members_) member.executable->discard();
}

std::vector<SymbolBindings> ExecutableFamily::sizes() const {
  std::vector<SymbolBindings> result;
  for (const Member& member : members_) result.push_back(member.sizes);
  return result;
}

}  // namespace tessera
