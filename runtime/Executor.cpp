// SPDX-License-Identifier: Apache-2.0
// Runs the nests of a placed program in order.
#include "runtime/Executor.h"

#include "runtime/BufferPool.h"
#include "runtime/Error.h"
#include "runtime/HostThreads.h"
#include "runtime/Residency.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace nearbank {

namespace {

using Clock = std::chrono::steady_clock;

/// Guest addresses start above what a kernel's own image and stacks use, and every buffer begins a page.
constexpr uint64_t guestFirstAddress = uint64_t{1} << 32;
constexpr uint64_t guestPageBytes = 4096;

/// More blocks than threads, so that a thread that starts late leaves its share to the others.
constexpr int64_t blocksPerThread = 4;

constexpr int poisonByte = 0xCB;

double nsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

[[noreturn]] void failInconsistent(const std::string &where, const std::string &actual) {
  throw InternalError({"NB0902", "the placed program is inconsistent", where, "", actual,
                       "report this with the command that shows it"});
}

bool isReadOnly(BufferKind kind) {
  return kind == BufferKind::Input || kind == BufferKind::Parameter || kind == BufferKind::Constant;
}

/// Buffers of one run: their memory on the host and their addresses on PIM.
class Bindings {
public:
  explicit Bindings(const ExecutorInput &input);
  ~Bindings();
  Bindings(const Bindings &) = delete;
  Bindings &operator=(const Bindings &) = delete;

  /// Gives the temporaries that `nest` uses first their memory, and says which buffers the nest may write.
  void open(uint32_t nest);
  /// Takes back the memory of the temporaries that `nest` uses last, and the leave to write.
  void close(uint32_t nest);

  std::byte *address(const NestOperand &operand) const {
    return static_cast<std::byte *>(bound_[operand.buffer].host) + operand.byteOffset;
  }
  std::span<const PimDevice::BoundBuffer> bound() const { return bound_; }

private:
  void bindFixed(const ExecutorInput &input);
  void releaseBlock(uint32_t buffer);

