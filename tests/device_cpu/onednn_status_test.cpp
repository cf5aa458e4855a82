// Which error a status of oneDNN is, and which of them is a refusal.
#include "device/cpu/onednn/onednn_status.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace tessera::cpu {
namespace {

constexpr dnnl_status_t kEvery[] = {dnnl_out_of_memory,     dnnl_invalid_arguments, dnnl_unimplemented,
                                    dnnl_last_impl_reached, dnnl_runtime_error,     dnnl_not_required};

TEST(OnednnStatus, OfWorkIsNeverARefusal) {
  for (const dnnl_status_t status : kEvery) {
    try {
      calling_onednn([&] { throw dnnl::error(status, "could not execute a primitive"); });
      ADD_FAILURE() << status;
    } catch (const backend::Refused& refused) {
      ADD_FAILURE() << status << ": " << refused.what();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), error_code(status));
      EXPECT_STREQ(error.what(), "oneDNN: could not execute a primitive");
    }
  }
  EXPECT_EQ(error_code(dnnl_out_of_memory), ErrorCode::out_of_memory);
  EXPECT_EQ(error_code(dnnl_unimplemented), ErrorCode::unsupported);
  EXPECT_EQ(error_code(dnnl_invalid_arguments), ErrorCode::internal);
  EXPECT_EQ(error_code(dnnl_runtime_error), ErrorCode::device_fault);
  EXPECT_EQ(error_code(static_cast<dnnl_status_t>(15)), ErrorCode::device_fault);
}

TEST(OnednnStatus, OfADescriptorRefusesWhatItDoesNotDo) {
  for (const dnnl_status_t status : kEvery) {
    const bool refuses = status == dnnl_unimplemented || status == dnnl_invalid_arguments;
    const auto describe = [&] {
      return describing_to_onednn([&]() -> int { throw dnnl::error(status, "could not describe it"); });
    };
    if (refuses) {
      EXPECT_FALSE(backend::unless_refused(describe).has_value()) << status;
    } else {
      EXPECT_ERROR(backend::unless_refused(describe), error_code(status), "oneDNN: could not describe it");
    }
  }
}

// As the library says it: products of shapes that do not fit, and of types that no kernel of its multiplies.
TEST(OnednnStatus, IsThatOfTheLibrary) {
  using dnnl::memory;
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const auto describes = [&](int64_t depth, memory::data_type type) {
    const memory::desc a({2, 3}, memory::data_type::f32, memory::dims{3, 1});
    const memory::desc b({depth, 4}, type, memory::dims{4, 1});
    const memory::desc y({2, 4}, memory::data_type::f32, memory::dims{4, 1});
    return backend::unless_refused([&] {
             return describing_to_onednn([&] { return dnnl::matmul::primitive_desc(engine, a, b, y); });
           })
        .has_value();
  };
  EXPECT_TRUE(describes(3, memory::data_type::f32));
  EXPECT_FALSE(describes(5, memory::data_type::f32));
  EXPECT_FALSE(describes(3, memory::data_type::s8));
}

}  // namespace
}  // namespace tessera::cpu
