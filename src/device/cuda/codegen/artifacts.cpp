#include "device/cuda/codegen/artifacts.h"

#include <algorithm>
#include <future>
#include <vector>

#include "tessera/base/background_work.h"

#include "device/cuda/codegen/module_cache.h"

namespace tessera::cuda {
namespace {

// Never destroyed: the compiler's threads may be at work when the process ends.
struct Shared {
  std::mutex mutex;  // guards what follows
  std::vector<std::weak_ptr<const KernelArtifacts>> offered;
  std::vector<ArtifactRecording*> recordings;
};

Shared& shared() {
  static Shared& state = *new Shared;
  return state;
}

}  // namespace

std::shared_ptr<void> offer_artifacts(KernelArtifacts artifacts) {
  const auto offered = std::make_shared<KernelArtifacts>(std::move(artifacts));
  const std::lock_guard lock(shared().mutex);
  std::erase_if(shared().offered, [](const auto& one) { return one.expired(); });
  shared().offered.push_back(offered);
  return offered;
}

std::string find_offered(const std::string& name) {
  const std::lock_guard lock(shared().mutex);
  for (const auto& one : shared().offered) {
    const std::shared_ptr<const KernelArtifacts> artifacts = one.lock();
    if (artifacts == nullptr) continue;
    if (const auto found = artifacts->find(name); found != artifacts->end()) return found->second;
  }
  return "";
}

ArtifactRecording::ArtifactRecording() {
  const std::lock_guard lock(shared().mutex);
  shared().recordings.push_back(this);
}

ArtifactRecording::~ArtifactRecording() {
  const std::lock_guard lock(shared().mutex);
  std::erase(shared().recordings, this);
}

bool ArtifactRecording::is_active() {
  const std::lock_guard lock(shared().mutex);
  return !shared().recordings.empty();
}

void ArtifactRecording::note_source(const std::string& source, int architecture) {
  const std::lock_guard lock(shared().mutex);
  for (ArtifactRecording* recording : shared().recordings) {
    const std::lock_guard own(recording->mutex_);
    recording->sources_.emplace(source, architecture);
  }
}

void ArtifactRecording::note_file(const std::string& name, const std::string& contents) {
  const std::lock_guard lock(shared().mutex);
  for (ArtifactRecording* recording : shared().recordings) {
    const std::lock_guard own(recording->mutex_);
    recording->files_[name] = contents;
  }
}

KernelArtifacts ArtifactRecording::take() {
  std::set<std::pair<std::string, int>> sources;
  KernelArtifacts artifacts;
  {
    const std::lock_guard lock(mutex_);
    sources.swap(sources_);
    artifacts.swap(files_);
  }
  std::vector<std::future<std::pair<std::string, std::string>>> made;
  BackgroundWork compilers;
  for (const auto& one : sources) {
    std::packaged_task<std::pair<std::string, std::string>()> task(
        [&one] { return machine_code_file(one.first, one.second); });
    made.push_back(task.get_future());
    compilers.add(std::packaged_task<void()>(std::move(task)));
  }
  compilers.wait();
  for (auto& file : made) artifacts.insert(file.get());
  return artifacts;
}

}  // namespace tessera::cuda
