"""Threads of a test, which fails if one of them does."""

import threading
from collections.abc import Callable, Iterable
from typing import Any


def together(work: Callable[[Any], object], seeds: Iterable[Any]) -> None:
    """Calls ``work`` with each of the seeds, in a thread of its own each, and raises the first error of theirs."""
    errors: list[BaseException] = []

    def run(seed: Any) -> None:
        try:
            work(seed)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in seeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
