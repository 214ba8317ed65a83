"""The loader: batches, features, resuming."""

import pytest
import torch
from conftest import pictures, require_refusal

import riffle
from riffle import _riffle
from riffle._pictures import channels_last
from riffle._settings import settings

STREAM = "synthetic:?frames=4&size=32"


def make(policy="minred", stream=STREAM, updates=3, seed=0, **options):
    buffer = riffle.ReplayBuffer(policy, capacity=32, size=32, feature_dim=4, batch=8, seed=seed)
    return riffle.ReplayLoader(stream, buffer, batch=8, updates=updates, seed=seed, **options)


def features_of(given):
    """Stands for a network: a function of the pictures alone."""
    return given.float().mean((2, 3)).repeat(1, 2)[:, :4] + 1


def advance(loader, n):
    batches = []
    for _ in range(n):
        batches.append(next(loader))
        loader.track(batches[-1], features_of(batches[-1].pictures))
    return batches


def test_draws_k_times_for_each_stream_batch():
    loader = make(stream=STREAM + "&samples=64")
    batches = list(loader)
    assert [batch.update for batch in batches] == list(range(15))  # (64 - 32) / 8 + 1 times 3
    assert loader.samples_seen == 64


def test_features_on_arrival_are_asked_of_python():
    sizes = []

    def features(given):
        sizes.append(tuple(given.shape))
        return features_of(given)

    loader = make(features=features)
    next(loader)
    assert sizes == [(8, 3, 32, 32)] * 4
    assert loader._buffer.stats()["tracked_share"] == 1


def test_what_features_raise_passes_through():
    def features(given):
        raise ZeroDivisionError("no network")

    with pytest.raises(ZeroDivisionError, match="no network"):
        next(make(features=features))


@pytest.mark.parametrize("policy", ["merge", "minred", "reservoir", "fifo", "none"])
@pytest.mark.parametrize("stop", [1, 7, 12])
def test_resumes_exactly(policy, stop, tmp_path):
    options = {"updates": 1 if policy == "none" else 3, "features": features_of}
    loader = make(policy, **options)
    advance(loader, stop)
    torch.save(loader.state_dict(), tmp_path / "loader.pt")
    rest = advance(loader, 9)

    again = make(policy, **options)
    again.load_state_dict(torch.load(tmp_path / "loader.pt"))
    for one, other in zip(rest, advance(again, 9), strict=True):
        assert one.update == other.update
        assert one.indices == other.indices
        assert torch.equal(one.pictures, other.pictures)


def test_resumes_in_a_stream_of_python():
    given = list(pictures(200, seed=3))
    loader = make(stream=given)
    advance(loader, 5)
    again = make(stream=given)
    again.load_state_dict(loader.state_dict())
    assert [b.indices for b in advance(loader, 9)] == [b.indices for b in advance(again, 9)]


CONFIG = {"augment.size": 32, "buffer": {"policy": "minred", "capacity": 64, "features": "draw"},
          "model": {"stem": "small", "width": 8, "projector_out": 16, "predictor_hidden": 8},
          "train": {"batch": 16, "updates": 3, "max_updates": 20, "schedule": "constant", "lr": 0.05}}


def test_trains_on_the_very_batches_of_riffles_own_learner():
    reports = riffle.Learner(STREAM, CONFIG).train(20, progress=False)

    buffer = riffle.ReplayBuffer("minred", capacity=64, size=32, feature_dim=16, batch=16)
    loader = riffle.ReplayLoader(STREAM, buffer, batch=16, updates=3)
    network = _riffle.NetworkUpdates(settings(CONFIG))
    losses = []
    while len(losses) < 20:
        batch = next(loader)
        features = network.update(channels_last(batch.pictures), batch.update, reports[0]["lr"])
        losses.append(network.loss())
        loader.track(batch, features)
    assert losses == [report["loss"] for report in reports]


def test_a_live_loader_does_not_wait_for_its_stream():
    loader = make("fifo", clock="live", updates=1)
    assert len(advance(loader, 20)) == 20


def test_fresh_samples_come_first():
    buffer = riffle.ReplayBuffer("fifo", capacity=32, size=32, feature_dim=4, batch=8)
    loader = riffle.ReplayLoader(STREAM, buffer, batch=8, updates=1, fresh=0.25)
    for _ in range(5):
        batch = next(loader)
        newest = range(loader.samples_seen - 8, loader.samples_seen)
        assert [index in newest for index in batch.indices] == [True] * 2 + [False] * 6


def test_stop_ends_the_iteration():
    loader = make()
    advance(loader, 2)
    loader.stop()
    assert list(loader) == []


@pytest.mark.parametrize("use, message", [
    (lambda: riffle.ReplayLoader(STREAM, riffle.ReplayBuffer("fifo", 32, 32, batch=8), batch=16),
     "8 samples at once"),
    (lambda: riffle.ReplayLoader(STREAM, riffle.ReplayBuffer("fifo", 8, 32, batch=8), batch=16,
                                 stream_batch=8), "too small"),
    (lambda: next(make(stream=STREAM + "&samples=20")), "ended after 20 samples"),
    (lambda: make(updates=0), "train.updates"),
    (lambda: make(clock="fast"), "lockstep"),
    (lambda: next(make(features=lambda given: torch.ones(8, 3))), r"\[8, 4\], not \[8, 3\]"),
    (lambda: next(make(stream=[torch.zeros(3, 9)])), "uint8 tensor"),
    (lambda: next(make(features=lambda given: None)), r"\[8, 4\], not NoneType"),
    (lambda: make(seed=-1), r"seed must be in \[0, 2\^64\)"),
])
def test_errors_are_one_line_that_says_what_to_do(use, message):
    require_refusal(use, message)


def test_a_stream_has_one_reader():
    stream = riffle.open_stream(STREAM)
    make(stream=stream)
    with pytest.raises(riffle.Error, match="open it again"):
        next(stream)


def test_state_is_for_new_loaders():
    loader = make()
    state = loader.state_dict()
    next(loader)
    with pytest.raises(riffle.Error, match="new loader"):
        loader.load_state_dict(state)
