// One network at several sizes.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "tessera/compile/executable.h"

namespace tessera {

// An executable for each of several sizes of a network, compiled when it is first wanted. All work in one
// workspace, on the same variables, and have what is made of frozen ones once. One thread at a time uses a
// family and its members.
class ExecutableFamily {
 public:
  // The graph at these sizes, all of whose symbols have numbers.
  using Build = std::function<std::unique_ptr<Graph>(const SymbolBindings& sizes)>;

  // No more than this many sizes stay, unless prepare() is told of more.
  static constexpr size_t kMostMembers = 16;

  // Without a workspace in the options the family has one of its own.
  ExecutableFamily(std::shared_ptr<Device> device, Build build, CompileOptions options = {},
                   size_t most_members = kMostMembers);

  // What members work on from now on. Each is bound when it is next asked for, also again to the variables
  // that it has: what it made once of those that have changed is made anew.
  void bind(std::shared_ptr<Variables> variables);

  // The member of these sizes, bound where there are variables. The one that was not asked for longest goes
  // where there are too many, and stays for those who hold it. Throws as compile() and Executable::bind().
  std::shared_ptr<Executable> at(const SymbolBindings& sizes);

  // From now on these are the members, and there is room for all of them: those of other sizes go, those that
  // are missing are compiled, several at a time where nothing is tuned, and all are bound. Throws as at(), of
  // the first size that cannot be compiled; none is added then.
  void prepare(const std::vector<SymbolBindings>& sizes);

  // Executable::discard() of every member.
  void discard();

  // From the one that was not asked for longest to the last.
  std::vector<SymbolBindings> sizes() const;
  Workspace& workspace() const { return *options_.workspace; }

 private:
  struct Member {
    SymbolBindings sizes;
    std::shared_ptr<Executable> executable;
    bool bound = false;  // to variables_, as they are since the last bind()
  };

  Member* find(const SymbolBindings& sizes);
  void bind(Member& member) const;

  std::shared_ptr<Device> device_;
  Build build_;
  CompileOptions options_;
  size_t most_members_;
  std::shared_ptr<Variables> variables_;
  std::vector<Member> members_;  // in the order of sizes()
};

}  // namespace tessera
