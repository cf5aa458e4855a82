#include "tessera/base/made_once.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tessera {
namespace {

using Made = std::shared_ptr<const std::string>;

TEST(MadeOnce, MakesEachValueOnceForAllThreads) {
  constexpr int kKeys = 20;
  constexpr int kThreads = 4;
  MadeOnce<int, Made> values(kKeys);
  std::atomic<int> made{0};
  std::vector<std::vector<Made>> seen(kThreads);
  std::vector<std::thread> threads;
  for (std::vector<Made>& own : seen) {
    threads.emplace_back([&] {
      for (int key = 0; key < kKeys; ++key) {
        own.push_back(values.get(key, [&] {
          ++made;
          return std::make_shared<const std::string>(std::to_string(key));
        }));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, kKeys);
  for (const std::vector<Made>& own : seen) EXPECT_EQ(own, seen.front());
  EXPECT_EQ(*seen.front()[7], "7");
}

// Nobody waits while a value of another key is made.
TEST(MadeOnce, MakesAValueThatAnotherOneNeeds) {
  MadeOnce<std::string, int> values(10);
  const auto one = [] { return 1; };
  EXPECT_EQ(values.get("two", [&] { return 1 + values.get("one", one); }), 2);
}

TEST(MadeOnce, GivesWhatIsThrownToAllWhoWaitAndTriesAgainAfterThat) {
  MadeOnce<int, int> values(10);
  std::promise<void> begun;
  std::promise<void> may_fail;
  const auto failing = [&]() -> int {
    begun.set_value();
    may_fail.get_future().wait();
    throw std::runtime_error("no value today");
  };
  std::thread maker([&] { EXPECT_THROW(values.get(1, failing), std::runtime_error); });
  begun.get_future().wait();
  std::atomic<bool> asked{false};
  std::thread waiter([&] {
    asked = true;
    // What comes too late to wait fails by itself.
    EXPECT_THROW(values.get(1, []() -> int { throw std::runtime_error("nor later"); }), std::runtime_error);
  });
  while (!asked) std::this_thread::yield();
  may_fail.set_value();
  maker.join();
  waiter.join();
  EXPECT_EQ(values.get(1, [] { return 5; }), 5);
  EXPECT_EQ(values.get(1, [] { return 6; }), 5);
}

TEST(MadeOnce, KeepsThoseThatWereAskedForLast) {
  MadeOnce<int, int> values(2);
  int made = 0;
  const auto get = [&](int key) {
    return values.get(key, [&] {
      ++made;
      return 10 * key;
    });
  };
  for (const int key : {1, 2, 1, 3}) EXPECT_EQ(get(key), 10 * key);  // 2 was not asked for longest, and goes
  EXPECT_EQ(made, 3);
  for (const int key : {1, 3}) EXPECT_EQ(get(key), 10 * key);
  EXPECT_EQ(made, 3);
  for (const int key : {2, 3, 1}) EXPECT_EQ(get(key), 10 * key);
  EXPECT_EQ(made, 5);
}

// What goes is destroyed where nobody else holds it.
TEST(MadeOnce, HoldsNoMoreThanItsLimit) {
  MadeOnce<int, Made> values(3);
  std::vector<std::weak_ptr<const std::string>> all;
  for (int key = 0; key < 100; ++key)
    all.push_back(values.get(key, [] { return std::make_shared<const std::string>("value"); }));
  EXPECT_EQ(std::count_if(all.begin(), all.end(), [](const auto& value) { return !value.expired(); }), 3);
}

// Values that need others are all being made at the same time: more of them than are kept.
TEST(MadeOnce, LetsNothingGoThatIsBeingMade) {
  MadeOnce<int, int> values(1);
  int made = 0;
  const std::function<int(int)> depth = [&](int key) {
    return values.get(key, [&] {
      ++made;
      return key == 0 ? 0 : 1 + depth(key - 1);
    });
  };
  EXPECT_EQ(depth(5), 5);
  EXPECT_EQ(made, 6);
}

}  // namespace
}  // namespace tessera
