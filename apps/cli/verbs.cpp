#include "apps/cli/verbs.h"

#include <array>

namespace kizzasi::cli {
namespace {

// In the order in which a newcomer meets them. To add a verb: its file, its declaration in verbs.h, its line here.
constexpr std::array kVerbs = std::to_array<Verb>({
    {"check", "Says what a recording is: dialect, times, gaps, ranges, seasons; and proposes how to train on it.",
     "kizzasi check recording.csv\nkizzasi check logger.csv --zone Europe/Berlin --sentinels -999 --report check.html", check},
    {"backtest", "Judges a model and the simple methods by forecasts from the past: one table with errors, intervals and a verdict.",
     "kizzasi backtest traffic.csv --target vehicles --horizon 24h --season 24h --season 168h --stride 12h\n"
     "kizzasi backtest traffic.kz traffic.csv --per-horizon --report backtest.html",
     backtest},
    {"detect", "Finds unusual stretches of a recording by what a model predicted, at a wanted rate of false alarms.",
     "kizzasi detect pump.kz pump.csv --false-alarms 1/7d --report events.html\n"
     "kizzasi detect pump.kz today.csv --normal last_month.csv --json",
     detect},
    {"verify", "Compares a published checkpoint, as computed here, with reference outputs, states and gradients.",
     "kizzasi verify model.safetensors --against model.io.safetensors\n"
     "kizzasi verify model.safetensors --against model.io.safetensors --config config.json --json",
     verify},
    {"constraints", "Explains a file of constraints, and checks a recording against it.",
     "kizzasi constraints limits.toml --data plant.csv\n"
     "kizzasi constraints --limit \"0 <= level <= 5 [m]\" --limit \"abs(rate(level)) <= 0.1 [m/s]\" --explain",
     constraints},
    {"bench", "Measures the speed of this machine: steps of the preset sizes beside what its memory allows.",
     "kizzasi bench\nkizzasi bench --preset audio --preset robotics --json", bench},
});

}  // namespace

std::span<const Verb> verbs() { return kVerbs; }

}  // namespace kizzasi::cli
