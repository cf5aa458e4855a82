// The functions of functions.h that communicate.
#include "tessera/ops/functions.h"

#include "tessera/graph/operator.h"

namespace tessera::ops {
namespace {

Value* collective_of(const char* operator_name, Value* x, const RankGroup& group,
                     Attributes attributes = {}) {
  attributes.set("group", group.name);
  attributes.set("ranks", group.ranks);
  return apply(operator_name, {x}, std::move(attributes))->output();
}

}  // namespace

std::vector<Value*> all_reduce(const std::vector<Value*>& inputs, const RankGroup& group,
                               const std::string& reduction) {
  const Node* node =
      apply("all_reduce", inputs, {{"group", group.name}, {"ranks", group.ranks}, {"reduction", reduction}});
  std::vector<Value*> outputs;
  for (const auto& output : node->outputs()) outputs.push_back(output.get());
  return outputs;
}
Value* all_reduce(Value* x, const RankGroup& group, const std::string& reduction) {
  return collective_of("all_reduce", x, group, {{"reduction", reduction}});
}
Value* reduce_scatter(Value* x, const RankGroup& group, const std::string& reduction) {
  return collective_of("reduce_scatter", x, group, {{"reduction", reduction}});
}
Value* all_gather(Value* x, const RankGroup& group) {
  return collective_of("all_gather", x, group);
}
Value* broadcast(Value* x, const RankGroup& group, int64_t root) {
  return collective_of("broadcast", x, group, {{"root", root}});
}
Value* reduce(Value* x, const RankGroup& group, int64_t root) {
  return collective_of("reduce", x, group, {{"root", root}});
}

}  // namespace tessera::ops
