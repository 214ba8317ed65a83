"""The nearest-neighbour index, beside the definition."""

import numpy
import pytest
import torch
from conftest import require_refusal

import riffle


def random_features(n, dim, seed=0):
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed))


def by_definition(features, count):
    """Who leaves by MinRed: of the pair at the smallest cosine distance the older end, again and again."""
    unit = torch.nn.functional.normalize(features.double(), dim=1)
    alike = unit @ unit.T
    alike.fill_diagonal_(-2)
    gone = []
    for _ in range(count):
        pair = divmod(int(alike.argmax()), len(features))
        gone.append(min(pair))
        alike[gone[-1]] = -2
        alike[:, gone[-1]] = -2
    return gone


def test_takes_what_the_definition_takes():
    features = random_features(300, 16)
    index = riffle.NearestIndex(300, 16)
    index.set(range(300), features)
    assert index.take(200).slots.tolist() == by_definition(features, 200)
    assert len(index) == 100 and 300 not in index and -1 not in index


def test_follows_changes():
    features = random_features(100, 8)
    index = riffle.NearestIndex(100, 8)
    index.set(range(100), features, ages=range(100))
    index.take(0)
    features[10:30] = random_features(20, 8, seed=1)
    index.set(range(10, 30), features[10:30], ages=range(10, 30))
    assert index.take(50).slots.tolist() == by_definition(features, 50)


@pytest.mark.parametrize("kind", [torch.as_tensor, lambda t: t.numpy(), lambda t: t.half()])
def test_selects_from_tensors_and_arrays(kind):
    features = kind(random_features(50, 8))
    kept = riffle.select(features, keep=20)
    gone = by_definition(torch.as_tensor(features).float(), 30)
    assert type(kept) is type(features)
    assert sorted(set(range(50)) - set(gone)) == kept.tolist()


@pytest.mark.parametrize("policy", ["minred", "merge"])
def test_arrays_give_arrays(policy):
    features = random_features(60, 8)
    index, other = (riffle.NearestIndex(60, 8, policy) for _ in range(2))
    index.set(torch.arange(60), features, ages=torch.arange(60))
    other.set(numpy.arange(60), features.numpy(), ages=numpy.arange(60))
    index.blend(range(10), -features[:10], 0.25)
    other.blend(numpy.arange(10), -features[:10].numpy(), 0.25)
    removed, array = index.take(30), other.take(30)
    for tensor, result in [*zip(removed, array), (index.weights(), other.weights()),
                           (index.distances(), other.distances())]:
        assert isinstance(tensor, torch.Tensor) and isinstance(result, numpy.ndarray)
        assert tensor.numpy().dtype == result.dtype
        numpy.testing.assert_array_equal(tensor.numpy(), result)


def test_arrays_may_lie_in_memory_in_any_way():
    features = random_features(40, 8).double().numpy()
    expected = riffle.select(features, keep=10)
    read_only = features.copy()
    read_only.flags.writeable = False
    backwards = features[::-1].copy()[::-1]
    for given in (read_only, backwards, numpy.asfortranarray(features), features.astype(numpy.float32)):
        numpy.testing.assert_array_equal(riffle.select(given, keep=10), expected)
    assert riffle.select(features.tolist(), keep=10).tolist() == expected.tolist()


def test_merging_hands_weights_on():
    index = riffle.NearestIndex(4, 2, "merge")
    index.weigh([0, 1], [2.0, 3.0])
    index.set([0, 1, 2, 3], [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    removed = index.take(1)
    assert {int(removed.slots), int(removed.into)} == {0, 1}
    assert float(index.weights()[removed.into]) == 5


def test_state_is_exact(tmp_path):
    index = riffle.NearestIndex(60, 8, "merge")
    index.set(range(60), random_features(60, 8))
    index.take(10)
    torch.save(index.state_dict(), tmp_path / "index.pt")
    again = riffle.NearestIndex(60, 8, "merge")
    again.load_state_dict(torch.load(tmp_path / "index.pt"))
    assert torch.equal(index.take(40).slots, again.take(40).slots)


def test_ages_have_64_bits():
    index = riffle.NearestIndex(2, 2)
    index.set([0, 1], torch.ones(2, 2), ages=[2**64 - 1, 2**63])
    assert index.take(1).slots.tolist() == [1]


def test_distances_are_to_the_nearest_other():
    index = riffle.NearestIndex(3, 2)
    index.set([0, 2], [[1.0, 0.0], [0.0, 2.0]])
    numpy.testing.assert_allclose(index.distances().numpy(), [1, 2, 1], atol=1e-5)


@pytest.mark.parametrize("use, message", [
    (lambda index: index.set([0, 4], torch.ones(2, 2)), "slot 4"),
    (lambda index: index.set([0, 0], torch.ones(2, 2)), "twice"),
    (lambda index: index.set([0, 1], torch.ones(2, 3)), r"\[2, 2\], not \[2, 3\]"),
    (lambda index: index.set([0], torch.zeros(1, 2)), "feature"),
    (lambda index: index.set([0], torch.tensor([[float("nan"), 1]])), "feature"),
    (lambda index: index.set([0.5], torch.ones(1, 2)), "whole numbers"),
    (lambda index: index.set(numpy.array([0.5]), torch.ones(1, 2)), "whole numbers"),
    (lambda index: index.set([0], torch.ones(1, 2), ages=[-1]), "negative"),
    (lambda index: index.set([0], torch.ones(1, 2), ages=[2**64]), r"ages must be in \[-2\^63, 2\^64\)"),
    (lambda index: index.set([0], numpy.array([["a", "b"]])), "numbers"),
    (lambda index: index.erase([1]), "slot 1 has no row"),
    (lambda index: index.load_state_dict({}), "state_dict"),
    (lambda index: index.load_state_dict({"index": {}}), "state_dict"),
    (lambda index: index.take(1), "1 of 0"),
    (lambda index: index.weigh([0], [0.0]), "positive"),
    (lambda index: riffle.NearestIndex(4, 2, "fifo"), "minred or merge"),
    (lambda index: riffle.NearestIndex(4, 2, device="cdua"), "cuda"),
    (lambda index: riffle.select(torch.ones(3), keep=1), r"\[n, dim\]"),
    (lambda index: riffle.select(torch.ones(3, 2), keep=4), "4 of 3"),
])
def test_errors_are_one_line_that_says_what_to_do(use, message):
    require_refusal(lambda: use(riffle.NearestIndex(4, 2)), message)
