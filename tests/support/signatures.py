"""Signatures as text, so that a test can pin them."""

from __future__ import annotations

import inspect
from collections.abc import Callable

PLAIN = (str, int, float, bool, tuple)


def shape(function: Callable[..., object]) -> str:
    """Names, order, kinds and plain defaults of the parameters."""
    signature = inspect.signature(function)
    parameters = []
    for parameter in signature.parameters.values():
        default = parameter.default
        if default is not inspect.Parameter.empty and default is not None and not isinstance(default, PLAIN):
            default = ...
        parameters.append(parameter.replace(annotation=inspect.Parameter.empty, default=default))
    bare = signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)
    return str(bare).replace("=Ellipsis", "=...")
