// The configuration of a backbone and of the predictor around it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kizzasi/base/fields.h"
#include "kizzasi/signal/head.h"

namespace kizzasi {

// Field names follow state-spaces/mamba. What an architecture does not have it ignores only where its page in the docs says so.
struct BackboneConfig {
  std::string architecture = "mamba2";  // a name of the table in model/architectures.h
  std::int64_t d_model = 64;
  std::int64_t n_layers = 2;
  std::int64_t d_state = 16;
  std::int64_t expand = 2;   // d_inner = expand * d_model, unless d_inner is given
  std::int64_t d_inner = 0;  // 0: expand * d_model
  std::int64_t d_conv = 4;
  std::int64_t dt_rank = 0;            // Mamba; 0: ceil(d_model / 16). GLA's gate; 0: 16
  std::int64_t head_dim = 16;          // Mamba-2, linear attention
  std::int64_t n_groups = 1;           // Mamba-2
  std::int64_t n_key_heads = 0;        // Gated DeltaNet; 0: as many as heads of values
  std::int64_t chunk = 64;             // Mamba-2, in training
  double dt_min = 1e-3, dt_max = 0.1;  // range from which the first step sizes are drawn
  double dt_limit_low = 0;             // Mamba-2's time_step_limit
  double dt_limit_high = 1e308;        // no limit
  double norm_eps = 1e-5;
  double mixer_norm_eps = 1e-6;                  // FalconMamba: norms of dt, B and C; mLSTM: reads
  double head_norm_eps = 64e-5;                  // RWKV-5 to 7: norms of the heads
  std::int64_t n_heads = 0, n_kv_heads = 0;      // attention; 0: d_model / head_dim, and as many
  std::int64_t window = 512;                     // frames that attention sees, the present one among them
  double rope_theta = 10000;                     // base of the rotary positions
  std::int64_t n_experts = 4, experts_used = 2;  // Mixtral
  std::int64_t mix_rank = 0, decay_rank = 0, rate_rank = 0, gate_rank = 0, value_rank = 0;  // RWKV-6 and 7; 0: by d_model
  std::vector<double> attention_layers;            // hybrids: which blocks attend; empty: every fourth, of fewer the last
  std::vector<double> expert_layers;               // hybrids: which blocks have experts; empty: every second
  std::int64_t attention_head_dim = 0;             // channels of a head of attention; 0: head_dim
  double rope_fraction = 1;                        // share of such a head that its position turns
  std::int64_t qkv_block = 4;                      // the first mLSTM: channels of a block of its maps to q, k and v
  std::int64_t d_expert = 0, d_shared_expert = 0;  // inner widths of experts; 0: d_ffn, and as the others'
  std::int64_t d_ffn = 0;                          // inner width of the feed-forward half of a block; 0: as the architecture has it
  bool slstm_conv = true;                          // sLSTM: a convolution before the gates that take in and keep
  bool proj_bias = false, conv_bias = true;
  std::string s4d_init = "lin";             // S4D: lin, inv, legs, real
  std::string discretization = "zoh";       // S4D, S5, H3: zoh, bilinear, euler
  std::string ssm_activation = "full_glu";  // LRU, S5: full_glu, half_glu1, half_glu2, gelu, none
  std::int64_t s5_blocks = 0;               // S5: blocks of its start; 0: of at most 64 states
  bool bidirectional = false;               // S5: refused here, since a stream has no end

  void fields(FieldVisitor& visit);
  Result<void> check(std::string_view where) const;  // ranges, and what must fit together
  std::int64_t inner() const { return d_inner > 0 ? d_inner : expand * d_model; }
  std::int64_t rank() const { return dt_rank > 0 ? dt_rank : (d_model + 15) / 16; }
  friend bool operator==(const BackboneConfig&, const BackboneConfig&) = default;
};

// The predictor around the backbone: what enters, what comes out, and the linear short-cut beside it.
struct ModelConfig {
  BackboneConfig backbone;
  HeadConfig head;

  std::string channel_mode = "mixed";  // mixed: one lane sees every channel; independent: every target channel is a lane of shared weights
  std::int64_t context = 64;           // frames of look-back: of a training window, and of a forecast in windowed mode
  std::int64_t horizon = 1;            // steps ahead that one evaluation of the head gives
  std::int64_t patch = 1;              // frames that make one model vector; above 1 only in windowed mode
  bool windowed = false;               // forecasts run the last `context` frames from reset state; else the state is carried for ever
  std::string window_norm = "none";    // none; last: minus the last value; mean_std: RevIN (windowed only)
  std::string parts = "both";          // both, shortcut, backbone
  std::int64_t recent = 16;            // frames of recent past that the short-cut sees
  std::int64_t season = 0;             // frames a season; 0: none
  std::int64_t seasons = 0;            // how many of the last seasons' same slots the short-cut and the decoder see
  bool intercept = true;               // a constant term in the short-cut
  std::int64_t d_decoder = 64;         // width of the decoder that joins backbone, slots and known future
  std::int64_t parameter_cap = 1 << 30;

  void fields(FieldVisitor& visit);
  Result<void> check(std::string_view where) const;
  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

}  // namespace kizzasi