  const Program &program_;
  std::vector<PimDevice::BoundBuffer> bound_;
  std::vector<BufferPool::Block> blocks_;    ///< Of temporaries that live now, by buffer index.
  std::vector<std::vector<uint32_t>> dying_; ///< Temporaries used last by a nest, by nest index.
};

Bindings::Bindings(const ExecutorInput &input)
    : program_(input.program), bound_(program_.buffers.size()), blocks_(program_.buffers.size()),
      dying_(program_.nests.size()) {
  bindFixed(input);
  std::vector<int64_t> lastUse(program_.buffers.size(), -1);
  for (size_t nest = 0; nest < program_.nests.size(); ++nest)
    for (const NestOperand &operand : program_.nests[nest].operands) {
      const BufferInfo &buffer = program_.buffers.at(operand.buffer);
      if (operand.spanEnd > buffer.bytes || operand.spanBegin > operand.spanEnd || operand.byteOffset > buffer.bytes)
        failInconsistent(program_.nests[nest].id,
                         fmt::format("operand span [{}, {}) in buffer {} of {} B", operand.spanBegin, operand.spanEnd,
                                     buffer.name, buffer.bytes));
      if (operand.writes && isReadOnly(buffer.kind))
        failInconsistent(program_.nests[nest].id, "writes read-only buffer " + buffer.name);
      lastUse[operand.buffer] = static_cast<int64_t>(nest);
    }
  for (size_t i = 0; i < program_.buffers.size(); ++i)
    if (program_.buffers[i].kind == BufferKind::Temporary && lastUse[i] >= 0)
      dying_[lastUse[i]].push_back(static_cast<uint32_t>(i));
}

Bindings::~Bindings() {
  for (uint32_t i = 0; i < blocks_.size(); ++i)
    releaseBlock(i);
}

void Bindings::bindFixed(const ExecutorInput &input) {
  std::vector<uint64_t> addresses = guestAddresses(program_);
  size_t nextOutput = 0;
  for (size_t i = 0; i < program_.buffers.size(); ++i) {
    const BufferInfo &buffer = program_.buffers[i];
    PimDevice::BoundBuffer &bound = bound_[i];
    bound.bytes = buffer.bytes;
    bound.guestBase = addresses[i];
    bound.isWritable = false;
    switch (buffer.kind) {
    case BufferKind::Input:
    case BufferKind::Parameter:
      if (!buffer.argumentIndex || *buffer.argumentIndex >= input.arguments.size())
        failInconsistent(buffer.name, fmt::format("{} arguments were passed", input.arguments.size()));
      bound.host = input.arguments[*buffer.argumentIndex];
      break;
    case BufferKind::Constant:
      if (buffer.constantData.size() < buffer.bytes)
        failInconsistent(buffer.name, fmt::format("{} B of constant data", buffer.constantData.size()));
      // Never written: the constructor refuses nests that would.
      bound.host = const_cast<std::byte *>(buffer.constantData.data());
      break;
    case BufferKind::Output:
      if (nextOutput >= input.outputBuffers.size())
        failInconsistent(buffer.name, fmt::format("{} output buffers were passed", input.outputBuffers.size()));
      bound.host = input.outputBuffers[nextOutput++];
      break;
    case BufferKind::Temporary:
      break;
    }
  }
}

void Bindings::open(uint32_t nest) {
  for (const NestOperand &operand : program_.nests[nest].operands) {
    PimDevice::BoundBuffer &bound = bound_[operand.buffer];
    bound.isWritable = bound.isWritable || operand.writes;
    if (program_.buffers[operand.buffer].kind == BufferKind::Temporary && !bound.host) {
      blocks_[operand.buffer] = BufferPool::shared().acquire(bound.bytes);
      bound.host = blocks_[operand.buffer].data;
    }
  }
}

void Bindings::close(uint32_t nest) {
  for (const NestOperand &operand : program_.nests[nest].operands)
    bound_[operand.buffer].isWritable = false;
  for (uint32_t buffer : dying_[nest])
    releaseBlock(buffer);
}

void Bindings::releaseBlock(uint32_t buffer) {
  if (!blocks_[buffer].data)
    return;
  BufferPool::shared().release(blocks_[buffer]);
  blocks_[buffer] = {};
  bound_[buffer].host = nullptr;
}

void raiseIfFailed(const KernelStatus &status, const NestInstance &instance) {
  if (status.code == 0)
    return;
  std::string where = fmt::format("{} -> loop nest {}{}", instance.source.empty() ? "model" : instance.source,
                                  instance.id, instance.torchOp.empty() ? "" : " (" + instance.torchOp + ")");
  if (status.code == 1)
    throw UserError({"NB0301", "index out of range", where, "an index inside the indexed dimension",
                     fmt::format("index {}", status.value), "check the index tensor that the model was called with"});
  throw InternalError({"NB0903", "a kernel reported a status that does not exist", where, "0 or 1",
                       fmt::format("{}", status.code), "report this with the command that shows it"});
}

/// Overwrites what the nest must write, so that a nest that did not run shows.
void poison(const NestInstance &instance, const NestKernel &kernel, const Bindings &bindings) {
  if (kernel.facts.kind == "scatter")
    return; // Writes where its indices say, which may be anywhere in the span.
  for (const NestOperand &operand : instance.operands) {
    bool isRead = std::any_of(instance.operands.begin(), instance.operands.end(), [&](const NestOperand &other) {
      return other.reads && other.buffer == operand.buffer && other.spanBegin < operand.spanEnd &&
             operand.spanBegin < other.spanEnd;
    });
    if (isDenseWrite(operand) && !isRead)
      std::memset(static_cast<std::byte *>(bindings.bound()[operand.buffer].host) + operand.spanBegin, poisonByte,
                  operand.spanEnd - operand.spanBegin);
  }
}

KernelStatus runOnHost(const ExecutorInput &input, const NestInstance &instance, const Bindings &bindings,
                       LaunchRecord &launch) {
  const HostKernel &kernel = input.hostKernels[instance.kernel];
  if (!kernel.run)
    failInconsistent(instance.id, "placed on the host without host code");
  std::vector<void *> operands;
  for (const NestOperand &operand : instance.operands)
    operands.push_back(bindings.address(operand));
  auto start = Clock::now();
  KernelStatus status = runHostKernel(kernel.run, operands.data(), kernel.tasks, input.threads);
  launch.hostNs = nsSince(start);
  return status;
}

KernelStatus runOnPim(const ExecutorInput &input, const NestInstance &instance, const Bindings &bindings,
                      LaunchRecord &launch) {
  const PimKernel &kernel = input.pimKernels[instance.kernel];
  if (!input.pim || kernel.elf.empty())
    failInconsistent(instance.id, input.pim ? "placed on PIM without PIM code" : "placed on PIM without a PIM device");
  if (input.poisonPimOutputs)
    poison(instance, input.program.kernels[instance.kernel], bindings);
  KernelStatus status;
  launch.pim = input.pim->execute(kernel, bindings.bound(), instance.operands, status);
  return status;
}

} // namespace

