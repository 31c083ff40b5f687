// SPDX-License-Identifier: Apache-2.0
// The extension module nearbank._sgd: rows, trainers and evaluation, with NumPy arrays and JSON options.
#include "python/RaisedErrors.h"
#include "sgd/Evaluation.h"
#include "sgd/GeneratedRows.h"
#include "sgd/InMemoryRows.h"
#include "sgd/TextReader.h"
#include "sgd/TimeModel.h"
#include "sgd/Trainer.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <nlohmann/json.hpp>

namespace nb = nanobind;
using Json = nlohmann::json;
using namespace nearbank;
using namespace nearbank::sgd;

namespace {

template <class T> using Array = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;

template <class T> std::span<const T> spanOf(const Array<T> &array) { return {array.data(), array.size()}; }

template <class T> nb::object toNumpy(std::vector<T> values) {
  auto *owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void *pointer) noexcept { delete static_cast<std::vector<T> *>(pointer); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(owned->data(), {owned->size()}, owner));
}

Settings settingsOf(const std::string &text) {
  Json json = Json::parse(text);
  Settings settings;
  std::string algorithm = json.value("algorithm", "ma-sgd");
  settings.algorithm = algorithm == "ga-sgd" ? Algorithm::GaSgd
                       : algorithm == "admm" ? Algorithm::Admm
                                             : Algorithm::MaSgd;
  settings.loss = json.value("loss", "logistic") == "hinge" ? Loss::Hinge : Loss::Logistic;
  settings.arithmetic = json.value("arithmetic", "q31") == "f32" ? Arithmetic::Float32 : Arithmetic::Q31;
  std::string sync = json.value("sync", "server");
  settings.synchronisation = sync == "ring"         ? Synchronisation::Ring
                             : sync == "gossip"     ? Synchronisation::Gossip
                             : sync == "in-network" ? Synchronisation::InNetwork
                             : sync == "shared"     ? Synchronisation::Shared
                                                    : Synchronisation::ParameterServer;
  settings.isPimOpt = json.value("pimOpt", false);
  settings.numDpus = json.value("dpus", settings.numDpus);
  settings.numTasklets = json.value("tasklets", settings.numTasklets);
  settings.batch = json.value("batch", settings.batch);
  settings.averageEvery = json.value("averageEvery", settings.averageEvery);
  settings.staleness = json.value("staleness", settings.staleness);
  settings.sharedDpus = json.value("sharedDpus", settings.sharedDpus);
  settings.numThreads = json.value("threads", settings.numThreads);
  settings.rateShift = json.value("rateShift", settings.rateShift);
  settings.l2Shift = json.value("l2Shift", settings.l2Shift);
  settings.alphaShift = json.value("alphaShift", settings.alphaShift);
  settings.weightExponent = json.value("weightExponent", settings.weightExponent);
  settings.classWeights = json.value("classWeights", settings.classWeights);
  settings.classShift = json.value("classShift", settings.classShift);
  settings.rate = json.value("rate", settings.rate);
  settings.l2 = json.value("l2", settings.l2);
  settings.alpha = json.value("alpha", settings.alpha);
  settings.floatClassWeights = json.value("floatClassWeights", settings.floatClassWeights);
  return settings;
}

std::shared_ptr<RowSource> denseRows(const std::string &settings, Array<double> values, Array<uint8_t> labels,
                                     int64_t features, Array<int64_t> order) {
  return std::make_shared<InMemoryRows>(settingsOf(settings), values.data(), spanOf(labels), features, spanOf(order));
}

std::shared_ptr<RowSource> sparseRows(const std::string &settings, Array<int64_t> offsets, Array<uint32_t> indices,
                                      Array<double> values, Array<uint8_t> labels, int64_t features,
                                      Array<int64_t> order) {
  return std::make_shared<InMemoryRows>(settingsOf(settings), spanOf(offsets), indices.data(),
                                        values.size() ? values.data() : nullptr, spanOf(labels), features,
                                        spanOf(order));
}

/// What every generator is asked for; the rest keeps its defaults.
template <class Shape> Shape generatedShape(const Json &json) {
  Shape shape;
  shape.rows = json.at("rows");
  shape.firstRow = json.value("firstRow", shape.firstRow);
  shape.features = json.value("features", shape.features);
  shape.seed = json.value("seed", shape.seed);
  return shape;
}

