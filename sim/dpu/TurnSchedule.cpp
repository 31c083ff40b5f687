// SPDX-License-Identifier: Apache-2.0

#include "sim/dpu/TurnSchedule.h"

#include <algorithm>

namespace nearbank::dpu {

TurnSchedule::TurnSchedule(const DpuConfig &config, unsigned numActive)
    : dma_(config), dispatch_(config.dispatchCycles),
      portInterval_(config.dmaBytesPerWramCycle * config.dmaCyclesPerByte), numActive_(numActive) {
  waits_.fill(Never);
  updateRate();
}

// FAST-1.
void TurnSchedule::updateRate() {
  double busyCycles = portInterval_ > 1 ? numActive_ / (1 - 1 / portInterval_) : numActive_;
  isPortFelt_ = busyCycles > dispatch_;
  const DmaEngine::Window *window;
  while ((window = dma_.window()) && window->end <= now_)
    dma_.dropWindow();
  isPortBusy_ = isPortFelt_ && window && window->begin <= now_;
  cyclesPerTurn_ = std::max(dispatch_, isPortBusy_ ? busyCycles : numActive_);
}

bool TurnSchedule::next(Event &event) {
  double due = numDue_ ? due_[numDue_ - 1].time : Never, join = numJoins_ ? joins_[numJoins_ - 1].time : Never;
  if (due == Never && join == Never)
    return false;
  double at;
  for (;;) {
    at = due == Never ? Never : now_ + std::max(0.0, (due - turn_) * cyclesPerTurn_);
    const DmaEngine::Window *window = isPortFelt_ ? dma_.window() : nullptr;
    double border = !window ? Never : isPortBusy_ ? window->end : window->begin;
    if (border > at || border > join)
      break;
    advance(border);
    updateRate();
  }
  event.isJoin = join <= at;
  if (event.isJoin) {
    event.id = joins_[--numJoins_].id;
    advance(join);
    setActive(numActive_ + 1);
  } else {
    event.id = due_[--numDue_].id;
    advance(at);
    turn_ = due;
  }
  return true;
}

// FAST-2.
double TurnSchedule::joinBehind() {
  double step = 1 / std::max(dispatch_, numActive_ + 1.0), last = step;
  bool isFull = numActive_ >= dispatch_;
  std::array<std::pair<double, double *>, MaxTasklets> others; // By how far behind this turn, less than a whole one.
  unsigned count = 0;
  auto add = [&](double &place) { others[count++] = {place - turn_ - std::floor(place - turn_), &place}; };
  for (unsigned i = 0; i < numDue_; ++i)
    add(due_[i].time);
  for (double &place : waits_)
    if (place != Never)
      add(place);
  std::sort(others.begin(), others.begin() + count);
  for (unsigned i = 0; i < count; ++i) {
    auto [distance, place] = others[i];
    last = isFull ? last + step : std::max(distance, last + step);
    *place += last - distance;
  }
  std::sort(due_.begin(), due_.begin() + numDue_, [](Entry a, Entry b) { return a.time > b.time; });
  setActive(numActive_ + 1);
  return turn_ + step;
}

// FAST-3.
uint64_t TurnSchedule::endWait(unsigned id) {
  constexpr double rounding = 1e-6;
  double tries = std::max(1.0, std::ceil(turn_ - waits_[id] - rounding));
  plan(id, waits_[id] + tries);
  waits_[id] = Never;
  return static_cast<uint64_t>(tries) - 1;
}

} // namespace nearbank::dpu
