"""Where measurements are made: in this process one after the other, in processes beside it, or on a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

from fairopt.bench.libraries import library
from fairopt.errors import BadInput, NotSolved


@contextmanager
def place(workers: int, dask: str | None) -> Iterator[tuple[Executor | None, int]]:
    """Yield an executor (None: here) and how many measurements it takes at once.

    It is ``workers`` processes (1: here), or the Dask cluster at an address, or "local:N".

    Errors: `BadInput` for both at once and for a malformed address; `NotInstalled` without Dask; `NotSolved` where no
    cluster answers.
    """
    if dask is not None:
        if workers != 1:
            raise BadInput(f"got --workers {workers} with --dask", place="--workers", remedy="Give one of the two")
        with _on_dask(dask) as there:
            yield there
    elif workers == 1:
        yield None, 1
    else:
        # spawned, so that no worker has this process's memory
        pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
        try:
            yield pool, workers
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _on_dask(address: str) -> Iterator[tuple[Executor, int]]:
    distributed = library("distributed", "--dask")
    kind, _, count = address.partition(":")
    if kind == "local":
        if not count.isdecimal() or not int(count):
            raise BadInput(f"got {address!r}", place="--dask", remedy="Write local:N with N workers, such as local:2")
        workers = {"n_workers": int(count), "processes": True, "threads_per_worker": 1, "dashboard_address": None}
        with distributed.LocalCluster(**workers) as cluster, distributed.Client(cluster) as client:
            yield client.get_executor(pure=False), int(count)
        return
    try:
        client = distributed.Client(address, timeout=10)
    except (OSError, ValueError, TimeoutError) as error:
        raise NotSolved(f"no Dask scheduler answers at {address!r}: {error}") from error
    with client:
        # a measurement takes one thread of a worker
        threads = sum(client.nthreads().values())
        if not threads:
            raise NotSolved(f"the Dask scheduler at {address!r} has no workers")
        yield client.get_executor(pure=False), threads
