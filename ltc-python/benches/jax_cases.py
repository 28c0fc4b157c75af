"""The cases that need no more than arrays, written for JAX: whole steps under `jax.jit`, parameters donated where they
train."""

import jax
import jax.numpy as jnp


def _layers(key, sizes):
    keys = jax.random.split(key, len(sizes))
    uniform = lambda k, i, o: jax.random.uniform(k, (i, o), minval=-(i**-0.5), maxval=i**-0.5)
    return [(uniform(k, i, o), uniform(k, i, o)[0]) for k, i, o in zip(keys, sizes, sizes[1:])]


def _network(layers, activation, x):
    for w, b in layers[:-1]:
        x = activation(x @ w + b)
    w, b = layers[-1]
    return x @ w + b


def _adam(grads, state, layers, rate=1e-3, beta1=0.9, beta2=0.999, eps=1e-8):
    count, means, squares = state
    count = count + 1
    means = jax.tree.map(lambda m, g: beta1 * m + (1 - beta1) * g, means, grads)
    squares = jax.tree.map(lambda v, g: beta2 * v + (1 - beta2) * g * g, squares, grads)
    c1, c2 = 1 - beta1**count, 1 - beta2**count
    move = lambda p, m, v: p - rate / c1 * m / (jnp.sqrt(v / c2) + eps)
    return (count, means, squares), jax.tree.map(move, layers, means, squares)


def _sgd(grads, state, layers, rate=1e-3, momentum=0.9):
    count, means, squares = state
    means = jax.tree.map(lambda m, g: momentum * m + g, means, grads)
    return (count, means, squares), jax.tree.map(lambda p, m: p - rate * m, layers, means)


def _trained(loss, layers, optimiser, *batch):
    """A step that keeps its parameters between calls."""

    def update(layers, state, *batch):
        value, grads = jax.value_and_grad(loss)(layers, *batch)
        state, layers = optimiser(grads, state, layers)
        return value, layers, state

    update = jax.jit(update, donate_argnums=(0, 1))
    zeros = lambda: jax.tree.map(jnp.zeros_like, layers)
    kept = [layers, (jnp.zeros(()), zeros(), zeros())]

    def step():
        value, *kept[:] = update(*kept, *batch)
        return value

    return step


def _mlp(optimiser, batch=32, width=64):
    keys = jax.random.split(jax.random.key(0), 3)
    layers = _layers(keys[0], [width, width, width, 10])
    x, y = jax.random.normal(keys[1], (batch, width)), jax.random.randint(keys[2], (batch,), 0, 10)

    def loss(layers, x, y):
        logits = jax.nn.log_softmax(_network(layers, jax.nn.relu, x))
        return -jnp.take_along_axis(logits, y[:, None], 1).mean()

    return _trained(loss, layers, optimiser, x, y)


def _pinn(points=256, width=32):
    keys = jax.random.split(jax.random.key(0), 4)
    layers = _layers(keys[0], [2, width, width, 1])
    x, t, start = (jax.random.uniform(k, (points, 1)) for k in keys[1:])

    def loss(layers, x, t, start):
        u = lambda x, t: _network(layers, jnp.tanh, jnp.concatenate([x, t], 1))
        ux = lambda x, t: jax.grad(lambda x: u(x, t).sum())(x)
        ut = jax.grad(lambda t: u(x, t).sum())(t)
        uxx = jax.grad(lambda x: ux(x, t).sum())(x)
        at_start = u(start, jnp.zeros_like(start))
        return ((ut - uxx) ** 2).mean() + ((at_start - jnp.sin(jnp.pi * start)) ** 2).mean()

    return _trained(loss, layers, _adam, x, t, start)


def _chain(function, *shapes):
    def build():
        inputs = [jax.random.uniform(jax.random.key(0), s) for s in shapes]
        call = jax.jit(function)
        return lambda: call(*inputs)

    return build


def _pointwise(x):
    for _ in range(10):
        x = x * 1.01 + 0.5
    return x


def _gelu_by_hand(x):
    return 0.5 * x * (1 + jnp.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def _normalise(x):
    y = x - x.mean(-1, keepdims=True)
    return y * jax.lax.rsqrt((y * y).mean(-1, keepdims=True) + 1e-5)


CASES = {
    "mlp": lambda: _mlp(_adam),
    "mlp, sgd": lambda: _mlp(_sgd),
    "pinn": _pinn,
    **{f"20 pointwise, {n}": _chain(_pointwise, (n,)) for n in (16, 4096, 1_000_000)},
    **{f"tanh gelu by hand, {n}": _chain(_gelu_by_hand, (n,)) for n in (4096, 1_000_000)},
    "normalise rows, 512x512": _chain(_normalise, (512, 512)),
    "softmax, 512x512": _chain(lambda x: jax.nn.softmax(x, -1), (512, 512)),
    "linear gelu, 256": _chain(
        lambda x, w, b: jax.nn.gelu(x @ w + b, approximate=False), (256, 256), (256, 256), (256,)
    ),
    "one add, 16": _chain(lambda x: x + x, (16,)),
    "one matmul, 512": _chain(jnp.matmul, (512, 512), (512, 512)),
}
