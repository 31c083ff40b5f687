// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/Documents.h"

#include "llvm/Config/llvm-config.h"

#include <nlohmann/json.hpp>

namespace nearbank::driver {

using Json = nlohmann::ordered_json;

std::string llvmVersion() { return LLVM_VERSION_STRING; }

static const char *kindName(BufferKind kind) {
  switch (kind) {
  case BufferKind::Input:
    return "input";
  case BufferKind::Parameter:
    return "parameter";
  case BufferKind::Constant:
    return "constant";
  case BufferKind::Temporary:
    return "temporary";
  case BufferKind::Output:
    return "output";
  }
  return "";
}

std::string describeJson(const Program &program) {
  Json document = {{"name", program.name}};
  std::vector<int64_t> slots(program.buffers.size(), -1);
  document["inputs"] = Json::array();
  document["outputBuffers"] = Json::array();
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const BufferInfo &buffer = program.buffers[i];
    if (buffer.argumentIndex)
      document["inputs"].push_back({{"argumentIndex", *buffer.argumentIndex},
                                    {"name", buffer.name},
                                    {"bytes", buffer.bytes},
                                    {"elementType", nameOf(buffer.elementType)},
                                    {"isParameter", buffer.kind == BufferKind::Parameter}});
    if (buffer.kind == BufferKind::Output) {
      slots[i] = static_cast<int64_t>(document["outputBuffers"].size());
      document["outputBuffers"].push_back({{"bytes", buffer.bytes}, {"elementType", nameOf(buffer.elementType)}});
    }
  }
  document["outputs"] = Json::array();
  for (const ProgramOutput &output : program.outputs) {
    const BufferInfo &buffer = program.buffers[output.buffer];
    Json entry = {{"buffer", output.buffer},
                  {"elementType", nameOf(output.elementType)},
                  {"elementOffset", output.elementOffset},
                  {"sizes", output.sizes},
                  {"strides", output.strides},
                  {"bufferKind", kindName(buffer.kind)},
                  {"argumentIndex", nullptr},
                  {"outputSlot", nullptr},
                  {"constant", nullptr}};
    if (buffer.argumentIndex)
      entry["argumentIndex"] = *buffer.argumentIndex;
    if (slots[output.buffer] >= 0)
      entry["outputSlot"] = slots[output.buffer];
    if (buffer.kind == BufferKind::Constant) {
      // Constant results are rare and small; they travel as bytes.
      std::vector<int> bytes;
      for (std::byte byte : buffer.constantData)
        bytes.push_back(static_cast<int>(byte));
      entry["constant"] = bytes;
    }
    document["outputs"].push_back(entry);
  }
  document["kernels"] = Json::array();
  for (const NestKernel &kernel : program.kernels)
    document["kernels"].push_back(
        {{"key", kernel.key}, {"name", kernel.name}, {"kind", kernel.facts.kind}, {"text", kernel.text}});
  document["nests"] = Json::array();
  for (const NestInstance &nest : program.nests)
    document["nests"].push_back({{"id", nest.id},
                                 {"kernel", program.kernels[nest.kernel].name},
                                 {"source", nest.source},
                                 {"modulePath", nest.modulePath},
                                 {"torchOp", nest.torchOp},
                                 {"hoisted", nest.isHoisted}});
  return document.dump();
}

} // namespace nearbank::driver