std::shared_ptr<RowSource> yfccLike(const std::string &settings, const std::string &shapeText) {
  Json json = Json::parse(shapeText);
  auto shape = generatedShape<YfccLikeRows::Shape>(json);
  shape.separability = json.value("separability", shape.separability);
  shape.flips = json.value("flips", shape.flips);
  return std::make_shared<YfccLikeRows>(settingsOf(settings), shape);
}

std::shared_ptr<RowSource> criteoLike(const std::string &shapeText) {
  Json json = Json::parse(shapeText);
  auto shape = generatedShape<CriteoLikeRows::Shape>(json);
  shape.positiveShare = json.value("positiveShare", shape.positiveShare);
  shape.signal = json.value("signal", shape.signal);
  return std::make_shared<CriteoLikeRows>(shape);
}

nb::dict parsedDict(ParsedRows rows) {
  nb::dict result;
  result["labels"] = toNumpy(std::move(rows.labels));
  result["offsets"] = toNumpy(std::move(rows.offsets));
  result["indices"] = toNumpy(std::move(rows.indices));
  result["values"] = toNumpy(std::move(rows.values));
  result["num_features"] = rows.numFeatures;
  result["num_bad_lines"] = rows.numBadLines;
  return result;
}

template <ParsedRows (*read)(const std::string &, const ReadOptions &)>
nb::dict readText(const std::string &path, bool skipsBadLines, int64_t beginByte, int64_t endByte, int hashBits) {
  ParsedRows rows;
  {
    nb::gil_scoped_release release;
    rows = read(path, {skipsBadLines, beginByte, endByte, hashBits});
  }
  return parsedDict(std::move(rows));
}

/// Labels and dense values of rows [begin, end) in real numbers, or the CSR arrays of sparse ones.
nb::dict takeRows(const std::string &settingsText, const RowSource &source, int64_t begin, int64_t end) {
  Settings settings = settingsOf(settingsText);
  RowBuffer buffer;
  Rows rows = source.rows(begin, end, buffer);
  nb::dict result;
  result["labels"] = toNumpy(std::vector<uint8_t>(rows.labels, rows.labels + rows.count));
  if (rows.isSparse()) {
    int64_t first = rows.offsets[0], last = rows.offsets[rows.count];
    std::vector<int64_t> offsets(rows.offsets, rows.offsets + rows.count + 1);
    for (int64_t &offset : offsets)
      offset -= first;
    result["offsets"] = toNumpy(std::move(offsets));
    result["indices"] = toNumpy(std::vector<uint32_t>(rows.indices + first, rows.indices + last));
    std::vector<double> values;
    for (int64_t k = first; k < last && (rows.values || rows.valuesFloat); ++k)
      values.push_back(rows.values ? double(rows.values[k]) * 0x1p-31 : double(rows.valuesFloat[k]));
    result["values"] = toNumpy(std::move(values));
    return result;
  }
  std::vector<double> values(rows.count * rows.features);
  for (size_t k = 0; k < values.size(); ++k)
    values[k] = rows.denseFloat     ? double(rows.denseFloat[k])
                : settings.isPimOpt ? double(uint32_t(rows.dense[k])) * 0x1p-31
                                    : double(rows.dense[k]) * 0x1p-31;
  result["values"] = toNumpy(std::move(values));
  return result;
}

std::string evaluateJson(const std::string &settings, const RowSource &source, Array<double> model, bool withAuc) {
  nb::gil_scoped_release release;
  Evaluation result = evaluate(settingsOf(settings), source, spanOf(model), withAuc);
  Json json = {{"rows", result.rows}, {"loss", result.loss}, {"accuracy", result.accuracy}};
  if (withAuc)
    json["auc"] = result.auc;
  return json.dump();
}

Json transferJson(Cargo cargo, bool isToDpu, int64_t bytes, int64_t pushes) {
  return {{"cargo", cargoName(cargo)},
          {"direction", cargo == Cargo::Link ? "link"
                        : isToDpu            ? "toDpu"
                                             : "fromDpu"},
          {"bytes", bytes},
          {"pushes", pushes}};
}

