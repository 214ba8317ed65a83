"""Ctrl-C, fork, threads at exit, memory."""

import concurrent.futures
import multiprocessing
import os
import subprocess
import sys
import threading

import pytest
import torch
from conftest import pictures
from PIL import Image

import riffle
from riffle import _riffle

STREAM = "synthetic:?frames=4&size=32"


def make_loader(stream=STREAM):
    return riffle.ReplayLoader(stream, riffle.ReplayBuffer("fifo", 32, 32, batch=8), batch=8)


def drop_picture(folder, name):
    Image.new("RGB", (40, 40)).save(folder / f"{name}.part", format="png")
    os.rename(folder / f"{name}.part", folder / f"{name}.png")


def test_ctrl_c_ends_the_wait_for_a_stream_and_loses_nothing(interrupted, tmp_path):
    stream = riffle.open_stream(f"folder:{tmp_path}?watch=1")
    interrupted(lambda: next(stream))
    drop_picture(tmp_path, "late")
    assert next(stream).key.endswith("late.png")


def test_ctrl_c_ends_the_wait_of_a_loader_and_loses_nothing(interrupted, tmp_path):
    loader = make_loader(f"folder:{tmp_path}?watch=1")
    for i in range(31):
        drop_picture(tmp_path, f"{i:03}")
    interrupted(lambda: next(loader))
    drop_picture(tmp_path, "last")
    assert len(next(loader)) == 8 and loader.samples_seen == 32


def test_ctrl_c_ends_the_wait_for_a_python_stream(interrupted):
    never = threading.Event()

    def waits():
        never.wait()
        yield pictures(1)[0]

    stream = riffle.open_stream(waits())
    interrupted(lambda: next(stream))
    never.set()
    assert next(stream).index == 0


def test_ctrl_c_ends_long_work(interrupted):
    index = riffle.NearestIndex(12000, 512)
    index.set(range(12000), torch.randn(12000, 512))
    interrupted(lambda: index.take(6000))
    interrupted(lambda: index.set([0], torch.randn(1, 512)))  # waits for that
    assert 0 in index and len(index) in (6000, 6001)  # all was finished in the background


def test_ctrl_c_ends_the_wait_for_an_update(interrupted):
    learner = riffle.Learner("synthetic:", {"augment.size": 96, "buffer.capacity": 64, "train.batch": 64,
                                            "train.updates": 100})
    interrupted(lambda: learner.train(progress=False))
    assert learner.update >= 0  # waits for what was under way


def test_ctrl_c_ends_an_embedding(interrupted):
    interrupted(lambda: riffle.embed(riffle.ResNet(), "synthetic:", size=64, samples=10**9))


ENDLESS = "synthetic:?frames=1"


@pytest.mark.parametrize("use", [
    lambda run: riffle.embed(run, ENDLESS, samples=10**9),
    lambda run: riffle.probe(run, ENDLESS, ENDLESS, samples=10**9),
    lambda run: riffle.probe(riffle.load_encoder(run), ENDLESS, ENDLESS, samples=10**9),
], ids=["embed", "probe", "probe of a module"])
def test_ctrl_c_ends_what_reads_a_stream_without_end(use, interrupted, run_folder):
    interrupted(lambda: use(run_folder))
    done = threading.Thread(target=_riffle.wait_for_abandoned, daemon=True)
    done.start()
    done.join(120)
    assert not done.is_alive(), "it still reads"


def in_worker(use, answers):
    try:
        use()
        answers.put("it worked")
    except riffle.Error as error:
        answers.put(str(error))


@pytest.mark.parametrize("make", [
    lambda: riffle.open_stream(STREAM).__next__,
    lambda: make_loader().__next__,
    lambda: lambda buffer=riffle.ReplayBuffer("fifo", 32, 32, batch=8): len(buffer),
    lambda: lambda views=riffle.TwoViews(32): views(pictures(2), step=0),
    lambda: lambda index=riffle.NearestIndex(4, 2): index.set([0], [[1.0, 0.0]]),
    lambda: riffle.Learner(STREAM, {"augment.size": 32, "model.width": 8}).__next__,
], ids=["stream", "loader", "buffer", "views", "index", "learner"])
def test_a_fork_is_refused(make):
    use = make()
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    worker = context.Process(target=in_worker, args=(use, answers))
    worker.start()
    answer = answers.get(timeout=300)
    worker.join(300)
    assert "belongs to another process" in answer and "\n" not in answer
    assert worker.exitcode == 0


def in_threads(use, count=4):
    """Calls a function in several threads at once and returns all that the lists which it returns hold."""
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return sum((done.result() for done in [pool.submit(use) for _ in range(count)]), [])


def test_threads_share_a_stream():
    stream = riffle.open_stream(STREAM, shapes=["limit:samples=400"])
    assert sorted(in_threads(lambda: [sample.index for sample in stream])) == list(range(400))


