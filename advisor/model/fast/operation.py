"""The kernel as a PyTensor operation, so that a PyMC model can hold it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import numba_funcify

from advisor.model.fast import kernel
from advisor.model.fast.machine_code import compiled

PARAMETERS = 6
"""Inputs that are parameters; those after them are data."""


class LogLikelihood(Op):  # type: ignore[misc]
    """Log likelihood of a cohort, with its gradient by each parameter array as further outputs."""

    __props__ = ()

    def make_node(self, *inputs: Any) -> Apply:
        """Bind inputs: the six parameter arrays, then the data, as `kernel.log_likelihood`."""
        variables = [pt.as_tensor_variable(value) for value in inputs]
        gradients = [variable.type() for variable in variables[:PARAMETERS]]
        return Apply(self, variables, [pt.dscalar(), *gradients])

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Evaluate outside numba."""
        for storage, value in zip(outputs, _with_gradient(*inputs), strict=True):
            storage[0] = value

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        """Gradient: the further outputs, scaled. The data have none."""
        from pytensor.gradient import DisconnectedType

        by_parameter = [cotangents[0] * gradient for gradient in outputs[1:]]
        return by_parameter + [DisconnectedType()() for _ in inputs[PARAMETERS:]]

    def L_op(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:  # noqa: N802
        """Gradient under its older name, which PyTensor below 3 calls."""
        return self.pullback(inputs, outputs, cotangents)

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Outputs depend on the parameters; what depends on data is not differentiated."""
        return [[at < PARAMETERS] * len(node.outputs) for at in range(len(node.inputs))]


@compiled
def _with_gradient(
    population: Any,
    task_level: Any,
    start_logit: Any,
    eval_level: Any,
    group_offset: Any,
    run_offset: Any,
    run_table: Any,
    parents: Any,
    first_bin: Any,
    bin_table: Any,
    is_oscillator: Any,
) -> Any:
    by_population = np.zeros_like(population)
    by_task = np.zeros_like(task_level)
    by_start = np.zeros_like(start_logit)
    by_eval = np.zeros_like(eval_level)
    by_group = np.zeros_like(group_offset)
    by_run = np.zeros_like(run_offset)
    value = kernel.log_likelihood(
        population,
        task_level,
        start_logit,
        eval_level,
        group_offset,
        run_offset,
        run_table,
        parents,
        first_bin,
        bin_table,
        is_oscillator.item(),
        by_population,
        by_task,
        by_start,
        by_eval,
        by_group,
        by_run,
    )
    return np.asarray(value), by_population, by_task, by_start, by_eval, by_group, by_run


@numba_funcify.register(LogLikelihood)  # type: ignore[untyped-decorator]
def _numba_log_likelihood(op: LogLikelihood, node: Apply, **options: Any) -> Any:
    return _with_gradient


log_likelihood = LogLikelihood()
