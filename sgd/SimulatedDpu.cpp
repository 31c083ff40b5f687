// SPDX-License-Identifier: Apache-2.0
// Loads, starts and reads a simulated DPU as a host program would.
#include "sgd/SimulatedDpu.h"

#include "runtime/Error.h"
#include "sim/dpu/Decode.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include <fmt/format.h>

namespace nearbank::sgd {

std::shared_ptr<DpuSimulation> DpuSimulation::load(const std::string &programFile, const dpu::DpuConfig &machine,
                                                   const std::string &translator) {
  std::ifstream stream(programFile, std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
  return std::make_shared<DpuSimulation>(dpu::Program::load(std::as_bytes(std::span(bytes)), programFile, machine),
                                         machine, translator);
}

DpuSimulation::DpuSimulation(std::shared_ptr<const dpu::Program> program, const dpu::DpuConfig &machine,
                             const std::string &translator)
    : program_(std::move(program)), machine_(machine), translator_(translator),
      engine_(translator.empty() ? dpu::makeExactEngine(machine_) : dpu::makeFastEngine(machine_, translator)) {}

const DpuSimulation &DpuSimulation::withoutDma() const {
  if (!withoutDma_) {
    dpu::DpuConfig free = machine_;
    free.dmaReadCycles = free.dmaWriteCycles = free.dmaCyclesPerByte = free.dmaOccupancyCycles = 0;
    withoutDma_ = std::make_unique<DpuSimulation>(program_, free, translator_);
  }
  return *withoutDma_;
}

SimulatedDpu::SimulatedDpu(const DpuSimulation &simulation, const Settings &settings, const RowSource &source,
                           int64_t begin, int64_t end)
    : simulation_(simulation), image_(settings, source, end - begin) {
  dpu_.load(simulation.sharedProgram());
  heap_ = simulation.program().symbols.at("__sys_used_mram_end").address - dpu::MramBase;
  if (image_.size() > dpu::Mram::Bytes - heap_)
    throw UserError({"NB0709", "the training kernel cannot take this job", "",
                     fmt::format("at most {} B in the MRAM of a DPU", dpu::Mram::Bytes - heap_),
                     fmt::format("{} B", image_.size()), "share the rows among more DPUs: --dpus"});
  RowBuffer buffer;
  image_.load(*this, source.rows(begin, end, buffer));
  movedBytes_ = 0;
}

void SimulatedDpu::write(uint32_t at, const void *from, size_t size) {
  dpu_.mram.write(heap_ + at, from, size);
  movedBytes_ += static_cast<int64_t>(size);
}

void SimulatedDpu::read(uint32_t at, void *to, size_t size) const {
  dpu_.mram.read(heap_ + at, to, size);
  movedBytes_ += static_cast<int64_t>(size);
}

void SimulatedDpu::launch(int64_t first, int64_t count) {
  image_.setSteps(first, count);
  std::memcpy(dpu_.wram() + simulation_.program().symbols.at("sgd_arguments").address, &image_.arguments(),
              sizeof(SgdArguments));
  simulation_.run(dpu_);
}

void SimulatedDpu::checkFault() const {
  if (dpu_.fault)
    throw InternalError({"NB0712", "the training kernel ended in a fault", simulation_.program().path, "",
                         dpu::describeFault(dpu_, *dpu_.fault), ""});
}

template <class A>
void SimulatedDpu::runSteps(int64_t first, int64_t count, typename A::Weight *weights, typename A::Bias &bias,
                            const typename A::Weight *pull) {
  image_.setModel<A>(*this, weights, bias, pull);
  launch(first, count);
  image_.getModel<A>(*this, weights, bias);
}

template <class A> void SimulatedDpu::addGradient(int64_t step, const Model<A> &model, typename A::Sum *sum) {
  image_.setModel<A>(*this, model.weights.data(), model.bias);
  launch(step, 1);
  image_.addGradientTo<A>(*this, sum);
}

template void SimulatedDpu::runSteps<Q31>(int64_t, int64_t, int32_t *, int64_t &, const int32_t *);
template void SimulatedDpu::runSteps<F32>(int64_t, int64_t, float *, float &, const float *);
template void SimulatedDpu::addGradient<Q31>(int64_t, const Model<Q31> &, int64_t *);
template void SimulatedDpu::addGradient<F32>(int64_t, const Model<F32> &, float *);

} // namespace nearbank::sgd