std::vector<uint64_t> guestAddresses(const Program &program) {
  std::vector<uint64_t> addresses;
  uint64_t next = guestFirstAddress;
  for (const BufferInfo &buffer : program.buffers) {
    addresses.push_back(next);
    // One page more than needed: what runs past the end of a buffer hits no other buffer.
    next += (buffer.bytes + guestPageBytes - 1) / guestPageBytes * guestPageBytes + guestPageBytes;
  }
  return addresses;
}

RunRecord executeProgram(const ExecutorInput &input) {
  auto start = Clock::now();
  const Program &program = input.program;
  if (input.placement.size() != program.nests.size())
    failInconsistent(program.name, fmt::format("{} sites for {} nests", input.placement.size(), program.nests.size()));
  RunRecord record;
  record.launches.reserve(program.nests.size());
  Bindings bindings(input);
  Residency residency(program, input.machine, input.transfers);
  for (uint32_t nest = 0; nest < program.nests.size(); ++nest) {
    const NestInstance &instance = program.nests[nest];
    Site site = input.placement[nest];
    residency.enter(nest, site, record.crossings);
    bindings.open(nest);
    LaunchRecord launch{nest, site, 0, {}, 0};
    auto launchStart = Clock::now();
    KernelStatus status =
        site == Site::Host ? runOnHost(input, instance, bindings, launch) : runOnPim(input, instance, bindings, launch);
    launch.wallNs = nsSince(launchStart);
    bindings.close(nest);
    raiseIfFailed(status, instance);
    record.launches.push_back(std::move(launch));
  }
  residency.finish(record.crossings);
  record.wallNs = nsSince(start);
  return record;
}

std::vector<CrossingRecord> modelCrossings(const Program &program, std::span<const Site> placement,
                                           const MachineConfig &machine, const NestTransfers *transfers) {
  std::vector<CrossingRecord> crossings;
  Residency residency(program, machine, transfers);
  for (uint32_t nest = 0; nest < program.nests.size(); ++nest)
    residency.enter(nest, placement[nest], crossings);
  residency.finish(crossings);
  return crossings;
}

KernelStatus runHostKernel(KernelFunction kernel, void **operands, int64_t tasks, int threads) {
  if (threads <= 0)
    threads = availableCores();
  if (threads == 1 || tasks <= 1) {
    KernelStatus status;
    if (tasks > 0)
      kernel(operands, 0, tasks, &status);
    return status;
  }
  int64_t blocks = std::min(tasks, threads * blocksPerThread);
  std::vector<KernelStatus> statuses(blocks);
  HostThreads::shared().run(blocks, threads, [&](int64_t block) {
    kernel(operands, tasks * block / blocks, tasks * (block + 1) / blocks, &statuses[block]);
  });
  auto failed = std::find_if(statuses.begin(), statuses.end(), [](const KernelStatus &s) { return s.code != 0; });
  return failed == statuses.end() ? KernelStatus{} : *failed;
}

} // namespace nearbank
