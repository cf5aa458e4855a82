// Somebody's own network: a recipe names it and its options, as it names those of the library.
#include <cstdio>
#include <filesystem>

#include <tessera/tessera.h>

namespace ts = tessera;

namespace {

// Two layers with a gate between them.
ts::models::Model gated(const ts::models::ClassifierOptions& options, const ts::Options& own) {
  const int64_t units = own.integer("units");
  return {"gated", options, [classes = options.classes, units](ts::nn::Context& context, ts::Value* x) {
            x = ts::nn::flatten(x);
            ts::Value* gate = ts::ops::sigmoid(ts::nn::linear(context, "gate", x, units));
            ts::Value* inner = gate * ts::nn::linear(context, "inner", x, units);
            return ts::nn::linear(context, "outer", inner, classes);
          }};
}

const ts::models::NetworkRegistration kGated(
    {{.name = "gated",
      .documentation = "Two layers with a gate between them",
      .options = {{.key = "units", .value = int64_t{8}, .documentation = "Of the inner layer"}},
      .create = gated}});

}  // namespace

int main(int count, char** arguments) {
  const auto folder = std::filesystem::temp_directory_path() / "tessera_own_network";
  std::filesystem::remove_all(folder);
  const ts::recipe::Recipe recipe = ts::recipe::parse_recipe(
      "model = {name = 'gated', units = 24}\ntrain = {epochs = 2, batch = 32}\n"
      "data = {kind = 'synthetic', image_size = 8, train_images = 640, test_images = 100}",
      "gated", {std::string("train.device=") + (count > 1 ? arguments[1] : "auto")});
  const ts::recipe::RunResult result = ts::recipe::run_recipe(recipe, {.folder = folder, .quiet = true});
  // What it left is opened anew by the network's name.
  ts::recipe::FinishedRun run = ts::recipe::open_run(folder);
  const ts::train::TestSet test = run.workload.test();
  const ts::Tensor logits = run.trainer.predict(*test.source, {.samples = 50}).at("logits");
  std::filesystem::remove_all(folder);
  const int64_t parameters = run.trainer.parameter_count();
  std::printf("%lld parameters, logits %s\n", static_cast<long long>(parameters),
              ts::to_string(logits.shape()).c_str());
  const bool right = parameters == 2 * (64 * 24 + 24) + 24 * 10 + 10 && logits.shape() == ts::Shape{50, 10};
  return right && result.fit.completed ? 0 : 1;
}
