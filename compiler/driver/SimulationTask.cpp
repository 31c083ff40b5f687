// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/SimulationTask.h"

#include "compiler/driver/SimulatorVersion.h"
#include "compiler/profile/ScratchArena.h"
#include "runtime/DpuKernel.h"
#include "runtime/Error.h"
#include "sim/dpu/DpuDevice.h"
#include "sim/system/SampledLaunch.h"
#include "sim/system/SimulatedDevice.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <charconv>
#include <map>

namespace nearbank::driver {

using Json = nlohmann::json;

static std::string hashOf(llvm::StringRef text) {
  llvm::XXH128_hash_t hash = llvm::xxh3_128bits(llvm::arrayRefFromStringRef(text));
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

/// "10" and "10.0" are the same value.
static std::string canonicalValue(const std::string &text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? fmt::format("{}", value) : text;
}

std::string simulatedMachineHash(const MachineConfig &machine) {
  std::map<std::string, std::string> values;
  for (const MachineValue &value : machine.values) {
    std::string section = value.path.substr(0, value.path.find('.'));
    // The energy of a launch is made of its counts afterwards.
    bool isApplied = section == "placement" || section == "coherence" || section == "energy" ||
                     (machine.kind != "host" && (section == "host" || section == "link"));
    if (!isApplied)
      values[value.path] = canonicalValue(value.value);
  }
  std::string text = machine.kind;
  for (const auto &[path, value] : values)
    text += "\n" + path + "=" + value;
  return hashOf(text);
}

static std::string samplingText(Simulation simulation) {
  if (simulation == Simulation::Exact)
    return "exact";
  sim::SamplingOptions options;
  return fmt::format("sampled windows={} windowInstructions={} leastGain={} leastInstructions={}", options.windows,
                     options.windowInstructions, options.leastGain, options.leastInstructions);
}

/// The nest alone: its buffers in the order in which its operands name them, cut to what it touches.
static Program cutNest(const Program &program, uint32_t nest) {
  Program cut;
  const NestInstance &original = program.nests[nest];
  const NestFacts &facts = program.kernels[original.kernel].facts;
  NestKernel kernel;
  kernel.name = program.kernels[original.kernel].name;
  kernel.facts.isDataDependent = facts.isDataDependent;
  kernel.facts.indexBounds = facts.indexBounds;
  NestInstance instance;
  instance.id = original.id;
  std::map<uint32_t, uint32_t> numbers;
  std::map<uint32_t, std::pair<uint64_t, uint64_t>> spans;
  for (const NestOperand &operand : original.operands) {
    auto [span, isNew] = spans.try_emplace(operand.buffer, operand.spanBegin, operand.spanEnd);
    span->second.first = std::min({span->second.first, operand.spanBegin, operand.byteOffset});
    span->second.second = std::max({span->second.second, operand.spanEnd, operand.byteOffset});
  }
  constexpr uint64_t alignment = 64; // Of arguments and temporaries: vector code may use aligned accesses.
  for (NestOperand operand : original.operands) {
    auto [number, isNew] = numbers.try_emplace(operand.buffer, static_cast<uint32_t>(cut.buffers.size()));
    auto [begin, end] = spans.at(operand.buffer);
    begin = begin / alignment * alignment;
    if (isNew) {
      const BufferInfo &info = program.buffers[operand.buffer];
      BufferInfo buffer;
      buffer.bytes = end - begin;
      buffer.elementType = info.elementType;
      buffer.indexClass = info.indexClass;
      cut.buffers.push_back(buffer);
    }
    operand.buffer = number->second;
    operand.byteOffset -= begin;
    operand.spanBegin -= begin;
    operand.spanEnd -= begin;
    instance.operands.push_back(operand);
  }
  cut.kernels.push_back(kernel);
  cut.nests.push_back(instance);
  return cut;
}

static Json operandsJson(const Program &program) {
  Json document = {{"buffers", Json::array()}, {"operands", Json::array()}, {"indexBounds", Json::array()}};
  for (const BufferInfo &buffer : program.buffers)
    document["buffers"].push_back({buffer.bytes, static_cast<int>(buffer.elementType), buffer.indexClass});
  for (const NestOperand &operand : program.nests.front().operands)
    document["operands"].push_back({operand.buffer, operand.byteOffset, operand.spanBegin, operand.spanEnd,
                                    operand.distinctBytes, operand.reads, operand.writes});
  const NestFacts &facts = program.kernels.front().facts;
  for (const auto &[operand, bound] : facts.indexBounds)
    document["indexBounds"].push_back({operand, bound});
  document["isDataDependent"] = facts.isDataDependent;
  return document;
}

/// What a device needs of a DPU kernel, and back.
static Json layoutJson(const DpuKernel &kernel) {
  Json splits = Json::array(), operands = Json::array();
  for (const DpuKernel::Split &split : kernel.splits)
    splits.push_back({split.extent, split.chunk});
  for (const DpuKernel::Operand &operand : kernel.operands) {
    Json dimensions = Json::array();
    for (const DpuKernel::Dimension &dimension : operand.dimensions)
      dimensions.push_back({dimension.size, dimension.stride, dimension.offset, dimension.length,
                            dimension.packedStride, dimension.steps});
    operands.push_back({operand.argument, operand.elementBytes, operand.mramOffset, operand.bytes, operand.isRead,
                        operand.isWritten, dimensions});
  }
  return {{"splits", splits},      {"operands", operands},
          {"items", kernel.items}, {"tasklets", kernel.tasklets},
          {"depth", kernel.depth}, {"depthBlock", kernel.depthBlock}};
}

static std::shared_ptr<const DpuKernel> parseLayout(const Json &document) {
  auto kernel = std::make_shared<DpuKernel>();
  for (const Json &entry : document.at("splits"))
    kernel->splits.push_back({entry.at(0), entry.at(1)});
  for (const Json &entry : document.at("operands")) {
    DpuKernel::Operand operand{"",          "",          entry.at(0), entry.at(1), entry.at(2),
                               entry.at(3), entry.at(4), entry.at(5), {}};
    for (const Json &dimension : entry.at(6))
      operand.dimensions.push_back(
          {dimension.at(0), dimension.at(1), dimension.at(2), dimension.at(3), dimension.at(4), dimension.at(5)});
    kernel->operands.push_back(std::move(operand));
  }
  kernel->items = document.at("items");
  kernel->tasklets = document.at("tasklets");
  kernel->depth = document.at("depth");
  kernel->depthBlock = document.at("depthBlock");
  return kernel;
}

SimulationTask::SimulationTask(const Program &program, uint32_t nest, const PimKernel &code,
                               const MachineConfig &machine, Simulation simulation)
    : program_(cutNest(program, nest)), code_(code), simulation_(simulation) {
  llvm::StringRef elf(reinterpret_cast<const char *>(code.elf.data()), code.elf.size());
  key_.code = hashOf(hashOf(elf) + fmt::format(" {}", code.tasks) + (code.dpu ? layoutJson(*code.dpu).dump() : ""));
  key_.operands = hashOf(operandsJson(program_).dump());
  key_.machine = simulatedMachineHash(machine);
  key_.sampling = samplingText(simulation);
  key_.simulator = machine.dpus ? dpuSimulatorVersion : simulatorVersion;
}

/// Longest vector registers that the simulator executes.
static constexpr int64_t executedVectorBits = 512;

bool canSimulate(const MachineConfig &machine) {
  if (machine.dpus)
    return true;
  bool executesKernels = machine.kind == "near-memory-cores" || machine.kind == "host";
  return executesKernels && machine.core.vectorBits <= executedVectorBits;
}

template <typename Device>
static PimTiming simulateOn(Device &&device, Simulation simulation, const PimKernel &code,
                            std::span<const PimDevice::BoundBuffer> bound, std::span<const NestOperand> operands) {
  if (simulation == Simulation::Sampled)
    return device.estimate(code, bound, operands);
  KernelStatus status;
  return device.execute(code, bound, operands, status);
}

PimTiming SimulationTask::simulate(const MachineConfig &machine, int threads) const {
  const NestInstance &nest = program_.nests.front();
  const NestFacts &facts = program_.kernels.front().facts;
  profile::ScratchArena scratch(program_, nest, facts, facts.indexBounds);
  std::vector<PimDevice::BoundBuffer> bound(program_.buffers.size());
  std::vector<uint64_t> addresses = guestAddresses(program_);
  for (size_t buffer = 0; buffer < bound.size(); ++buffer) {
    bound[buffer].guestBase = addresses[buffer];
    bound[buffer].bytes = program_.buffers[buffer].bytes;
    bound[buffer].isWritable = false;
  }
  for (size_t i = 0; i < nest.operands.size(); ++i) {
    PimDevice::BoundBuffer &target = bound[nest.operands[i].buffer];
    target.host = static_cast<std::byte *>(scratch.operands()[i]) - nest.operands[i].byteOffset;
    target.isWritable |= nest.operands[i].writes;
  }
  if (machine.dpus)
    return simulateOn(dpu::DpuDevice(machine, threads), simulation_, code_, bound, nest.operands);
  if (machine.kind == "host")
    return simulateOn(sim::HostDevice(machine), simulation_, code_, bound, nest.operands);
  return simulateOn(sim::NmcDevice(machine, threads), simulation_, code_, bound, nest.operands);
}

std::string SimulationTask::serialize() const {
  Json document = operandsJson(program_);
  document["kernel"] = kernel();
  document["nest"] = program_.nests.front().id;
  document["tasks"] = code_.tasks;
  document["reductionTrips"] = code_.reductionTrips;
  if (code_.dpu)
    document["layout"] = layoutJson(*code_.dpu);
  const auto *begin = reinterpret_cast<const uint8_t *>(code_.elf.data());
  document["elf"] = Json::binary({begin, begin + code_.elf.size()});
  document["simulation"] = static_cast<int>(simulation_);
  document["key"] = {key_.code, key_.operands, key_.machine, key_.sampling, key_.simulator};
  std::string bytes;
  Json::to_cbor(document, bytes);
  return bytes;
}

SimulationTask SimulationTask::parse(const std::string &bytes) {
  Json document = Json::from_cbor(bytes);
  SimulationTask task;
  for (const Json &entry : document.at("buffers")) {
    BufferInfo buffer;
    buffer.bytes = entry.at(0);
    buffer.elementType = static_cast<ElementType>(entry.at(1).get<int>());
    buffer.indexClass = entry.at(2);
    task.program_.buffers.push_back(buffer);
  }
  NestInstance nest;
  nest.id = document.at("nest");
  for (const Json &entry : document.at("operands"))
    nest.operands.push_back(
        {entry.at(0), entry.at(1), entry.at(2), entry.at(3), entry.at(4), entry.at(5), entry.at(6)});
  task.program_.nests.push_back(nest);
  NestKernel kernel;
  kernel.name = document.at("kernel");
  for (const Json &entry : document.at("indexBounds"))
    kernel.facts.indexBounds[entry.at(0)] = entry.at(1);
  kernel.facts.isDataDependent = document.at("isDataDependent");
  task.program_.kernels.push_back(kernel);
  task.code_.tasks = document.at("tasks");
  task.code_.reductionTrips = document.at("reductionTrips");
  if (document.contains("layout"))
    task.code_.dpu = parseLayout(document.at("layout"));
  const auto &elf = document.at("elf").get_binary();
  const auto *begin = reinterpret_cast<const std::byte *>(elf.data());
  task.code_.elf.assign(begin, begin + elf.size());
  task.simulation_ = static_cast<Simulation>(document.at("simulation").get<int>());
  const Json &key = document.at("key");
  task.key_ = {key.at(0), key.at(1), key.at(2), key.at(3), key.at(4)};
  return task;
}

std::string timingText(const PimTiming &timing) {
  Json counters = Json::array();
  for (const auto &[name, value] : timing.counters)
    counters.push_back({name, value});
  return Json{{"timeNs", timing.timeNs},
              {"instructions", timing.instructions},
              {"coreCycles", timing.coreCycles},
              {"dramBytes", timing.dramBytes},
              {"l1dAccesses", timing.l1dAccesses},
              {"l1dMisses", timing.l1dMisses},
              {"coresUsed", timing.coresUsed},
              {"isSampled", timing.isSampled},
              {"lowNs", timing.lowNs},
              {"highNs", timing.highNs},
              {"counters", counters}}
      .dump();
}

PimTiming parseTiming(const std::string &text) {
  Json document = Json::parse(text);
  PimTiming timing;
  timing.timeNs = document.at("timeNs");
  timing.instructions = document.at("instructions");
  timing.coreCycles = document.at("coreCycles");
  timing.dramBytes = document.at("dramBytes");
  timing.l1dAccesses = document.at("l1dAccesses");
  timing.l1dMisses = document.at("l1dMisses");
  timing.coresUsed = document.at("coresUsed");
  timing.isSampled = document.at("isSampled");
  timing.lowNs = document.at("lowNs");
  timing.highNs = document.at("highNs");
  for (const Json &counter : document.at("counters"))
    timing.counters.emplace_back(counter.at(0), counter.at(1));
  return timing;
}

} // namespace nearbank::driver
