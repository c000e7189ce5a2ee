"""Signals, threads, forks, memory."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from convgp import ConvGPClassifier

CTRL_C = """
import _thread, threading, time
import convgp
X, y = convgp.rectangles(200, seed=0)
model = convgp.ConvGPClassifier("weighted", steps=10**9, random_state=0)
threading.Timer(1.0, _thread.interrupt_main).start()
try:
    model.fit(X, y)
except KeyboardInterrupt:
    assert model.n_iter_ > 0 and model.predict(X).shape == (200,)
    print("stopped")
"""


def test_ctrl_c_leaves_a_usable_model():
    done = subprocess.run([sys.executable, "-W", "error", "-c", CTRL_C], capture_output=True, text=True, timeout=120)
    assert done.stdout == "stopped\n" and done.stderr == "", done.stderr


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a signal")
def test_a_signal_handler_is_heard(digits):
    def handler(number, frame):
        raise TimeoutError("rung")

    old = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        model = ConvGPClassifier("weighted", steps=10**9, random_state=0)
        with pytest.raises(TimeoutError, match="rung"):
            model.fit(*digits)
        assert model.predict(digits[0]).shape == (60,)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, old)


def test_the_interpreter_is_free_meanwhile(digits):
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.wait(0.01):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    ConvGPClassifier("weighted", time=1.0, random_state=0).fit(*digits)
    stop.set()
    thread.join()
    # A locked interpreter would let the other thread run between chunks only, twenty times a second.
    assert len(ticks) > 30


def test_threads_may_predict_together(classifier, digits):
    X, _ = digits
    expected, found = classifier.predict_proba(X), []
    threads = [threading.Thread(target=lambda: found.append(classifier.predict_proba(X))) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(found) == 4 and all(np.array_equal(expected, p) for p in found)


def _fit_in_child(queue, X, y):
    queue.put(ConvGPClassifier("weighted", steps=20, random_state=0).fit(X, y).predict_proba(X))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_work_goes_on_after_a_fork(digits):
    X, y = digits
    here = ConvGPClassifier("weighted", steps=20, random_state=0).fit(X, y).predict_proba(X)
    context = multiprocessing.get_context("fork")
    for _ in range(3):
        queue = context.Queue()
        child = context.Process(target=_fit_in_child, args=(queue, X, y))
        child.start()
        assert np.array_equal(queue.get(timeout=120), here)
        child.join(timeout=120)
        assert child.exitcode == 0
    assert np.array_equal(ConvGPClassifier("weighted", steps=20, random_state=0).fit(X, y).predict_proba(X), here)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_that_does_nothing_ends(classifier, digits):
    classifier.predict(digits[0])
    child = os.fork()
    if child == 0:
        os._exit(0 if len(classifier.predict(digits[0][:5])) == 5 else 1)
    assert os.waitpid(child, 0)[1] == 0


def _resident() -> int:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
def test_memory_does_not_grow_over_a_hundred_fits():
    draw = np.random.default_rng(0)
    X, y = draw.random((300, 28, 28), dtype=np.float32), np.arange(300) % 2

    def fits(count):
        for _ in range(count):
            model = ConvGPClassifier("rbf", steps=2, inducing=20, random_state=0).fit(X, y)
            model.predict_proba(X[:50])
        gc.collect()
        return _resident()

    before, after = fits(20), fits(100)
    # One array of these images is 0.9 MB and a model some more: a leak of either would show as 90 MB.
    assert after - before < 15e6, f"{(after - before) / 1e6:.1f} MB in 100 fits"


def test_arrays_are_used_where_they_lie():
    from convgp import _convgp

    X = np.zeros((20000, 28, 28), dtype=np.float32)
    before = sys.getrefcount(X)
    held = _resident() if os.path.exists("/proc/self/statm") else 0
    data = _convgp.Data(X, (28, 28, 1))
    assert sys.getrefcount(X) == before + 1, "the array is held on to"
    if held:
        assert _resident() - held < 0.5 * X.nbytes
    del data
    assert sys.getrefcount(X) == before
    with pytest.raises(ValueError, match="contiguous"):
        _convgp.Data(X[:, ::2], (14, 28, 1))
