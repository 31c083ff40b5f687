// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/dpu/Dpu.h"
#include "sim/dpu/NativeProgram.h"

#include <memory>
#include <string>

namespace nearbank::dpu {

/// A way to run launches.
class Engine {
public:
  virtual ~Engine() = default;
  /// Runs every tasklet of `dpu` to its end. Sets dpu.last and dpu.fault; adds to dpu.total. Several threads may run
  /// different DPUs. Only `exact` shows a checker what it executes.
  virtual void run(Dpu &dpu, const RunLimits &limits) = 0;
};

/// Engine `fast` (FAST-1 to FAST-3, docs/model.md). `config` must outlive it.
/// @throws DeviceError NB0812 when the shared library at `translatorPath` cannot be loaded
std::unique_ptr<Engine> makeFastEngine(const DpuConfig &config, const std::string &translatorPath);
/// The same with a translator at hand, which must outlive it.
std::unique_ptr<Engine> makeFastEngine(const DpuConfig &config, Translator &translator);
/// Engine `exact`: tasklets interleaved instruction by instruction. `config` must outlive it.
std::unique_ptr<Engine> makeExactEngine(const DpuConfig &config);

} // namespace nearbank::dpu
