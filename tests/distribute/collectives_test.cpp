// Every collective against plain loops: over threads, and over the processes that mpirun starts.
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/base/random.h"
#include "tessera/base/tensor.h"
#include "tessera/graph/operator.h"

#include "distribute/any_ranks.h"
#include "support/expect_error.h"
#include "support/ranks.h"

namespace tessera::testing {
namespace {

constexpr int64_t kMoreThanASlot = 200'003;  // elements, in several chunks for all types
constexpr int64_t kSizes[] = {0, 1, 7, 1001, kMoreThanASlot};

std::vector<DataType> numeric_types() {
  std::vector<DataType> types;
  for (const DataType type : kAllDataTypes) {
    if (kNumericTypes.contains(type)) types.push_back(type);
  }
  return types;
}

// Of one rank: small integers, so that sums are exact in every type, and halves for floating ones.
double value_of(int64_t rank, DataType type, int64_t i) {
  const auto drawn = static_cast<double>((i * 7 + rank * 3) % 11);
  return type == DataType::uint8 ? drawn : is_floating(type) ? (drawn - 5) / 2 : drawn - 5;
}

Tensor values_of(int64_t rank, DataType type, int64_t elements) {
  Tensor values(type, {elements});
  for (int64_t i = 0; i < elements; ++i) values.set(i, value_of(rank, type, i));
  return values;
}

double reduced(Reduction reduction, int64_t ranks, const std::function<double(int64_t rank)>& value) {
  double result = value(0);
  for (int64_t rank = 1; rank < ranks; ++rank) {
    const double other = value(rank);
    if (reduction == Reduction::maximum) {
      result = std::max(result, other);
    } else if (reduction == Reduction::minimum) {
      result = std::min(result, other);
    } else {
      result += other;
    }
  }
  return reduction == Reduction::mean ? result / static_cast<double>(ranks) : result;
}

// As a tensor of the type holds it.
double rounded(DataType type, double value) {
  return Tensor::scalar(type, value).at(0);
}

class Collectives : public ::testing::TestWithParam<int64_t> {};

TEST_P(Collectives, AllReduceIsThePlainLoop) {
  const int64_t ranks = GetParam();
  for (const DataType type : numeric_types()) {
    for (const int64_t elements : kSizes) {
      for (const Reduction reduction :
           {Reduction::sum, Reduction::mean, Reduction::maximum, Reduction::minimum}) {
        if (!reduces(type, reduction)) continue;
        SCOPED_TRACE(fmt::format("{} {} of {}", to_string(reduction), to_string(type), elements));
        on_any_ranks(ranks, [&](const auto& communicator) {
          Tensor values = values_of(communicator->rank(), type, elements);
          const ReducedPart in_place{values.raw(), values.raw(), elements};
          communicator->all_reduce({&in_place, 1}, type, reduction);
          for (int64_t i = 0; i<elements; i += elements> 2000 ? 991 : 1) {
            const double expected =
                reduced(reduction, ranks, [&](int64_t rank) { return value_of(rank, type, i); });
            ASSERT_EQ(values.at(i), rounded(type, expected)) << i;
          }
        });
      }
    }
  }
}

TEST_P(Collectives, AllReduceTakesSeveralPartsTogether) {
  const int64_t ranks = GetParam();
  on_any_ranks(ranks, [&](const auto& communicator) {
    std::vector<Tensor> inputs;
    std::vector<Tensor> outputs;
    std::vector<ReducedPart> parts;
    for (const int64_t elements : {3L, 0L, kMoreThanASlot, 1L, 65536L}) {
      inputs.push_back(values_of(communicator->rank(), DataType::fp32, elements));
      outputs.emplace_back(DataType::fp32, Shape{elements});
      parts.push_back({inputs.back().raw(), outputs.back().raw(), elements});
    }
    communicator->all_reduce(parts, DataType::fp32, Reduction::sum);
    for (size_t part = 0; part < parts.size(); ++part) {
      Tensor expected = values_of(0, DataType::fp32, parts[part].elements);
      for (int64_t rank = 1; rank < ranks; ++rank) {
        const Tensor other = values_of(rank, DataType::fp32, parts[part].elements);
        for (int64_t i = 0; i < expected.size(); ++i) expected.set(i, expected.at(i) + other.at(i));
      }
      EXPECT_TRUE(outputs[part].identical(expected)) << "part " << part;
      EXPECT_TRUE(inputs[part].identical(values_of(communicator->rank(), DataType::fp32, expected.size())));
    }
  });
}

TEST_P(Collectives, ReduceScatterIsThePlainLoop) {
  const int64_t ranks = GetParam();
  for (const DataType type : numeric_types()) {
    for (const int64_t elements : kSizes) {
      for (const Reduction reduction : {Reduction::sum, Reduction::mean}) {
        if (!reduces(type, reduction)) continue;
        SCOPED_TRACE(fmt::format("{} {} of {}", to_string(reduction), to_string(type), elements));
        on_any_ranks(ranks, [&](const auto& communicator) {
          const Tensor input = values_of(communicator->rank(), type, ranks * elements);
          Tensor output(type, {elements});
          communicator->reduce_scatter(input.raw(), output.raw(), elements, type, reduction);
          for (int64_t i = 0; i<elements; i += elements> 2000 ? 991 : 1) {
            const int64_t place = communicator->rank() * elements + i;
            const double expected =
                reduced(reduction, ranks, [&](int64_t rank) { return value_of(rank, type, place); });
            ASSERT_EQ(output.at(i), rounded(type, expected)) << i;
          }
        });
      }
    }
  }
}

TEST_P(Collectives, AllGatherPutsTheRanksOneAfterTheOther) {
  const int64_t ranks = GetParam();
  for (const int64_t bytes : kSizes) {
    on_any_ranks(ranks, [&](const auto& communicator) {
      const Tensor own = values_of(communicator->rank(), DataType::uint8, bytes);
      Tensor all(DataType::uint8, {ranks, bytes});
      communicator->all_gather(own.raw(), all.raw(), bytes);
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const Tensor expected = values_of(rank, DataType::uint8, bytes);
        EXPECT_EQ(0, bytes == 0 ? 0
                                : std::memcmp(static_cast<const std::byte*>(all.raw()) + rank * bytes,
                                              expected.raw(), static_cast<size_t>(bytes)));
      }
    });
  }
}

TEST_P(Collectives, BroadcastGivesAllWhatTheRootHas) {
  const int64_t ranks = GetParam();
  for (const int64_t bytes : kSizes) {
    for (int64_t root = 0; root < ranks; ++root) {
      on_any_ranks(ranks, [&](const auto& communicator) {
        Tensor own = values_of(communicator->rank(), DataType::uint8, bytes);
        communicator->broadcast(own.raw(), own.raw(), bytes, root);
        EXPECT_TRUE(own.identical(values_of(root, DataType::uint8, bytes))) << root;
      });
    }
  }
}

// What is rounded depends on the order, which is that of the ranks whoever comes first.
TEST_P(Collectives, SumsHaveTheSameBitsOnAllRanksAndInAllRuns) {
  const int64_t ranks = GetParam();
  constexpr int64_t kElements = 10'007;
  const auto drawn = [](int64_t rank) {
    Tensor values(DataType::fp32, {kElements});
    const Random random(static_cast<uint64_t>(rank) + 1);
    for (int64_t i = 0; i < kElements; ++i) values.set(i, random.normal(static_cast<uint64_t>(i)));
    return values;
  };
  Tensor expected = drawn(0);
  for (int64_t rank = 1; rank < ranks; ++rank) {
    const Tensor other = drawn(rank);
    for (int64_t i = 0; i < kElements; ++i)
      expected.data<float>()[static_cast<size_t>(i)] += other.data<float>()[static_cast<size_t>(i)];
  }
  for (int run = 0; run < 5; ++run) {
    on_any_ranks(ranks, [&](const auto& communicator) {
      Tensor values = drawn(communicator->rank());
      const ReducedPart part{values.raw(), values.raw(), kElements};
      communicator->all_reduce({&part, 1}, DataType::fp32, Reduction::sum);
      EXPECT_TRUE(values.identical(expected));
    });
  }
}

// 2048 + 1 is no fp16; added one by one in fp16 the ones would be lost.
TEST_P(Collectives, HalvesAreAddedInSinglePrecision) {
  const int64_t ranks = GetParam();
  on_any_ranks(ranks, [&](const auto& communicator) {
    Tensor value = Tensor::scalar(DataType::fp16, communicator->rank() == 0 ? 2048 : 1);
    const ReducedPart part{value.raw(), value.raw(), 1};
    communicator->all_reduce({&part, 1}, DataType::fp16, Reduction::sum);
    EXPECT_EQ(value.at(0), rounded(DataType::fp16, 2048.0 + static_cast<double>(ranks - 1)));
  });
}

TEST_P(Collectives, ANaNOfAnyRankIsTheResult) {
  const int64_t ranks = GetParam();
  for (int64_t broken = 0; broken < ranks; ++broken) {
    for (const Reduction reduction : {Reduction::sum, Reduction::maximum, Reduction::minimum}) {
      on_any_ranks(ranks, [&](const auto& communicator) {
        Tensor value = Tensor::scalar(
            DataType::fp32, communicator->rank() == broken ? std::numeric_limits<double>::quiet_NaN() : 1);
        const ReducedPart part{value.raw(), value.raw(), 1};
        communicator->all_reduce({&part, 1}, DataType::fp32, reduction);
        EXPECT_TRUE(std::isnan(value.at(0)));
      });
    }
  }
}

TEST_P(Collectives, GroupsWorkBesideEachOther) {
  const int64_t ranks = GetParam();
  on_any_ranks(ranks, [&](const auto& communicator) {
    // The odd ranks and the even ones, the latter in reverse.
    std::vector<int64_t> members;
    const bool is_odd = communicator->rank() % 2 == 1;
    for (int64_t rank = is_odd ? 1 : 0; rank < ranks; rank += 2) members.push_back(rank);
    if (!is_odd) std::reverse(members.begin(), members.end());
    const std::shared_ptr<Communicator> group = communicator->group(members);
    ASSERT_NE(group, nullptr);
    ASSERT_EQ(group->size(), std::ssize(members));
    EXPECT_EQ(members[static_cast<size_t>(group->rank())], communicator->rank());
    for (int run = 0; run < 20; ++run) {
      int64_t sum = communicator->rank();
      const ReducedPart part{&sum, &sum, 1};
      group->all_reduce({&part, 1}, DataType::int64, Reduction::sum);
      EXPECT_EQ(sum, std::accumulate(members.begin(), members.end(), int64_t{0}));
    }
    const int64_t none[] = {ranks - 1};
    EXPECT_EQ(communicator->group(none) != nullptr, communicator->rank() == ranks - 1);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Collectives, ::testing::Values(2, 3, 4));

TEST(Faults, AnAbortReachesThoseThatWaitAndThoseThatCome) {
  EXPECT_ERROR(on_any_ranks(3,
                            [&](const auto& communicator) {
                              if (communicator->rank() == 1) {
                                communicator->abort("rank 1: the disk is full");
                                return;
                              }
                              communicator->barrier();
                            }),
               ErrorCode::rank_failure, "rank 1: the disk is full");
}

TEST(Faults, ALeaverIsNamed) {
  std::vector<std::shared_ptr<Communicator>> group = distribute::thread_group(2);
  group[1].reset();
  EXPECT_ERROR(group[0]->barrier(), ErrorCode::rank_failure, "rank 1 has left");
  EXPECT_ERROR(group[0]->barrier(), ErrorCode::rank_failure, "rank 1 has left");
}

TEST(Faults, DifferentCallsAreNamed) {
  EXPECT_ERROR(on_any_ranks(2,
                            [&](const auto& communicator) {
                              std::vector<float> values(100);
                              const ReducedPart part{values.data(), values.data(), communicator->rank() + 7};
                              communicator->all_reduce({&part, 1}, DataType::fp32, Reduction::sum);
                            }),
               ErrorCode::rank_failure, "the ranks do not run the same", "all_reduce of 7 fp32 (sum)",
               "all_reduce of 8 fp32 (sum)");
}

TEST(Faults, WhatCannotBeReducedIsRefused) {
  on_any_ranks(2, [&](const auto& communicator) {
    int32_t value = 1;
    const ReducedPart part{&value, &value, 1};
    EXPECT_ERROR(communicator->all_reduce({&part, 1}, DataType::int32, Reduction::mean),
                 ErrorCode::invalid_argument, "there is no mean of int32");
    EXPECT_ERROR(communicator->all_reduce({&part, 1}, DataType::boolean, Reduction::sum),
                 ErrorCode::invalid_argument, "there is no sum of bool");
    EXPECT_ERROR(communicator->broadcast(&value, &value, 4, 2), ErrorCode::invalid_argument, "no rank 2");
    const int64_t twice[] = {1, 1};
    EXPECT_ERROR(communicator->group(twice), ErrorCode::invalid_argument, "different ranks from 0 to 1");
  });
  EXPECT_ERROR(distribute::thread_group(0), ErrorCode::invalid_argument, "0 ranks");
}

}  // namespace
}  // namespace tessera::testing
