"""Jobs side by side: in this process, in others of this machine, or on a Dask cluster."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from threading import Thread
from typing import Any, TypeVar

from fairopt.discovery import library
from fairopt.errors import BadInput, FairoptError, NotSolved

#: Seconds that the first worker of a Dask cluster may take to come.
WAIT = 60.0
T = TypeVar("T")
K = TypeVar("K")


def side_by_side(
    jobs: Iterable[tuple[K, Callable[..., Any], tuple[Any, ...]] | None], executor: Executor | None, concurrent: int
) -> Iterator[tuple[K, Future[Any]]]:
    """Do jobs, ``concurrent`` at once; yield each with its future, which is done, as soon as it has ended.

    A job is (what it is, a function, its arguments). ``executor`` does it, this process if None, which lets its errors
    out. The next job is asked for when there is room, so that it may depend on those that have been yielded; None
    instead of one says that another must end first. What is under way is cancelled where this is left.

    Errors: `NotSolved` where the executor takes no jobs any more.
    """
    waiting, pending, more = iter(jobs), dict[Future[Any], K](), True
    try:
        while True:
            while more and len(pending) < concurrent:
                try:
                    job = next(waiting)
                except StopIteration:
                    more = False
                    break
                if job is None:
                    break
                what, do, arguments = job
                pending[_submitted(executor, do, *arguments)] = what
            if not pending:
                return
            ended, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in ended:
                yield pending.pop(future), future
    finally:
        for future in pending:
            future.cancel()


def _submitted(executor: Executor | None, do: Callable[..., T], *arguments: Any) -> Future[T]:
    if executor is None:
        future: Future[T] = Future()
        future.set_result(do(*arguments))
        return future
    try:
        return executor.submit(do, *arguments)
    except RuntimeError as error:  # a pool whose worker has died, or that is shut down
        raise failed("a job could not be sent", error) from error


def result_of(future: Future[T], what: str) -> T:
    """Return what a job returned; errors that are not fairopt's own become `NotSolved`, which names the job."""
    try:
        return future.result()
    except FairoptError:
        raise
    except Exception as error:  # whatever an executor raises: its worker has died, the network is down
        raise failed(what, error) from error


def failed(what: str, error: BaseException) -> NotSolved:
    """Return the error of an executor that does no more jobs."""
    return NotSolved(f"{what}: {error!r}; what is done is kept, and the same command goes on from there")


@contextmanager
def place(workers: int, dask: str | None, option: str = "--workers") -> Iterator[tuple[Executor | None, int]]:
    """Yield an executor (None: here) and how many jobs it takes at once.

    It is ``workers`` processes (1: here), or the Dask cluster at an address, or "local:N"; ``option`` says how many.
    The processes end with this one, and when it is interrupted.

    Errors: `BadInput` for both at once and for a malformed address; `NotInstalled` without Dask; `NotSolved` where no
    cluster answers.
    """
    if dask is not None:
        if workers != 1:
            raise BadInput(f"got {option} {workers} with --dask", place=option, remedy="Give one of the two")
        with _on_dask(dask) as there:
            yield there
    elif workers == 1:
        yield None, 1
    else:
        # spawned, so that no worker has this process's memory
        pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_follow)
        others = {*active_children()}
        try:
            yield pool, workers
        except KeyboardInterrupt:  # what a worker is at is not waited for
            for child in {*active_children()} - others:
                child.terminate()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _follow() -> None:
    """Let a worker end with the process that started it, however that ends, and leave interruptions to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)


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
        # a cluster that adapts starts workers only where something is to be done
        try:
            client.submit(int, pure=False).result(timeout=WAIT)
        except TimeoutError as error:
            raise NotSolved(f"the Dask scheduler at {address!r} had no worker for {WAIT:g} s") from error
        # a measurement takes one thread of a worker
        yield client.get_executor(pure=False), sum(client.nthreads().values())