def test_threads_share_a_buffer():
    buffer = riffle.ReplayBuffer("fifo", 320, 32, batch=8)
    in_threads(lambda: [buffer.insert(pictures(8)) for _ in range(10)])
    assert sorted(buffer.sample(320).indices) == list(range(320))
    assert sorted(in_threads(lambda: [buffer.sample(8).update for _ in range(50)])) == list(range(1, 201))


def test_threads_share_a_loader():
    loader = make_loader(f"{STREAM}&samples=200")
    assert sorted(in_threads(lambda: [batch.update for batch in loader])) == list(range(loader.update))


def test_threads_stop_and_close_what_they_share():
    def end(loader):
        try:
            loader.stop()
        except riffle.Error as error:
            assert str(error) == "this ReplayLoader was closed"
        loader.close()
        return []

    for _ in range(20):
        loader = make_loader()
        in_threads(lambda: end(loader))
        with pytest.raises(riffle.Error, match="this ReplayLoader was closed"):
            next(loader)


LAST_TO_LEAVE = """
import threading, torch, riffle
stopping, go = threading.Event(), threading.Event()
class Camera:
    def __iter__(self):
        for _ in range(32): yield torch.zeros(3, 32, 32, dtype=torch.uint8)
        go.wait()
        sum(range(10_000_000))  # needs the GIL for longer than the loader's end
    def stop(self):
        if not stopping.is_set():
            stopping.set()
            go.wait()
loader = riffle.ReplayLoader(Camera(), riffle.ReplayBuffer("fifo", 32, 32, batch=8), batch=8)
next(loader)
stopper = threading.Thread(target=loader.stop)
stopper.start()
stopping.wait()
loader.close()
go.set()
stopper.join()
print("ended")
"""


def test_a_call_that_outlives_its_object_destroys_it():
    done = subprocess.run([sys.executable, "-c", LAST_TO_LEAVE], capture_output=True, text=True, timeout=600)
    assert done.stdout == "ended\n" and done.stderr == "" and done.returncode == 0


class Pictures(torch.utils.data.IterableDataset):
    def __init__(self, stream):
        self.stream = stream

    def __iter__(self):
        stream = self.stream if isinstance(self.stream, riffle.Stream) else riffle.open_stream(self.stream)
        return (next(stream).picture for _ in range(8))


def test_a_dataloader_worker_is_told_to_open_its_own_stream():
    shared = torch.utils.data.DataLoader(Pictures(riffle.open_stream(STREAM)), batch_size=4, num_workers=1)
    with pytest.raises(RuntimeError, match="belongs to another process"):
        next(iter(shared))
    own = torch.utils.data.DataLoader(Pictures(STREAM), batch_size=4, num_workers=1)
    assert [batch.shape for batch in own] == [(4, 3, 32, 32)] * 2


OPEN_AT_EXIT = """
import sys, threading, torch, riffle
def forever():
    while True: yield torch.zeros(3, 32, 32, dtype=torch.uint8)
def buffer(): return riffle.ReplayBuffer("fifo", 32, 32, batch=8)
stream = riffle.open_stream("synthetic:"); next(stream)
loaders = [riffle.ReplayLoader(s, buffer(), batch=8) for s in ("synthetic:", forever())]
for loader in loaders: next(loader)
learner = riffle.Learner(forever(), {"augment.size": 32, "model.width": 8, "buffer.capacity": 32, "train.batch": 8})
next(learner)
waiting = riffle.ReplayLoader(f"folder:{sys.argv[1]}?watch=1", buffer(), batch=8)
threading.Thread(target=lambda: next(waiting, None), daemon=True).start()
print("open", flush=True)
"""


def test_threads_end_when_the_interpreter_exits(tmp_path):
    done = subprocess.run([sys.executable, "-c", OPEN_AT_EXIT, tmp_path], capture_output=True, text=True,
                          timeout=600)
    assert done.stdout == "open\n" and done.stderr == "" and done.returncode == 0


LEAK = """
import gc, torch, riffle
def resident():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * 4096
torch.set_num_threads(1)
buffer = riffle.ReplayBuffer("minred", 64, 16, feature_dim=16, batch=16)
def forever():
    while True: yield torch.randint(256, (3, 16, 16), dtype=torch.uint8)
loader = riffle.ReplayLoader(forever(), buffer, batch=16, updates=4, features=lambda p: torch.randn(len(p), 16))
for batch in loader:
    views = riffle.two_views(batch.pictures, size=16, blur=0)
    loader.track(batch, views[:16].flatten(1)[:, :16])
    batch.labels, batch.indices
    if batch.update == 1000: before = resident()
    if batch.update == 11000: break
print(resident() - before)
"""


def test_nothing_leaks_over_ten_thousand_batches():
    done = subprocess.run([sys.executable, "-c", LEAK], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    grown = int(done.stdout)
    assert grown < 10_000 * 100, f"{grown} bytes over 10,000 batches"  # a picture has 768
