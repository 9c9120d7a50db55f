"""Steps and training passes of the compared models in PyTorch, each in the form that its users have: transformers where it has the model, the
module of PyTorch itself, or (RWKV-7, S4D) the published recurrence written out as its reference does it.

    python torch_models.py step MODEL SECONDS
    python torch_models.py train MODEL SECONDS
    python torch_models.py product ROWS SECONDS

One thread, float32. Prints one line of JSON; a model that a library lacks is told as {"missing": why}.
"""
import json
import sys
import time

import torch

WIDTH, LAYERS, STATES, WINDOW, BATCH, ROWS = 256, 4, 16, 512, 32, 64


def best_of(seconds, call):
    call()
    begin = time.perf_counter()
    call()
    calls = max(1, int(seconds / 10 / max(time.perf_counter() - begin, 1e-7)))
    best, start = float("inf"), time.perf_counter()
    while time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - begin) / calls)
    return best


class Rwkv7Layer(torch.nn.Module):
    """Time mix and channel mix of RWKV-7, a step at a time, as the published recurrence has them."""

    def __init__(self, d, head):
        super().__init__()
        self.head, self.heads = head, d // head
        self.shares = torch.nn.Parameter(torch.rand(7, d))
        linear = lambda a, b: torch.nn.Linear(a, b, bias=False)
        self.r, self.k, self.v, self.o = (linear(d, d) for _ in range(4))
        self.low = torch.nn.ModuleList(torch.nn.Sequential(linear(d, 64), linear(64, d)) for _ in range(3))  # decay, rate, gate
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(d) for _ in range(2))
        self.group = torch.nn.GroupNorm(self.heads, d)
        self.bonus = torch.nn.Parameter(torch.rand(d))
        self.up, self.down = linear(d, 4 * d), linear(4 * d, d)

    def forward(self, x, state):
        last, kv, last_ffn = state
        n = self.norms[0](x)
        mixed = n + self.shares[:6] * (last - n)
        r, k, v = self.r(mixed[0]), self.k(mixed[1]), self.v(mixed[2])
        decay = torch.exp(-0.606531 * torch.sigmoid(self.low[0][1](torch.tanh(self.low[0][0](mixed[3])))))
        rate = torch.sigmoid(self.low[1](mixed[4]))
        gate = self.low[2][1](torch.sigmoid(self.low[2][0](mixed[5])))
        shape = (self.heads, self.head)
        kk = torch.nn.functional.normalize(k.view(shape), dim=-1)
        a = -kk
        b = kk * rate.view(shape)
        kv = kv * decay.view(self.heads, 1, self.head) + (kv @ a.unsqueeze(-1)) @ b.unsqueeze(1) + v.view(*shape, 1) @ k.view(self.heads, 1, self.head)
        y = (kv @ r.view(*shape, 1)).reshape(1, -1)
        y = self.group(y).reshape(-1) + (r * k * self.bonus).view(shape).sum(-1, keepdim=True).mul(v.view(shape)).reshape(-1)
        x = x + self.o(y * gate)
        m = self.norms[1](x)
        key = torch.relu(self.up(m + self.shares[6] * (last_ffn - m))) ** 2
        return x + self.down(key), (n, kv, m)

    def start(self):
        d = self.head * self.heads
        return torch.zeros(d), torch.zeros(self.heads, self.head, self.head), torch.zeros(d)


