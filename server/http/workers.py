"""Threads for views: as many as are busy, a few idle, never more than a bound."""

from __future__ import annotations

import threading
from typing import Final, Protocol

from waitress.task import ThreadedTaskDispatcher

_KEPT: Final = 4
_IDLE_SECONDS: Final = 20.0


class Job(Protocol):
    """What the pool runs; ``cancel`` is called instead of ``service`` when the pool shuts down first, or when
    there is no thread and none can be started.
    """

    def service(self) -> None: ...

    def cancel(self) -> None: ...


class WorkerPool(ThreadedTaskDispatcher):  # type: ignore[misc]  # waitress has no types
    """waitress's dispatcher with threads started on demand and ended when idle, so that a parked view never
    blocks another request.

    Jobs beyond ``maximum`` busy threads wait in order.
    """

    def __init__(self, maximum: int) -> None:
        super().__init__()
        self._maximum = maximum
        self._next_number = 0

    def add_task(self, job: Job) -> None:
        """Run ``job`` as soon as there is a thread."""
        with self.lock:
            self.queue.append(job)
            alive = len(self.threads) - self.stop_count
            idle = alive - self.active_count
            if len(self.queue) <= idle or alive >= self._maximum:
                self.queue_cv.notify()
                return
            if self._started_locked() or alive:  # one of those alive takes it when it is free
                return
            self.queue.remove(job)
        job.cancel()

    def _started_locked(self) -> bool:
        """Whether there is another thread now: the system may not let us have one. Only one that has started
        is counted; it waits for the lock.
        """
        number, self._next_number = self._next_number, self._next_number + 1
        name = f"http-{number}"
        try:
            threading.Thread(target=self.handler_thread, name=name, args=(number,), daemon=True).start()
        except (RuntimeError, MemoryError) as fault:
            self.logger.error("%d workers and no thread for another: %s", len(self.threads), str(fault))
            return False
        self.threads.add(number)
        self.active_count += 1
        return True

    def handler_thread(self, thread_no: int) -> None:
        """One worker: runs jobs until it has been idle for a while or the pool shuts down."""
        while True:
            with self.lock:
                if not self._await_job_locked():
                    self.active_count -= 1
                    self.threads.discard(thread_no)
                    self.thread_exit_cv.notify()
                    return
                job = self.queue.popleft()
            try:
                job.service()
            except BaseException:
                self.logger.exception("a worker's job failed")
            del job  # an idle worker must not keep the last request alive

    def _await_job_locked(self) -> bool:
        """True with a job in the queue, False when this thread should end; ``active_count`` includes it on
        return.
        """
        while not self.queue and self.stop_count == 0:
            self.active_count -= 1
            notified = self.queue_cv.wait(_IDLE_SECONDS)
            self.active_count += 1
            if not notified and not self.queue and len(self.threads) > _KEPT and self.stop_count == 0:
                return False
        if self.stop_count > 0:
            self.stop_count -= 1
            return False
        return True
