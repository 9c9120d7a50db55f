#include "kizzasi/model/config.h"

#include <fmt/format.h>

#include <cmath>

#include "kizzasi/model/architectures.h"

namespace kizzasi {
namespace {

FieldInfo one_of(std::string_view name, std::string_view help, std::vector<std::string_view> choices) {
  FieldInfo info{name, help};
  info.choices = std::move(choices);
  return info;
}

}  // namespace

void BackboneConfig::fields(FieldVisitor& visit) {
  std::vector<std::string_view> names;
  for (const Architecture& each : architectures()) names.push_back(each.name);
  visit.field(one_of("architecture", "Which backbone; docs/backbones has a page for each.", std::move(names)), architecture);
  visit.field({"d_model", "Width of the residual stream.", 1, 65536}, d_model);
  visit.field({"n_layers", "Layers of the stack.", 1, 1024}, n_layers);
  visit.field({"d_state", "Numbers of state a channel, the keys of a head: how much a layer can remember.", 1, 4096}, d_state);
  visit.field({"expand", "Inner width of a layer as a multiple of d_model.", 1, 64}, expand);
  visit.field({"d_inner", "Inner width of a layer; 0 means expand * d_model.", 0, 1 << 20}, d_inner);
  visit.field({"d_conv", "Frames that the convolution before the state sees.", 1, 64}, d_conv);
  visit.field(
      {"dt_rank", "Rank of the step-size projection of Mamba (0 means d_model / 16, rounded up) and of the gate of GLA (0 means 16).", 0,
       65536},
      dt_rank);
  visit.field({"head_dim", "Channels a head of Mamba-2, H3 and linear attention.", 1, 65536}, head_dim);
  visit.field({"n_groups", "Groups of heads of Mamba-2 that share B and C.", 1, 4096}, n_groups);
  visit.field({"n_key_heads", "Heads of queries and keys of Gated DeltaNet; 0 means as many as of values.", 0, 4096}, n_key_heads);
  visit.field({"chunk", "Frames that the training form of Mamba-2 takes at once; changes speed only.", 1, 1024}, chunk);
  visit.field({"dt_min", "Smallest step size at the start of training.", 1e-8, 1e3}, dt_min);
  visit.field({"dt_max", "Largest step size at the start of training.", 1e-8, 1e3}, dt_max);
  visit.field({"dt_limit_low", "Lower bound of the step sizes of Mamba-2.", 0, 1e308}, dt_limit_low);
  visit.field({"dt_limit_high", "Upper bound of the step sizes of Mamba-2; 1e308 means none.", 0, 1e308}, dt_limit_high);
  visit.field({"norm_eps", "Epsilon of the norms.", 0, 1}, norm_eps);
  visit.field({"mixer_norm_eps", "Epsilon of FalconMamba's norms of dt, B and C, and of what a read of mLSTM is divided by.", 0, 1},
              mixer_norm_eps);
  visit.field({"head_norm_eps", "Epsilon of the norms of heads of RWKV-5 to 7.", 0, 1}, head_norm_eps);
  visit.field(
      {"d_ffn", "Inner width of the feed-forward half of a block, where there is one; 0 means as the architecture has it.", 0, 1 << 20},
      d_ffn);
  visit.field({"n_heads", "Heads of attention; 0 means d_model / head_dim.", 0, 65536}, n_heads);
  visit.field({"n_kv_heads", "Heads of keys and values, each read by as many heads of queries; 0 means n_heads.", 0, 65536}, n_kv_heads);
  visit.field({"window", "Frames that attention sees, the present one among them.", 1, 1 << 20}, window);
  visit.field({"rope_theta", "Base of the rotary positions of attention.", 1e-3, 1e12}, rope_theta);
  visit.field({"attention_head_dim", "Channels of a head of attention; 0 means head_dim.", 0, 65536}, attention_head_dim);
  visit.field({"rope_fraction", "Share of the channels of a head of attention that its position turns.", 0, 1}, rope_fraction);
  visit.field(
      {"attention_layers", "Blocks of a hybrid that have attention, from 0; none given means every fourth, of fewer the last.", 0, 1023},
      attention_layers);
  visit.field({"expert_layers", "Blocks of a hybrid whose feed-forward half has experts, from 0; none given means every second.", 0, 1023},
              expert_layers);
  visit.field({"n_experts", "Experts of a mixture: Mixtral and hybrids.", 1, 256}, n_experts);
  visit.field({"experts_used", "How many of them take part in a frame.", 1, 256}, experts_used);
  visit.field({"d_expert", "Inner width of an expert; 0 means d_ffn.", 0, 1 << 20}, d_expert);
  visit.field({"d_shared_expert", "Inner width of the expert that every frame has in Qwen3-Next; 0 means that of the others.", 0, 1 << 20},
              d_shared_expert);
  visit.field({"mix_rank", "Rank of the mixing of RWKV-6 that depends on the frame; 0 means by d_model.", 0, 65536}, mix_rank);
  visit.field({"decay_rank", "Rank of the decay of RWKV-6 and 7; 0 means by d_model.", 0, 65536}, decay_rank);
  visit.field({"rate_rank", "Rank of the learning rate of RWKV-7; 0 means by d_model.", 0, 65536}, rate_rank);
  visit.field({"gate_rank", "Rank of the gate of RWKV-7; 0 means by d_model.", 0, 65536}, gate_rank);
  visit.field({"value_rank", "Rank of what RWKV-7 takes of the first layer's values; 0 means by d_model.", 0, 65536}, value_rank);
  visit.field({"qkv_block", "Channels of a block of the maps to q, k and v of mLSTM's first form.", 1, 4096}, qkv_block);
  visit.field({"slstm_conv", "A convolution before the gates of sLSTM that take in and keep."}, slstm_conv);
  visit.field({"proj_bias", "Biases in the projections of both Mambas."}, proj_bias);
  visit.field({"conv_bias", "A bias in the convolution of both Mambas."}, conv_bias);
  visit.field(one_of("s4d_init", "Eigenvalues with which S4D starts.", {"lin", "inv", "legs", "real"}), s4d_init);
  visit.field(one_of("discretization", "How S4D, S5 and H3 sample their continuous systems.", {"zoh", "bilinear", "euler"}),
              discretization);
  visit.field({"s5_blocks", "Blocks of HiPPO-LegS with which S5 starts; 0 means blocks of at most 64 states.", 0, 65536}, s5_blocks);
  visit.field({"bidirectional", "A second scan from the end, as S5 may be published with; must be false: a stream has no end."},
              bidirectional);
  visit.field(
      one_of("ssm_activation", "What stands behind the recurrence of LRU and S5.", {"full_glu", "half_glu1", "half_glu2", "gelu", "none"}),
      ssm_activation);
}

Result<void> BackboneConfig::check(std::string_view where) const {
  if (auto good = check_fields(*this, where); !good) return good;
  const auto refuse = [&](std::string what, std::string expected) {
    return fail({Fault::kBadUse, std::move(what), std::string(where), std::move(expected), ""});
  };
  if (dt_min > dt_max) return refuse(fmt::format("dt_min {} is above dt_max {}", dt_min, dt_max), "dt_min at most dt_max");
  if (dt_limit_low > dt_limit_high) {
    return refuse(fmt::format("dt_limit_low {} is above dt_limit_high {}", dt_limit_low, dt_limit_high),
                  "the lower limit at most the upper");
  }
  for (const auto* layers : {&attention_layers, &expert_layers}) {
    for (const double layer : *layers) {
      if (layer == std::floor(layer) && layer < static_cast<double>(n_layers)) continue;
      return refuse(
          fmt::format("{} has {}, of {} blocks", layers == &attention_layers ? "attention_layers" : "expert_layers", layer, n_layers),
          "numbers of blocks, from 0");
    }
  }
  const auto known = find_architecture(architecture);
  if (!known) return fail(known.error());
  return (*known)->check(*this, where);
}

void ModelConfig::fields(FieldVisitor& visit) {
  backbone.fields(visit);
  head.fields(visit);
  visit.field(one_of("channel_mode",
                     "mixed: one state sees every channel; independent: every target channel has its own state, weights are shared.",
                     {"mixed", "independent"}),
              channel_mode);
  visit.field({"context", "Frames of look-back of a training window, and of a forecast in windowed mode.", 1, 1 << 24}, context);
  visit.field({"horizon", "Steps ahead that one evaluation of the head gives.", 1, 65536}, horizon);
  visit.field({"patch", "Frames that make one vector of the model; above 1 only in windowed mode.", 1, 65536}, patch);
  visit.field({"windowed", "Every forecast runs the last `context` frames from reset state; otherwise the state is carried on for ever."},
              windowed);
  visit.field(
      one_of("window_norm", "What is taken out of a window before the model sees it: nothing, its last value, or mean and spread (RevIN).",
             {"none", "last", "mean_std"}),
      window_norm);
  visit.field(one_of("parts", "The whole model, or for comparison one of its two parts.", {"both", "shortcut", "backbone"}), parts);
  visit.field({"recent", "Frames of the recent past that the short-cut sees.", 0, 65536}, recent);
  visit.field({"season", "Frames a season; 0 means none.", 0, 1 << 24}, season);
  visit.field({"seasons", "How many of the last seasons' same slots the short-cut and the decoder see.", 0, 1024}, seasons);
  visit.field({"intercept", "A constant term in the short-cut; without it a drift of the training rows is not carried on."}, intercept);
  visit.field({"d_decoder", "Width of the decoder that joins backbone, slots and known future.", 1, 65536}, d_decoder);
  visit.field({"parameter_cap", "The largest number of weights that a model may have.", 1, 1e15}, parameter_cap);
}

Result<void> ModelConfig::check(std::string_view where) const {
  if (auto good = check_fields(*this, where); !good) return good;
  if (auto good = backbone.check(where); !good) return good;
  if (auto good = head.check(); !good) return good;
  const auto refuse = [&](std::string what, std::string expected, std::string hint = "") {
    return fail({Fault::kBadUse, std::move(what), std::string(where), std::move(expected), std::move(hint)});
  };
  if (patch > 1 && !windowed) return refuse(fmt::format("patch is {} without windowed mode", patch), "patch 1, or windowed");
  if (context % patch != 0)
    return refuse(fmt::format("context {} is no multiple of patch {}", context, patch), "whole patches in a window");
  if (window_norm == "mean_std" && !windowed) return refuse("window_norm is mean_std without windowed mode", "none or last, or windowed");
  if (seasons > 0 && season == 0)
    return refuse(fmt::format("{} seasons are asked for, but season is 0", seasons), "the frames of a season");
  const auto weights = parts == "shortcut" ? 0 : parameter_count(backbone);
  if (weights > static_cast<std::size_t>(parameter_cap)) {
    return refuse(fmt::format("the backbone would have {} weights", weights), fmt::format("at most {}", parameter_cap),
                  "Make d_model, n_layers or expand smaller, or raise parameter_cap.");
  }
  return {};
}

}  // namespace kizzasi
