"""Two views."""

import pytest
import torch
from conftest import pictures, require_refusal

import riffle


def test_a_view_is_a_function_of_seed_step_and_picture():
    given = pictures(4, size=40)
    views = riffle.two_views(given, size=32, seed=1, step=2)
    assert views.shape == (8, 3, 32, 32) and views.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(views, riffle.two_views(given, size=32, seed=1, step=2))
    assert not torch.equal(views, riffle.two_views(given, size=32, seed=1, step=3))
    assert not torch.equal(views, riffle.two_views(given, size=32, seed=2, step=2))
    first, second = views.chunk(2)
    assert not torch.equal(first, second)


def test_torchs_seed_repeats_views():
    given = pictures(4)
    torch.manual_seed(5)
    once = riffle.two_views(given, size=32)
    torch.manual_seed(5)
    assert torch.equal(once, riffle.two_views(given, size=32))
    assert not torch.equal(once, riffle.two_views(given, size=32))


def test_nothing_random_is_the_normalised_picture():
    given = pictures(2)
    plain = dict(crop_min=1, flip=0, jitter=0, grayscale=0, blur=0)
    views = riffle.two_views(given, size=32, step=0, **plain)
    mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
    std = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
    expected = (given / 255 - mean) / std
    torch.testing.assert_close(views, torch.cat([expected, expected]), atol=1e-5, rtol=0)


def test_layout_in_memory_does_not_matter():
    given = pictures(4)
    views = riffle.TwoViews(32)
    assert torch.equal(views(given, step=0),
                       views(given.contiguous(memory_format=torch.channels_last), step=0))


@pytest.mark.parametrize("use, message", [
    (lambda: riffle.two_views(pictures(2).float()), "not float32"),
    (lambda: riffle.two_views(pictures(2)[0]), r"\[n, 3, height, width\]"),
    (lambda: riffle.TwoViews(32, blurr=0), "blur"),
    (lambda: riffle.TwoViews(32, temporal=4), "riffle.Learner takes augment.temporal"),
    (lambda: riffle.TwoViews(32, crop_min=2), "crop"),
    (lambda: riffle.TwoViews(32, seed=2**64), r"seed must be in \[0, 2\^64\)"),
    (lambda: riffle.TwoViews(32)(torch.zeros(2, 3, 0, 5, dtype=torch.uint8), 0), r"\[n, 3, height, width\]"),
])
def test_errors_are_one_line_that_says_what_to_do(use, message):
    require_refusal(use, message)
