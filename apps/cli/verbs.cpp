#include "apps/cli/verbs.h"

#include <array>

namespace kizzasi::cli {
namespace {

// In the order in which a newcomer meets them. To add a verb: its file, its declaration in verbs.h, its line here.
constexpr std::array kVerbs = std::to_array<Verb>({
    {"check", "Says what a recording is: dialect, times, gaps, ranges, seasons; and proposes how to train on it.",
     "kizzasi check recording.csv\nkizzasi check logger.csv --zone Europe/Berlin --sentinels -999 --report check.html", check},
    {"train", "Learns a model from a recording.",
     "kizzasi train road.csv -o road.kizzasi --targets vehicles --horizon 24 --season 168 --limit 'vehicles >= 0'\n"
     "kizzasi train arm.csv -o arm.kizzasi --preset robotics --budget 60s --seed 7",
     train},
    {"backtest", "Judges a model and the simple methods by forecasts from the past: one table with errors, intervals and a verdict.",
     "kizzasi backtest traffic.csv --targets vehicles --horizon 24h --season 24h --season 168h --stride 12h\n"
     "kizzasi backtest traffic.kizzasi traffic.csv --per-horizon --report backtest.html",
     backtest},
    {"forecast", "Values and intervals ahead of a recording's end, inside every limit.",
     "kizzasi forecast traffic.kizzasi traffic.csv -h 24\n"
     "kizzasi forecast plant.kizzasi plant.csv -h 1d --future weather.csv --limit 'level <= 5' --report forecast.html",
     forecast},
    {"stream", "A pipe: frames in, predictions out, one line each, as they come.",
     "tail -f sensor.csv | kizzasi stream sensor.kizzasi\nkizzasi stream plant.kizzasi --future weather.csv --limits limits.toml --strict "
     "< frames.jsonl",
     stream},
    {"detect", "Finds unusual stretches of a recording by what a model predicted, at a wanted rate of false alarms.",
     "kizzasi detect pump.kizzasi pump.csv --false-alarms 1/7d --report events.html\n"
     "kizzasi detect pump.kizzasi today.csv --normal last_month.csv --json",
     detect},
    {"constraints", "Explains constraints, says whether they can be obeyed, checks a recording against them, or learns them from one.",
     "kizzasi constraints limits.toml --data plant.csv\n"
     "kizzasi constraints --learn plant.csv --confidence 0.99\n"
     "kizzasi constraints --limit \"0 <= level <= 5 [m]\" --limit \"abs(rate(level)) <= 0.1 [m/s]\" --explain",
     constraints},
    {"guard", "A pipe: proposed frames in, the nearest frames that obey out; for any model or controller.",
     "kizzasi guard limits.toml < frames.jsonl\n"
     "kizzasi guard limits.toml sensor.csv --explain --what-if previous\n"
     "kizzasi guard --limit \"0 <= level <= 5\" --limit \"abs(rate(level)) <= 0.5\" sensor.csv",
     guard},
    {"monitor", "Judges a formula of temporal logic at each sample: holds, broken or open, and by how much.",
     "kizzasi monitor \"always (temp > 80 -> eventually[0, 10min] temp < 60)\" oven.csv --report oven.html\n"
     "tail -f plant.csv | kizzasi monitor \"once[0, 5s] level <= 2\" - --step 1s --json",
     monitor},
    {"solve", "Solves nearest points, quadratic programs, predictive control and barrier filters: JSON lines in, answers out.",
     "kizzasi solve problems.jsonl\n"
     "echo '{\"y\":[3,2],\"A\":[[1,2]],\"lo\":[\"-inf\"],\"hi\":[3]}' | kizzasi solve",
     solve},
    {"inspect", "Shows what is in a model file: schema, sizes, training record, calibration, limits.",
     "kizzasi inspect traffic.kizzasi\nkizzasi inspect checkpoint.safetensors --json", inspect},
    {"convert", "Writes a model in fewer bits, after measuring what its forecasts lose.",
     "kizzasi convert traffic.kizzasi -o small.kizzasi --quantize int8 --data traffic.csv\n"
     "kizzasi convert plant.kizzasi -o plant16.kizzasi --quantize bf16 --unmeasured",
     convert},
    {"verify", "Compares a published checkpoint, as computed here, with reference outputs, states and gradients.",
     "kizzasi verify model.safetensors --against model.io.safetensors\n"
     "kizzasi verify model.safetensors --against model.io.safetensors --config config.json --json",
     verify},
    {"bench", "Measures the speed of this machine: steps of the preset sizes, or the layers of a model, beside what its memory allows.",
     "kizzasi bench --preset audio --preset robotics --json\nkizzasi bench --model traffic.kizzasi", bench},
    {"demo", "Learns three recordings before your eyes and writes a report: traffic, a solar plant, a robot arm.",
     "kizzasi demo\nkizzasi demo --act plant --out demo", demo},
});

}  // namespace

std::span<const Verb> verbs() { return kVerbs; }

}  // namespace kizzasi::cli