class S4dLayer(torch.nn.Module):
    """S4D in its recurrent form: a complex state for each channel, then the gated output map."""

    def __init__(self, d, states):
        super().__init__()
        self.a = torch.nn.Parameter(torch.complex(torch.full((d, states // 2), -0.5), torch.rand(d, states // 2)).exp(), requires_grad=False)
        self.b = torch.nn.Parameter(torch.rand(d, states // 2, dtype=torch.cfloat), requires_grad=False)
        self.skip = torch.nn.Parameter(torch.rand(d))
        self.norm, self.out = torch.nn.LayerNorm(d), torch.nn.Linear(d, 2 * d)

    def forward(self, x, h):
        u = self.norm(x)
        h = self.a * h + u.unsqueeze(-1)
        y = 2 * (self.b * h).sum(-1).real + self.skip * u
        return x + torch.nn.functional.glu(self.out(torch.nn.functional.gelu(y)), dim=-1), h

    def start(self):
        return torch.zeros_like(self.a)


def layers_of(model):
    if model == "rwkv7":
        return [Rwkv7Layer(WIDTH, 64) for _ in range(LAYERS)]
    return [S4dLayer(WIDTH, STATES) for _ in range(LAYERS)]


def transformers_model(model):
    import transformers as t
    small = dict(vocab_size=8, hidden_size=WIDTH, num_hidden_layers=LAYERS)
    if model == "mamba":
        return t.MambaModel(t.MambaConfig(state_size=STATES, **small))
    if model == "mamba2":
        return t.Mamba2Model(t.Mamba2Config(state_size=STATES, head_dim=64, num_heads=2 * WIDTH // 64, n_groups=1, chunk_size=64, **small))
    config = t.LlamaConfig(num_attention_heads=4, num_key_value_heads=4, intermediate_size=WIDTH * 8 // 3 // 8 * 8, max_position_embeddings=4096, **small)
    return t.LlamaModel(config)


def step(model, seconds):
    x = torch.randn(1, 1, WIDTH)
    if model in ("lstm",):
        net, state = torch.nn.LSTM(WIDTH, WIDTH, LAYERS), None

        def call():
            nonlocal state
            _, state = net(x, state)
    elif model in ("rwkv7", "s4d"):
        net = layers_of(model)
        states = [layer.start() for layer in net]

        def call():
            y = x[0, 0]
            for i, layer in enumerate(net):
                y, states[i] = layer(y, states[i])
    else:
        net = transformers_model(model).eval()
        if model == "llama":
            from transformers import StaticCache
            cache = StaticCache(config=net.config, max_batch_size=1, max_cache_len=WINDOW)
            net(inputs_embeds=torch.randn(1, WINDOW - 1, WIDTH), past_key_values=cache, use_cache=True)
            at = torch.tensor([WINDOW - 1])

            def call():  # the last place of a full window, again and again; newer caches count by themselves
                for layer in getattr(cache, "layers", []):
                    if hasattr(layer, "cumulative_length"):
                        layer.cumulative_length.fill_(WINDOW - 1)
                return net(inputs_embeds=x, past_key_values=cache, cache_position=at, use_cache=True)
        else:
            first = net(inputs_embeds=torch.randn(1, 8, WIDTH), use_cache=True)
            at = torch.tensor([8])
            call = lambda: net(inputs_embeds=x, cache_params=first.cache_params, cache_position=at, use_cache=True)
    best = float("inf")
    for onednn in (True, False):  # whichever suits it better
        with torch.no_grad(), torch.backends.mkldnn.flags(enabled=onednn):
            best = min(best, best_of(seconds / 2, call))
    return {"step_us": best * 1e6}


def train(model, seconds):
    x, slope = torch.randn(BATCH, ROWS, WIDTH), torch.randn(BATCH, ROWS, WIDTH)
    if model == "lstm":
        net = torch.nn.LSTM(WIDTH, WIDTH, LAYERS, batch_first=True)
        run = lambda: net(x)[0]
    elif model in ("rwkv7", "s4d"):
        return {"missing": "no training form in the libraries compared"}
    else:
        net = transformers_model(model).train()
        run = lambda: net(inputs_embeds=x, use_cache=False).last_hidden_state

    def call():
        net.zero_grad(set_to_none=True)
        run().backward(slope)
    return {"train_ms": best_of(seconds, call) * 1e3}


def product(rows, seconds):
    x, w = torch.randn(int(rows), 256), torch.randn(768, 256)
    with torch.no_grad():
        return {"linear_us": best_of(seconds, lambda: torch.nn.functional.linear(x, w)) * 1e6}


def train_mambapy(model, seconds):
    from mambapy.mamba import Mamba, MambaConfig
    if model != "mamba":
        return {"missing": "mambapy has Mamba"}
    net = Mamba(MambaConfig(d_model=WIDTH, n_layers=LAYERS, d_state=STATES))
    x, slope = torch.randn(BATCH, ROWS, WIDTH), torch.randn(BATCH, ROWS, WIDTH)

    def call():
        net.zero_grad(set_to_none=True)
        net(x).backward(slope)
    return {"train_ms": best_of(seconds, call) * 1e3}


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    what, model, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    try:
        answer = {"step": step, "train": train, "train_mambapy": train_mambapy, "product": product}[what](model, seconds)
    except ImportError as error:
        answer = {"missing": str(error)}
    print(json.dumps({"torch": torch.__version__, **answer}))


if __name__ == "__main__":
    main()