/// What moved so far, what moves in each round, and the closed forms.
std::string trafficJson(const Trainer &trainer) {
  Json ledger = Json::array(), round = Json::array();
  for (int cargo = 0; cargo < kNumCargos; ++cargo)
    for (bool isToDpu : {true, false})
      if (int64_t pushes = trainer.ledger().pushes(Cargo(cargo), isToDpu))
        ledger.push_back(transferJson(Cargo(cargo), isToDpu, trainer.ledger().bytes(Cargo(cargo), isToDpu), pushes));
  for (const Transfer &transfer : trainer.roundTransfers())
    round.push_back(transferJson(transfer.cargo, transfer.isToDpu, transfer.bytesPerDpu, 1));
  const WireSizes &sizes = trainer.sizes();
  return Json{{"moved", ledger},
              {"simulatedTraffic", trainer.simulatedTraffic()},
              {"roundPerDpu", round},
              {"closedFormBytes", closedFormBytes(trainer.settings(), sizes)},
              {"closedFormLinkBytes", closedFormLinkBytes(trainer.settings(), sizes)},
              {"modelBytes", sizes.modelBytes},
              {"gradientBytes", sizes.gradientBytes},
              {"biasBytes", sizes.biasBytes},
              {"rowBytes", sizes.rowBytes}}
      .dump();
}

/// Modelled times of a round and of loading, and the MRAM that a DPU needs. `shape` names features, rows,
/// entriesPerRow, isSparse and hasValues.
std::string timesJson(const std::string &settingsText, const dpu::DpuConfig &machine, const std::string &shapeText) {
  Settings settings = settingsOf(settingsText);
  Json json = Json::parse(shapeText);
  WorkShape shape;
  shape.features = json.at("features");
  shape.rowsPerDpu = (json.at("rows").get<int64_t>() + settings.numDpus - 1) / settings.numDpus;
  shape.entriesPerRow = json.at("entriesPerRow");
  shape.isSparse = json.at("isSparse");
  shape.hasValues = json.at("hasValues");
  WireSizes sizes(settings, shape.features, shape.isSparse, shape.entriesPerRow, shape.hasValues);
  RoundTime time = roundTime(settings, machine, shape, sizes);
  Json seconds = {{"toDpu", time.toDpu},       {"launch", time.launch},   {"dpuCompute", time.compute},
                  {"mramWram", time.movement}, {"fromDpu", time.fromDpu}, {"aggregation", time.aggregation},
                  {"link", time.link}};
  return Json{{"round", seconds},
              {"dmaBytes", time.dmaBytes},
              {"ownTransfers", ownTransferSeconds(settings, machine, sizes)},
              {"load", loadSeconds(settings, machine, shape, sizes)},
              {"setUp", setUpSeconds(settings, machine)},
              {"mramBytes", mramBytes(settings, shape, sizes)},
              {"hasLinks", hasLinks(settings, machine)},
              {"bytesPerRound", closedFormBytes(settings, sizes)},
              {"linkBytesPerRound", closedFormLinkBytes(settings, sizes)},
              {"rowsPerDpu", shape.rowsPerDpu}}
      .dump();
}

} // namespace

