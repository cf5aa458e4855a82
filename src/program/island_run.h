// An island on its device, where what it makes stays: the host copies what it wants to see.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tessera/compile/executable.h"
#include "tessera/program/item.h"

namespace tessera::program {

class IslandRun {
 public:
  IslandRun(std::unique_ptr<Executable> executable, std::shared_ptr<Device> device);

  const Executable& executable() const { return *executable_; }
  const Device& device() const { return *device_; }

  // Inputs and outputs by the names of the graph. `run` numbers the runs of the module, within which the
  // contents of a tensor stay as they are: one that was given before is not copied once more.
  std::map<std::string, Item> run(const std::map<std::string, const Item*>& inputs, uint64_t run);

 private:
  // Where an input lies.
  struct Place {
    const void* memory = nullptr;  // of the last run, where it was on the device
    DeviceTensor own = {};         // what others are copied to, once they lay at two places
    Tensor given = {};             // from the host
    uint64_t run = 0;              // in which it was given
  };

  std::map<std::string, Item> run_in_host_memory(const std::map<std::string, const Item*>& inputs);
  void take(const std::string& name, const Item& item, uint64_t run);
  void take_there(Place& place, const std::string& name, const DeviceTensor& tensor);
  Item keep(const std::string& name);
  DeviceTensor memory_for(const std::string& name, const DeviceTensor& like);

  std::shared_ptr<Device> device_;
  std::unique_ptr<Executable> executable_;
  std::map<std::string, Place> places_;                    // of inputs
  std::map<std::string, std::vector<DeviceTensor>> kept_;  // of outputs, to be used again
};

}  // namespace tessera::program
