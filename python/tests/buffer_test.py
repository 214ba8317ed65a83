"""The replay buffer on its own."""

import os

import numpy
import pytest
import torch
from conftest import pictures, require_refusal

import riffle


def filled(policy="fifo", **options):
    buffer = riffle.ReplayBuffer(policy, capacity=16, size=32, feature_dim=4, batch=8, **options)
    for i in range(4):
        features = torch.randn(8, 4, generator=torch.Generator().manual_seed(i))
        buffer.insert(pictures(8, seed=i), features, clips=[i] * 8, labels=[f"batch {i}"] * 8)
    return buffer


def test_fifo_keeps_the_newest():
    assert filled().label_counts() == {"batch 2": 8, "batch 3": 8}


def test_gives_the_very_pictures_that_went_in():
    buffer = filled()
    batch = buffer.sample(16)
    given = torch.cat([pictures(8, seed=2), pictures(8, seed=3)])
    for picture, index in zip(batch.pictures, batch.indices):
        assert torch.equal(picture, given[index - 16])
    assert torch.equal(buffer.pictures(batch.slots), batch.pictures)


def test_a_batch_is_not_changed_by_what_enters_later():
    buffer = filled()
    batch = buffer.sample(16)
    before = batch.pictures.clone()
    for i in range(4):
        buffer.insert(pictures(8, seed=10 + i))
    assert torch.equal(batch.pictures, before)


def test_minred_forgets_what_is_tracked_to_be_alike():
    buffer = riffle.ReplayBuffer("minred", capacity=16, size=32, feature_dim=16, batch=8, tie="older")
    buffer.insert(pictures(8), torch.eye(16)[:8])
    buffer.insert(pictures(8), torch.eye(16)[8:])
    batch = buffer.sample(16)
    features = torch.eye(16)[batch.indices]
    twins = batch.indices.index(3), batch.indices.index(9)
    features[twins[1]] = features[twins[0]]
    for _ in range(20):  # a tracked feature moves by half
        buffer.track(batch, features)
    buffer.insert(pictures(1), -torch.ones(1, 16))
    assert 3 not in buffer.sample(16).indices


def test_labels_need_not_be_utf_8():
    buffer = riffle.ReplayBuffer("fifo", capacity=8, size=32, feature_dim=4, batch=8)
    label = os.fsdecode(b"caf\xe9")
    buffer.insert(pictures(8), labels=numpy.array([label] * 8), clips=torch.arange(8))
    assert buffer.label_counts() == {label: 8}
    batch = buffer.sample(8)
    assert set(batch.labels) == {label} and batch.clips == batch.indices


def test_what_was_not_inserted_is_not_counted():
    buffer = riffle.ReplayBuffer("minred", capacity=16, size=32, feature_dim=4, batch=8)
    for refused in ({"labels": ["\ud800"] * 8}, {"features": torch.full((8, 4), float("nan"))}):
        with pytest.raises(riffle.Error):
            buffer.insert(pictures(8), **refused)
    buffer.insert(pictures(8), torch.randn(8, 4))
    assert sorted(buffer.sample(8).indices) == list(range(8))
    again = riffle.ReplayBuffer("minred", capacity=16, size=32, feature_dim=4, batch=8)
    again.load_state_dict(buffer.state_dict())
    again.insert(pictures(8), torch.randn(8, 4))
    assert sorted(again.sample(16).indices) == list(range(16))


@pytest.mark.parametrize("policy", ["merge", "minred", "reservoir", "fifo"])
def test_state_is_exact(policy, tmp_path):
    buffer = filled(policy)
    buffer.track(buffer.sample(8), torch.ones(8, 4))
    torch.save(buffer.state_dict(), tmp_path / "buffer.pt")
    again = riffle.ReplayBuffer(policy, capacity=16, size=32, feature_dim=4, batch=8)
    again.load_state_dict(torch.load(tmp_path / "buffer.pt"))
    for i in range(5):
        one, other = buffer.sample(8), again.sample(8)
        assert torch.equal(one.pictures, other.pictures) and one.labels == other.labels
        for each in (buffer, again):
            each.insert(pictures(8, seed=20 + i), torch.full((8, 4), float(i + 1)))


