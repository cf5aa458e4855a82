// A plug-in whose entry holds nothing.
#include <tessera/compile/backend.h>

extern "C" {
extern tessera::Backend tessera_backend;
tessera::Backend tessera_backend = {nullptr, nullptr};
}
