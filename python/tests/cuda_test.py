"""Buffer, loader, views and index on a GPU, beside the CPU."""

import pytest
import torch
from conftest import pictures

import riffle
from riffle import _build

pytestmark = pytest.mark.skipif(not (_build.CUDA and torch.cuda.is_available()),
                                reason="needs a GPU and a build for it")


def random_features(n, dim, seed=0):
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("policy", ["merge", "minred", "reservoir", "fifo"])
def test_a_buffer_keeps_what_one_on_the_cpu_keeps(policy):
    batches = []
    for device in ("cpu", "cuda"):
        buffer = riffle.ReplayBuffer(policy, capacity=64, size=32, feature_dim=16, batch=32, device=device)
        for i in range(8):
            buffer.insert(pictures(32, seed=i).to(device), random_features(32, 16, seed=i).to(device))
            buffer.track(buffer.sample(16), random_features(16, 16, seed=100 + i).to(device))
        batches.append(buffer.sample(64))
        assert buffer.device.type == device and batches[-1].pictures.device.type == device
    assert batches[0].indices == batches[1].indices
    assert torch.equal(batches[0].pictures, batches[1].pictures.cpu())


def test_views_are_those_of_the_cpu_up_to_rounding():
    given = pictures(16, size=48)
    views = riffle.two_views(given.cuda(), size=32, seed=1, step=2)
    assert views.device.type == "cuda" and views.is_contiguous(memory_format=torch.channels_last)
    difference = (views.cpu() - riffle.two_views(given, size=32, seed=1, step=2)).abs()
    assert difference.mean() < 1e-5


@pytest.mark.parametrize("policy", ["minred", "merge"])
def test_an_index_takes_what_one_on_the_cpu_takes(policy):
    taken = []
    for device in ("cpu", "cuda"):
        index = riffle.NearestIndex(500, 32, policy, device)
        index.set(range(500), random_features(500, 32).to(device))
        index.blend(range(100), random_features(100, 32, seed=1).to(device), 0.5)
        taken.append(index.take(300))
        assert taken[-1].slots.device.type == "cpu"
    assert torch.equal(taken[0].slots, taken[1].slots) and torch.equal(taken[0].into, taken[1].into)


def test_selects_from_features_on_a_gpu():
    features = random_features(200, 16)
    assert torch.equal(riffle.select(features.cuda(), keep=50), riffle.select(features, keep=50))


def test_a_loader_gives_the_batches_of_one_on_the_cpu():
    def batches(device):
        buffer = riffle.ReplayBuffer("reservoir", capacity=64, size=32, batch=16, device=device)
        loader = riffle.ReplayLoader("synthetic:?frames=4&size=32", buffer, batch=16, updates=2)
        return [next(loader) for _ in range(10)]

    for one, other in zip(batches("cpu"), batches("cuda"), strict=True):
        assert one.indices == other.indices and torch.equal(one.pictures, other.pictures.cpu())
