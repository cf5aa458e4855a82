// Whether variables are finite, found where they lie.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/compile/executable.h"

namespace tessera {

// Looks for NaN and infinity in variables on their device: one number of each goes to the host.
class VariableCheck {
 public:
  // Those of the names that hold floating numbers; all must be there, and keep type and shape.
  VariableCheck(std::shared_ptr<Variables> variables, const std::vector<std::string>& names,
                std::shared_ptr<Workspace> workspace);

  const std::vector<std::string>& names() const { return names_; }
  // Waits for what runs over the variables. The first name, in their order, of a variable that is not finite.
  std::optional<std::string> first_not_finite();

 private:
  std::vector<std::string> names_;
  std::unique_ptr<Executable> executable_;  // none where there is nothing to look at
};

}  // namespace tessera
