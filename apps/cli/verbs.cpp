#include "apps/cli/verbs.h"

#include <array>

namespace kizzasi::cli {
namespace {

// In the order in which a newcomer meets them. To add a verb: its file, its declaration in verbs.h, its line here.
constexpr std::array kVerbs = std::to_array<Verb>({
    {"check", "Says what a recording is: dialect, times, gaps, ranges, seasons; and proposes how to train on it.",
     "kizzasi check recording.csv\nkizzasi check logger.csv --zone Europe/Berlin --sentinels -999 --report check.html", check},
    {"train", "Learns a model from a recording.",
     "kizzasi train road.csv -o road.kizzasi --target vehicles --horizon 24 --season 168 --limit 'vehicles >= 0'\n"
     "kizzasi train arm.csv -o arm.kizzasi --preset robotics --budget 60s --seed 7",
     train},
    {"forecast", "Values and intervals ahead of a recording's end, inside every limit.",
     "kizzasi forecast traffic.kz traffic.csv -h 24\n"
     "kizzasi forecast plant.kz plant.csv -h 1d --plan weather.csv --limit 'power <= 500' --report forecast.html",
     forecast},
    {"stream", "A pipe: frames in, predictions out, one line each, as they come.",
     "tail -f sensor.csv | kizzasi stream sensor.kz\nkizzasi stream robot.kz --limits joints.toml --strict < frames.jsonl", stream},
    {"inspect", "Shows what is in a model file: schema, sizes, training record, calibration, limits.",
     "kizzasi inspect traffic.kz\nkizzasi inspect checkpoint.safetensors --json", inspect},
    {"verify", "Compares a published checkpoint, as computed here, with reference outputs, states and gradients.",
     "kizzasi verify model.safetensors --against model.io.safetensors\n"
     "kizzasi verify model.safetensors --against model.io.safetensors --config config.json --json",
     verify},
    {"bench", "Measures the speed of this machine: steps of the preset sizes beside what its memory allows.",
     "kizzasi bench\nkizzasi bench --preset audio --preset robotics --json", bench},
});

}  // namespace

std::span<const Verb> verbs() { return kVerbs; }

}  // namespace kizzasi::cli