def test_capacity_is_samples_or_bytes():
    small = riffle.ReplayBuffer("fifo", capacity="1MiB", size=32, batch=16)
    assert 100 < small.capacity < 2**20 / (32 * 32 * 3)


def test_features_may_need_a_gradient():
    buffer = filled("minred")
    buffer.track(buffer.sample(8), torch.randn(8, 4, requires_grad=True))


@pytest.mark.parametrize("use, message", [
    (lambda: riffle.ReplayBuffer("minrad"), "minred"),
    (lambda: riffle.ReplayBuffer(capacity=64, size=32, batch=8, momentm=0.5), "momentum"),
    (lambda: riffle.ReplayBuffer(capacity="64 parsecs"), "64 parsecs"),
    (lambda: riffle.ReplayBuffer(capacity="100000GiB"), "memory"),
    (lambda: riffle.ReplayBuffer(device="cdua"), "cuda"),
    (lambda: filled().insert(pictures(8, size=16)), "32 x 32"),
    (lambda: filled().insert(pictures(9)), "batch=8"),
    (lambda: filled().insert(pictures(8).float()), "uint8"),
    (lambda: filled().insert(pictures(8), torch.ones(8, 5)), r"\[8, 4\], not \[8, 5\]"),
    (lambda: filled().insert(pictures(8), labels=["one"]), "1 labels for 8"),
    (lambda: filled().insert(pictures(8), labels=[3] * 8), "labels must be strings, not int"),
    (lambda: filled().insert(pictures(8), clips=[0.5] * 8), "clips must be a list of whole numbers"),
    (lambda: filled().insert(pictures(8), clips=[2**63] * 8), r"clips must be in \[-2\^63, 2\^63\)"),
    (lambda: filled().insert(pictures(8), labels=["\ud800"] * 8), r"'\\ud800' has half of a character"),
    (lambda: filled(draw="\ud800"), r"'\\ud800' has half of a character"),
    (lambda: riffle.ReplayBuffer(device="\ud800"), r"'\\ud800' has half of a character"),
    (lambda: filled().insert(torch.zeros(8, 3, 0, 0, dtype=torch.uint8)), r"\[n, 3, height, width\]"),
    (lambda: filled().track(filled().sample(4), None), "features must be"),
    (lambda: filled(seed=-1), r"seed must be in \[0, 2\^64\), not -1"),
    (lambda: riffle.ReplayBuffer("fifo", capacity=8, size=0), "size must be at least 1, not 0"),
    (lambda: riffle.ReplayBuffer("fifo", capacity=8, batch=0), "batch must be at least 1, not 0"),
    (lambda: filled().sample(17), "17 of 16"),
    (lambda: filled().pictures([99]), "slot 99"),
    (lambda: filled().pictures([2**63]), r"slots must be in \[-2\^63, 2\^63\)"),
    (lambda: filled().load_state_dict({}), "state_dict"),
    (lambda: filled().load_state_dict({"buffer": {}}), "state_dict"),
    (lambda: filled().pictures(["first"]), "slots must be a list of whole numbers"),
    (lambda: filled().track(filled().sample(4), torch.ones(5, 4)), r"\[4, 4\]"),
    (lambda: filled("minred").insert(pictures(8), torch.full((8, 4), float("nan"))), "not finite"),
    (lambda: riffle.ReplayBuffer("fifo", capacity=8, size=16, batch=8).load_state_dict(
        filled().state_dict()), "capacity|saved state"),
])
def test_errors_are_one_line_that_says_what_to_do(use, message):
    require_refusal(use, message)
