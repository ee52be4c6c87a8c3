"""Fetches the same table from the host in each step."""

import jax
import jax.numpy as jnp
import numpy

table = numpy.linspace(0.0, 1.0, 4_000_000, dtype=numpy.float32)


@jax.jit
def step(values: jax.Array) -> jax.Array:
    fetched = jax.pure_callback(lambda: table, jax.ShapeDtypeStruct(table.shape, table.dtype))
    return jnp.sqrt(values + fetched)


values = jnp.ones(4_000_000)
for _ in range(100):
    values = step(values)  # problem: transfer cuMemcpyHtoDAsync_v2
print(f"{float(values.mean()):.3f}")
