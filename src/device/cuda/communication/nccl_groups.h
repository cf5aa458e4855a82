// The groups of ranks to which a GPU belongs.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "tessera/compile/communicator.h"
#include "tessera/graph/graph.h"

namespace tessera::cuda {

class Context;
class NcclGroup;

class NcclGroups {
 public:
  explicit NcclGroups(const Context& context);
  ~NcclGroups();
  NcclGroups(const NcclGroups&) = delete;
  NcclGroups& operator=(const NcclGroups&) = delete;

  // As DeviceCollectives has them.
  void connect(const std::shared_ptr<Communicator>& members, int64_t most_blocks);
  std::string refusal(const Node& node, const Communicator* members) const;

  // Null where they are not connected.
  std::shared_ptr<NcclGroup> find(const Communicator* members) const;

 private:
  struct Known {
    std::weak_ptr<Communicator> members;  // another one may come to lie at its address
    std::shared_ptr<NcclGroup> group;
    std::string refusal;
  };

  const Known* find_known(const Communicator* members) const;

  const Context& context_;
  mutable std::mutex mutex_;
  std::map<const Communicator*, Known> known_;
};

}  // namespace tessera::cuda
