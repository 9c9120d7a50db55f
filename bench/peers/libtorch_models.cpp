// A peer in C++: what a user of libtorch writes for a frame of an LSTM and for a product, one thread, float32. Prints one line of JSON.
//
// Built by hand, out of the project's own build; T is the folder of the torch package (python -c 'import torch; print(torch.__path__[0])'):
//   g++ -O2 -std=c++20 -I$T/include -I$T/include/torch/csrc/api/include bench/peers/libtorch_models.cpp -o libtorch_models
//       -L$T/lib -Wl,--no-as-needed -ltorch_cpu -ltorch -lc10 -Wl,-rpath,$T/lib
#include <torch/torch.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "best_of.h"

namespace {

constexpr std::int64_t kWidth = 256, kLayers = 4, kOutputs = 768;

int step(double seconds) {
  torch::nn::LSTM model(torch::nn::LSTMOptions(kWidth, kWidth).num_layers(kLayers));
  model->eval();
  const torch::Tensor x = torch::randn({1, 1, kWidth});
  auto state = std::make_tuple(torch::zeros({kLayers, 1, kWidth}), torch::zeros({kLayers, 1, kWidth}));
  const double best = best_of(seconds, [&] { state = std::get<1>(model->forward(x, state)); });
  std::printf("{\"model\":\"lstm\",\"step_us\":%.3f}\n", best * 1e6);
  return 0;
}

int product(std::int64_t rows, double seconds) {
  const torch::Tensor x = torch::randn({rows, kWidth}), w = torch::randn({kOutputs, kWidth});
  torch::Tensor y;
  const double best = best_of(seconds, [&] { y = torch::linear(x, w); });
  std::printf("{\"rows\":%lld,\"linear_us\":%.3f}\n", static_cast<long long>(rows), best * 1e6);
  return 0;
}

}  // namespace

int main(int count, char** words) {
  torch::set_num_threads(1);
  const torch::InferenceMode no_gradients;
  const std::string what = count > 1 ? words[1] : "";
  if (what == "step" && count == 4 && std::string(words[2]) == "lstm") return step(std::atof(words[3]));
  if (what == "product" && count == 4) return product(std::atoll(words[2]), std::atof(words[3]));
  std::fprintf(stderr, "usage: libtorch_models step lstm SECONDS | product ROWS SECONDS\n");
  return 2;
}
