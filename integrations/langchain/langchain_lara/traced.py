"""A runnable that is traced and streams, whichever way it is called."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any, TypeVar

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.runnables import RunnableConfig, RunnableSerializable
from langchain_core.runnables.config import patch_config
from pydantic import ConfigDict

from langchain_lara.inputs import refuse_arguments

Input = TypeVar("Input")
Output = TypeVar("Output")

RunManager = CallbackManagerForChainRun | AsyncCallbackManagerForChainRun


class TracedRunnable(RunnableSerializable[Input, Output]):
    """Opens a run in each of the four ways of being called, and leaves to a subclass what happens in it.

    A subclass is given the input, the run's manager and the config for whatever it calls. Its
    streams' chunks add up to what ``_run`` returns. LangChain's own ``transform`` gathers an input
    that comes in pieces and calls ``stream``.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    @abstractmethod
    def _run(self, given: Input, run: RunManager, config: RunnableConfig) -> Output:
        """The whole output."""

    @abstractmethod
    async def _arun(self, given: Input, run: RunManager, config: RunnableConfig) -> Output:
        """As ``_run``, without blocking the event loop."""

    @abstractmethod
    def _run_stream(self, given: Input, run: RunManager, config: RunnableConfig) -> Iterator[Output]:
        """The output in pieces."""

    @abstractmethod
    def _arun_stream(
        self, given: Input, run: RunManager, config: RunnableConfig
    ) -> AsyncGenerator[Output, None]:
        """As ``_run_stream``, without blocking the event loop."""

    @classmethod
    def is_lc_serializable(cls) -> bool:
        return True

    def invoke(
        self,
        input: Input,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: object,
    ) -> Output:
        refuse_arguments(kwargs)

        def call(given: Input, run_manager: CallbackManagerForChainRun, config: RunnableConfig) -> Output:
            return self._run(given, run_manager, _children(config, run_manager))

        return self._call_with_config(call, input, config)

    async def ainvoke(
        self,
        input: Input,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: object,
    ) -> Output:
        refuse_arguments(kwargs)

        async def call(
            given: Input, run_manager: AsyncCallbackManagerForChainRun, config: RunnableConfig
        ) -> Output:
            return await self._arun(given, run_manager, _children(config, run_manager))

        return await self._acall_with_config(call, input, config)

    def stream(
        self,
        input: Input,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: object,
    ) -> Iterator[Output]:
        refuse_arguments(kwargs)

        def pieces(
            inputs: Iterator[Input], run_manager: CallbackManagerForChainRun, config: RunnableConfig
        ) -> Iterator[Output]:
            for given in inputs:
                yield from self._run_stream(given, run_manager, config)

        yield from self._transform_stream_with_config(iter([input]), pieces, config)

    async def astream(
        self,
        input: Input,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: object,
    ) -> AsyncGenerator[Output, None]:
        refuse_arguments(kwargs)

        async def once() -> AsyncIterator[Input]:
            yield input

        async def pieces(
            inputs: AsyncIterator[Input],
            run_manager: AsyncCallbackManagerForChainRun,
            config: RunnableConfig,
        ) -> AsyncIterator[Output]:
            async for given in inputs:
                async with aclosing(self._arun_stream(given, run_manager, config)) as chunks:
                    async for chunk in chunks:
                        yield chunk

        stream: Any = self._atransform_stream_with_config(once(), pieces, config)
        async with aclosing(stream) as chunks:
            async for chunk in chunks:
                yield chunk


def _children(config: RunnableConfig, run_manager: RunManager) -> RunnableConfig:
    """The config of what a run calls."""
    return patch_config(config, callbacks=run_manager.get_child())
