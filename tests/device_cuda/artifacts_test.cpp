// What kernels are made of, taken along and brought in: machine code here, plans in plan_cache_test.cpp.
#include "device/cuda/codegen/artifacts.h"

#include <gtest/gtest.h>

#include "device/cuda/codegen/cache_files.h"
#include "device/cuda/codegen/module_cache.h"
#include "support/expect_error.h"

namespace tessera::cuda {
namespace {

// Read nowhere but among what is offered.
const CacheFiles kNowhere("", "cubin");

TEST(Artifacts, AreFoundAsLongAsTheyAreOffered) {
  const auto [name, contents] = kNowhere.file("key", "machine\ncode");
  EXPECT_EQ(kNowhere.read("key"), "");
  {
    const auto offered = offer_artifacts({{name, contents}});
    const auto others = offer_artifacts({{"0123456789abcdef.cubin", "something"}});
    EXPECT_EQ(kNowhere.read("key"), "machine\ncode");
    EXPECT_EQ(kNowhere.read("another key"), "");
  }
  EXPECT_EQ(kNowhere.read("key"), "");
}

TEST(Artifacts, ThatAreDamagedOrAnothersAreNotThere) {
  const auto [name, contents] = kNowhere.file("key", "code");
  for (const std::string& damaged :
       {contents + "x", contents.substr(0, contents.size() - 1), std::string("no header"), std::string(),
        kNowhere.file("another key", "code").second}) {
    const auto offered = offer_artifacts({{name, damaged}});
    EXPECT_EQ(kNowhere.read("key"), "") << damaged;
  }
}

TEST(Artifacts, OfACardThatIsNotThereAreTheCodeOfItsKernels) {
  const std::string source = "extern \"C\" __global__ void run(float* y) { *y = 1; }\n";
  const Context context("h100");
  const auto before = context.modules().get("not a kernel: asked for when nobody records");
  ArtifactRecording recording;
  const auto module = context.modules().get(source);
  const auto again = context.modules().get(source);
  const KernelArtifacts artifacts = recording.take();
  ASSERT_EQ(artifacts.size(), 1);
  const auto& [name, contents] = *artifacts.begin();
  EXPECT_TRUE(name.ends_with(".cubin")) << name;
  EXPECT_NE(contents.find("\x7f"
                          "ELF"),
            std::string::npos);
  EXPECT_EQ(machine_code_file(source, context.traits().architecture).second, contents);
}

TEST(Artifacts, ThatCannotBeMadeAreAnError) {
  ArtifactRecording recording;
  ArtifactRecording::note_source("no kernel", 90);
  EXPECT_ERROR(recording.take(), ErrorCode::internal, "no kernel");
}

}  // namespace
}  // namespace tessera::cuda
