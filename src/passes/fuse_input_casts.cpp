// The images of a step stay in memory until its end, whoever reads them, so a copy of them in 16 bits is
// memory and a pass over it for nothing where the kernel that reads it can round them itself. Where some
// readers cannot, such as the first layer's weight gradient, the cast that is left to them is made when the
// first of them runs.
#include <algorithm>

#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"
#include "tessera/passes/fuse.h"

#include "passes/passes.h"

namespace tessera::passes {
namespace {

bool rounds_an_input(const Node& cast) {
  const Value* x = cast.input(0);
  return x->producer() == nullptr && x->role() == InputRole::input && x->data_type() == DataType::fp32 &&
         is_half(cast.output()->data_type()) && !cast.output()->is_output_or_update();
}

// As the image alone: weights are no input of a graph, but a test's may be.
bool reads_as_image(const Node& reader, const Value* image) {
  const auto& inputs = reader.inputs();
  return std::count(inputs.begin(), inputs.end(), image) == 1 && reader.input(0) == image;
}

// Rounds the image in the node that reads it, of the same kind then, or of its operator's.
void fuse_into(Graph& graph, const Node& cast, Node* reader) {
  const std::string kind =
      reader->body() != nullptr ? reader->attributes().text("kind") : reader->operator_name();
  std::vector<Value*> outputs;
  for (const auto& output : reader->outputs()) outputs.push_back(output.get());
  Node* own = nullptr;
  {
    const InsertionPoint here(graph, reader);
    own = ops::cast(cast.input(0), cast.output()->data_type())->producer();
  }
  graph.set_input(reader, 0, own->output());
  FusionMatch match{.members = {own, reader}, .outputs = outputs, .roles = {}};
  match.add_role("wide_image", own->input(0));
  if (reader->body() == nullptr) match.add_roles_of(*reader);
  fuse_nodes(graph, kind, match.members, match.outputs, match.roles);
}

bool fuse_cast(Graph& graph, Node* cast, const PassContext& context) {
  std::vector<Node*> others;
  bool changed = false;
  for (Node* reader : readers_of(cast->output())) {
    if (reads_as_image(*reader, cast->output()) && context.target.takes_wide_image(*reader)) {
      fuse_into(graph, *cast, reader);
      changed = true;
    } else {
      others.push_back(reader);
    }
  }
  if (!changed) return false;
  if (!others.empty()) {
    const InsertionPoint here(graph, others.front());
    Value* late = ops::cast(cast->input(0), cast->output()->data_type());
    graph.replace_all_uses(cast->output(), late);
  }
  graph.erase(cast);
  return true;
}

}  // namespace

bool fuse_input_casts(Graph& graph, const PassContext& context) {
  if (!context.target.takes_wide_image) return false;
  bool changed = false;
  for (Node* cast : nodes_of(graph, "cast")) {
    if (rounds_an_input(*cast)) changed = fuse_cast(graph, cast, context) || changed;
  }
  return changed;
}

}  // namespace tessera::passes
