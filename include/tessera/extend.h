// For those who write operators, kernels, fusion patterns and backends, in a plug-in or beside their own
// program. What a network is built and trained with is tessera/tessera.h.
#pragma once

#include "tessera/base/error.h"
#include "tessera/base/log.h"
#include "tessera/base/narrow_float.h"
#include "tessera/base/random.h"
#include "tessera/base/rounding.h"
#include "tessera/base/text.h"
#include "tessera/compile/backend.h"
#include "tessera/compile/communicator.h"
#include "tessera/compile/host_memory.h"
#include "tessera/compile/reference_kernel.h"
#include "tessera/device/common/kernel_table.h"
#include "tessera/device/common/refusal.h"
#include "tessera/device/common/roles.h"
#include "tessera/device/common/workspace_layout.h"
#include "tessera/graph/operator.h"
#include "tessera/ops/functions.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/fusion_pattern.h"
