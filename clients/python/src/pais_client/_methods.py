"""Makes the methods of the two clients from operations."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from ._async_transport import AsyncTransport
from ._operations import Operation, Pages
from ._transport import Transport

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound=Callable[..., Any])


class Connected(Protocol):
    """Has a connection to a service."""

    _transport: Transport


class AsyncConnected(Protocol):
    """Has a connection to a service, for use in an event loop."""

    _transport: AsyncTransport


def documented(call: M, operation: Callable[..., Any]) -> M:
    """Gives a method the name, the text and the parameters of its operation."""
    functools.update_wrapper(call, operation)
    signature = inspect.signature(operation)
    self = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [self, *signature.parameters.values()]
    call.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=parameters, return_annotation=inspect.Signature.empty
    )
    return call


def method(
    operation: Callable[P, Operation[T]],
) -> Callable[Concatenate[Connected, P], T]:
    """A method of `Client` that returns the result of the operation."""

    def call(self: Connected, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._transport.run(operation(*args, **kwargs))

    return documented(call, operation)


def lister(
    operation: Callable[P, Pages[T]],
) -> Callable[Concatenate[Connected, P], Iterator[T]]:
    """A method of `Client` that yields the items of a list."""

    def call(self: Connected, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return self._transport.iterate(operation(*args, **kwargs))

    return documented(call, operation)


def async_method(
    operation: Callable[P, Operation[T]],
) -> Callable[Concatenate[AsyncConnected, P], Coroutine[Any, Any, T]]:
    """A method of `AsyncClient` that returns the result of the operation."""

    async def call(self: AsyncConnected, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._transport.run(operation(*args, **kwargs))

    return documented(call, operation)


def async_lister(
    operation: Callable[P, Pages[T]],
) -> Callable[Concatenate[AsyncConnected, P], AsyncIterator[T]]:
    """A method of `AsyncClient` that yields the items of a list."""

    def call(self: AsyncConnected, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        return self._transport.iterate(operation(*args, **kwargs))

    return documented(call, operation)