NB_MODULE(_sgd, module) {
  nb::register_exception_translator(raiseError);

  nb::class_<RowSource>(module, "Rows")
      .def_prop_ro("num_rows", &RowSource::numRows)
      .def_prop_ro("num_features", &RowSource::numFeatures)
      .def_prop_ro("is_sparse", &RowSource::isSparse)
      .def_prop_ro("max_row_entries", &RowSource::maxRowEntries)
      .def_prop_ro("has_values", &RowSource::hasValues);
  module.def("dense_rows", &denseRows);
  module.def("sparse_rows", &sparseRows);
  module.def("yfcc_like", &yfccLike);
  module.def("criteo_like", &criteoLike);
  module.def("take_rows", &takeRows);
  module.def("read_libsvm", &readText<readLibSvm>);
  module.def("read_criteo", &readText<readCriteo>);
  module.def("evaluate", &evaluateJson);
  module.def("times", &timesJson);

  module.def("kernel_variant", [](const std::string &settings, const RowSource &rows) {
    return kernelVariant(settingsOf(settings), rows.isSparse(), rows.hasValues());
  });

  nb::class_<dpu::DpuConfig>(module, "DpuMachine")
      .def_static("read", &dpu::readDpuConfig)
      .def_ro("name", &dpu::DpuConfig::name)
      .def_ro("num_dpus", &dpu::DpuConfig::numDpus)
      .def_ro("clock_mhz", &dpu::DpuConfig::clockMHz)
      .def_ro("dpus_per_chip", &dpu::DpuConfig::dpusPerChip)
      .def_prop_ro("dpus_per_rank", &dpu::DpuConfig::dpusPerRank)
      .def_prop_ro("tasklets", [](const dpu::DpuConfig &machine) { return int64_t(machine.tasklets); })
      .def("values", &dpu::valuesOf);
  module.attr("MRAM_BYTES") = int64_t(dpu::Mram::Bytes);
  nb::class_<DpuSimulation>(module, "DpuSimulation").def_static("load", &DpuSimulation::load);

  nb::class_<Trainer>(module, "Trainer")
      .def_static(
          "make",
          [](const std::string &settings, std::shared_ptr<RowSource> rows, int rank, int numRanks,
             std::shared_ptr<DpuSimulation> simulation) {
            return Trainer::make(settingsOf(settings), std::move(rows), rank, numRanks, std::move(simulation));
          },
          nb::arg("settings"), nb::arg("rows"), nb::arg("rank") = 0, nb::arg("num_ranks") = 1,
          nb::arg("simulation") = nb::none())
      .def(
          "run_rounds",
          [](Trainer &trainer, int64_t count) {
            for (int64_t i = 0; i < count; ++i)
              trainer.runRound();
          },
          nb::call_guard<nb::gil_scoped_release>())
      .def("sample_round",
           [](const Trainer &trainer, const DpuSimulation &simulation, int64_t maxEntries) {
             nb::gil_scoped_release release;
             SampledRound sample = trainer.sampleRound(simulation, maxEntries);
             return Json{{"cycles", sample.cycles},
                         {"cyclesWithoutDma", sample.cyclesWithoutDma},
                         {"dmaBytes", sample.dmaBytes},
                         {"simulatedSteps", sample.simulatedSteps},
                         {"steps", sample.steps}}
                 .dump();
           })
      .def_prop_ro("simulated_round",
                   [](const Trainer &trainer) {
                     SimulatedRound round = trainer.simulatedRound();
                     return std::tuple(round.slowestCycles, round.allCycles, round.dmaBytes);
                   })
      .def("compute_round", &Trainer::computeRound, nb::call_guard<nb::gil_scoped_release>())
      .def("partial_sums",
           [](const Trainer &trainer) {
             std::span<const std::byte> sums = trainer.partialSums();
             return nb::bytes(sums.data(), sums.size());
           })
      .def("finish_round",
           [](Trainer &trainer, nb::bytes sums) {
             std::span<const std::byte> all(static_cast<const std::byte *>(sums.data()), sums.size());
             nb::gil_scoped_release release;
             trainer.finishRound(all);
           })
      .def("model", [](const Trainer &trainer) { return toNumpy(trainer.model()); })
      .def("set_model", [](Trainer &trainer, Array<double> model) { trainer.setModel(spanOf(model)); })
      .def("save",
           [](const Trainer &trainer, const nb::callable &write) {
             trainer.save([&](std::string_view piece) { write(nb::bytes(piece.data(), piece.size())); });
           })
      .def("restore",
           [](Trainer &trainer, const nb::callable &read) {
             trainer.restore([&](std::span<char> into) {
               auto piece = nb::cast<nb::bytes>(read(into.size()));
               size_t size = std::min(piece.size(), into.size());
               std::memcpy(into.data(), piece.data(), size);
               return size;
             });
           })
      .def("dispersion",
           [](const Trainer &trainer) {
             Dispersion dispersion = trainer.dispersion();
             return std::pair(dispersion.localSquares, dispersion.meanSquare);
           })
      .def("traffic", &trafficJson)
      .def_prop_ro("rounds_per_epoch", &Trainer::roundsPerEpoch)
      .def_prop_ro("num_rounds", &Trainer::numRounds);
}
