#include <algorithm>
#include <cassert>

#include "kizzasi/autograd/ops.h"

namespace kizzasi::autograd {

namespace {

// Calls visit(target, source, length, stride): `length` consecutive elements of the permuted array from `target`, which stand `stride`
// apart from `source` in the original.
template <typename Visit>
void permuted_runs(const Dims& from, const Dims& order, Visit visit) {
  const std::size_t rank = from.size();
  if (rank == 0) return visit(std::size_t{0}, std::size_t{0}, std::size_t{1}, std::size_t{1});
  Dims strides = from, sizes = from, steps = from, at = from;
  for (std::size_t axis = rank, stride = 1; axis-- > 0; stride *= from[axis]) strides[axis] = stride;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    sizes[axis] = from[order[axis]];
    steps[axis] = strides[order[axis]];
    at[axis] = 0;
  }
  const std::size_t length = sizes.back(), count = elements(from);
  for (std::size_t target = 0, source = 0; target < count; target += length) {
    visit(target, source, length, steps.back());
    for (std::size_t axis = rank - 1; axis-- > 0;) {  // the next place, like a mileage counter
      source += steps[axis];
      if (++at[axis] < sizes[axis]) break;
      source -= steps[axis] * sizes[axis];
      at[axis] = 0;
    }
  }
}

std::size_t product(const Dims& dims, std::size_t begin, std::size_t end) {
  std::size_t p = 1;
  for (std::size_t i = begin; i < end; ++i) p *= dims[i];
  return p;
}

}  // namespace

template <typename T>
Var<T> reshape(Var<T> x, Dims dims) {
  return x.tape->alias(x, dims);
}

template <typename T>
Var<T> permute(Var<T> x, Dims order) {
  assert(order.size() == x.dims().size());
  Dims dims = x.dims();
  for (std::size_t axis = 0; axis < order.size(); ++axis) dims[axis] = x.dims()[order[axis]];
  const Var<T> y = x.tape->record(dims, {x}, [x = x.id, order](Tape<T>& tape, std::size_t id) {
    const auto to = tape.flow(x);
    if (to.grad.empty()) return;
    const T* g = tape.grad(id).data();
    permuted_runs(tape.dims(x), order, [&](std::size_t target, std::size_t source, std::size_t length, std::size_t stride) {
      T* d = to.grad.data() + source;
      for (std::size_t i = 0; i < length; ++i) d[i * stride] = (to.first ? T{0} : d[i * stride]) + g[target + i];
    });
  });
  T* out = x.tape->mutable_value(y.id).data();
  const T* xv = x.value().data();
  permuted_runs(x.dims(), order, [&](std::size_t target, std::size_t source, std::size_t length, std::size_t stride) {
    for (std::size_t i = 0; i < length; ++i) out[target + i] = xv[source + i * stride];
  });
  return y;
}

template <typename T>
Var<T> slice(Var<T> x, std::size_t axis, std::size_t begin, std::size_t end) {
  const Dims& from = x.dims();
  assert(axis < from.size() && begin <= end && end <= from[axis]);
  const std::size_t inner = product(from, axis + 1, from.size()), outer = product(from, 0, axis);
  const std::size_t length = (end - begin) * inner, pitch = from[axis] * inner, first = begin * inner;
  Dims dims = from;
  dims[axis] = end - begin;
  const Var<T> y = x.tape->record(dims, {x}, [x = x.id, outer, length, pitch, first](Tape<T>& tape, std::size_t id) {
    T* to = tape.grad(x).data() + first;
    const T* g = tape.grad(id).data();
    for (std::size_t o = 0; o < outer; ++o) {
      for (std::size_t i = 0; i < length; ++i) to[o * pitch + i] += g[o * length + i];
    }
  });
  T* out = x.tape->mutable_value(y.id).data();
  const T* xv = x.value().data() + first;
  for (std::size_t o = 0; o < outer; ++o) std::copy_n(xv + o * pitch, length, out + o * length);
  return y;
}

template <typename T>
Var<T> concat(std::span<const Var<T>> parts, std::size_t axis) {
  Tape<T>& tape = *parts[0].tape;
  Dims dims = parts[0].dims();
  const std::size_t inner = product(dims, axis + 1, dims.size()), outer = product(dims, 0, axis);
  dims[axis] = 0;
  for (const Var<T>& part : parts) dims[axis] += part.dims()[axis];
  const std::size_t pitch = dims[axis] * inner;
  const auto adjoint = [parts = std::vector<Var<T>>(parts.begin(), parts.end()), outer, pitch](Tape<T>& t, std::size_t id) {
    const T* g = t.grad(id).data();
    for (const Var<T>& part : parts) {
      const auto to = t.flow(part.id);
      const std::size_t length = part.value().size() / std::max<std::size_t>(outer, 1);
      for (std::size_t o = 0; o < outer && !to.grad.empty(); ++o) {
        T* d = to.grad.data() + o * length;
        for (std::size_t i = 0; i < length; ++i) d[i] = (to.first ? T{0} : d[i]) + g[o * pitch + i];
      }
      g += length;
    }
  };
  const Var<T> y = tape.record(dims, parts, adjoint);
  T* out = tape.mutable_value(y.id).data();
  for (const Var<T>& part : parts) {
    const std::size_t length = part.dims()[axis] * inner;
    for (std::size_t o = 0; o < outer; ++o) std::copy_n(part.value().data() + o * length, length, out + o * pitch);
    out += length;
  }
  return y;
}

template <typename T>
Var<T> gather(Var<T> x, std::vector<std::size_t> index) {
  Dims dims = x.dims();
  const std::size_t width = product(dims, 1, dims.size());
  [[maybe_unused]] const std::size_t rows = dims[0];
  dims[0] = index.size();
  // The index is needed now and by the adjoint: the recorded copy serves both.
  const std::size_t count = index.size();
  const Var<T> y = x.tape->record(dims, {x}, [x = x.id, width, index](Tape<T>& tape, std::size_t id) {
    T* to = tape.grad(x).data();
    const T* g = tape.grad(id).data();
    for (std::size_t r = 0; r < index.size(); ++r) {
      for (std::size_t i = 0; i < width; ++i) to[index[r] * width + i] += g[r * width + i];
    }
  });
  T* out = x.tape->mutable_value(y.id).data();
  for (std::size_t r = 0; r < count; ++r) {
    assert(index[r] < rows);
    std::copy_n(x.value().data() + index[r] * width, width, out + r * width);
  }
  return y;
}

template Var<float> reshape(Var<float>, Dims);
template Var<double> reshape(Var<double>, Dims);
template Var<float> permute(Var<float>, Dims);
template Var<double> permute(Var<double>, Dims);
template Var<float> slice(Var<float>, std::size_t, std::size_t, std::size_t);
template Var<double> slice(Var<double>, std::size_t, std::size_t, std::size_t);
template Var<float> concat(std::span<const Var<float>>, std::size_t);
template Var<double> concat(std::span<const Var<double>>, std::size_t);
template Var<float> gather(Var<float>, std::vector<std::size_t>);
template Var<double> gather(Var<double>, std::vector<std::size_t>);

}  // namespace kizzasi::autograd
