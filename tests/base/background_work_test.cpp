#include "tessera/base/background_work.h"

#include <atomic>
#include <chrono>
#include <system_error>
#include <thread>

#include <gtest/gtest.h>
#include <pthread.h>

namespace tessera {
namespace {

TEST(BackgroundWork, RunsAllThatIsAddedAndGivesItsResults) {
  BackgroundWork work;
  std::vector<std::future<int>> results;
  for (int i = 0; i < 100; ++i) {
    std::packaged_task<int()> task([i] { return i * i; });
    results.push_back(task.get_future());
    work.add(std::packaged_task<void()>(std::move(task)));
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(results[static_cast<size_t>(i)].get(), i * i);
}

TEST(BackgroundWork, KeepsToItsNumberOfThreads) {
  std::atomic<int> at_once{0};
  std::atomic<int> most{0};
  std::vector<std::future<void>> done;
  BackgroundWork work(1);
  for (int i = 0; i < 20; ++i) {
    std::packaged_task<void()> task([&] {
      most = std::max(most.load(), ++at_once);
      std::this_thread::yield();
      --at_once;
    });
    done.push_back(task.get_future());
    work.add(std::move(task));
  }
  for (std::future<void>& one : done) one.get();
  EXPECT_EQ(most, 1);
}

TEST(BackgroundWork, EndsWithWhatRunsAndDropsWhatWaits) {
  std::promise<void> started;
  std::promise<void> may_end;
  std::atomic<bool> ended{false};
  std::future<void> dropped;
  std::thread release;
  {
    BackgroundWork work(1);
    work.add(std::packaged_task<void()>([&] {
      started.set_value();
      may_end.get_future().wait();
      ended = true;
    }));
    started.get_future().wait();
    std::packaged_task<void()> waiting([] {});
    dropped = waiting.get_future();
    work.add(std::move(waiting));
    release = std::thread([&] {
      // Dropped first, and only then may the other end.
      EXPECT_THROW(dropped.get(), std::future_error);
      may_end.set_value();
    });
  }
  EXPECT_TRUE(ended);
  release.join();
}

// The size of stacks that no address space holds, while it lives.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, size_t{1} << 47);
    pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
  }
  ~NoMoreThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoMoreThreads(const NoMoreThreads&) = delete;
  NoMoreThreads& operator=(const NoMoreThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

TEST(BackgroundWork, IsTheCallersWhereNoThreadCanBeHad) {
  BackgroundWork work;
  const NoMoreThreads none;
  EXPECT_THROW(std::thread([] {}).join(), std::system_error);
  std::thread::id worker;
  std::packaged_task<void()> task([&] { worker = std::this_thread::get_id(); });
  std::future<void> done = task.get_future();
  work.add(std::move(task));
  ASSERT_EQ(done.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  EXPECT_EQ(worker, std::this_thread::get_id());
}

TEST(BackgroundWork, WaitsForWhatItsTasksAdd) {
  constexpr int kTasks = 20;
  BackgroundWork work(2);
  std::atomic<int> done{0};
  for (int i = 0; i < kTasks; ++i) {
    work.add(std::packaged_task<void()>([&] {
      std::this_thread::yield();
      work.add(std::packaged_task<void()>([&] { ++done; }));
    }));
  }
  work.wait();
  EXPECT_EQ(done, kTasks);
  work.wait();  // for nothing
}

TEST(BackgroundWork, OutlivesATaskThatThrows) {
  BackgroundWork work(1);
  std::packaged_task<void()> bad([] { throw std::runtime_error("no"); });
  std::packaged_task<void()> good([] {});
  std::future<void> first = bad.get_future();
  std::future<void> second = good.get_future();
  work.add(std::move(bad));
  work.add(std::move(good));
  EXPECT_THROW(first.get(), std::runtime_error);
  second.get();
}

}  // namespace
}  // namespace tessera
