"""Runs, encoders, embeddings, probes and riffle's own learner."""

import math

import pytest
import torch
from conftest import pictures, require_refusal

import riffle

CONFIG = {"augment.size": 32, "model": {"stem": "small", "width": 8}, "buffer.capacity": 64,
          "train": {"batch": 16, "max_updates": 12}}
LABELLED = "synthetic:?frames=1&seed=%d&samples=200"


def test_a_run_has_its_metrics_as_columns(run_folder):
    run = riffle.Run(run_folder)
    metrics = run.metrics()
    assert metrics["update"] == [10, 20]
    assert len({len(column) for column in metrics.values()}) == 1
    assert all(math.isfinite(loss) for loss in metrics["loss"])
    assert run.config["train.batch"] == "16"
    assert run.checkpoints() == ["update-000000020"]


def test_an_encoder_is_the_runs_network(run_folder):
    encoder = riffle.load_encoder(run_folder)
    ours = riffle.embed(run_folder, "synthetic:?frames=1&seed=5", samples=40)
    theirs = riffle.embed(encoder, "synthetic:?frames=1&seed=5", samples=40, batch=16)
    torch.testing.assert_close(ours.features, theirs.features, atol=1e-4, rtol=1e-4)
    assert ours.labels == theirs.labels and ours.keys == theirs.keys
    assert encoder.size == 32 and not encoder.training


@pytest.mark.parametrize("arch, features", [("resnet10", 512), ("resnet18", 512), ("resnet50", 2048)])
def test_names_are_torchvisions(arch, features, tmp_path):
    learner = riffle.Learner("synthetic:", {**CONFIG, "model": {"arch": arch}})
    encoder = learner.encoder()
    assert encoder.features == features
    names = list(encoder.state_dict())
    assert names[:2] == ["conv1.weight", "bn1.weight"]
    assert "layer2.0.downsample.0.weight" in names and "layer4.0.bn2.running_var" in names
    views = torch.randn(2, 3, 64, 64)
    assert encoder(views).shape == (2, features)


def test_a_probe_of_a_module_is_that_of_the_run(run_folder):
    streams = LABELLED % 11, LABELLED % 12
    of_run = riffle.probe(run_folder, *streams)
    of_module = riffle.probe(riffle.load_encoder(run_folder), *streams)
    assert 0 <= of_run["linear_top1"] <= of_run["linear_top5"] <= 100
    assert of_run["linear_top1"] == pytest.approx(of_module["linear_top1"], abs=2)
    assert of_run["knn_top1"] == pytest.approx(of_module["knn_top1"], abs=2)


def test_a_learner_resumes_exactly(tmp_path):
    learner = riffle.Learner("synthetic:?frames=4", CONFIG)
    learner.train(5, progress=False)
    torch.save(learner.state_dict(), tmp_path / "learner.pt")
    rest = learner.train(progress=False)
    again = riffle.Learner("synthetic:?frames=4", CONFIG)
    again.load_state_dict(torch.load(tmp_path / "learner.pt"))
    assert again.train(progress=False) == rest
    assert rest[-1]["update"] == 12 == learner.update


def test_a_learner_trains_on_a_stream_of_python():
    photos = list(pictures(128, size=48))
    learner = riffle.Learner(photos, CONFIG)
    reports = list(learner)
    assert len(reports) == 12 and all(math.isfinite(report["loss"]) for report in reports)


def test_progress_is_one_line(capsys):
    riffle.Learner("synthetic:?frames=4", CONFIG).train()
    shown = capsys.readouterr().err
    assert "update 12" in shown.splitlines()[-1] or "update" in shown
    assert shown.endswith("\n")


@pytest.mark.parametrize("use, message", [
    (lambda: riffle.Learner("synthetic:", {"train.bach": 3}), "train.batch"),
    (lambda: riffle.Learner("synthetic:", {"model.arch": "resnet12"}), "resnet1"),
    (lambda: riffle.Run("no/such/run"), "no/such/run"),
    (lambda: riffle.load_encoder("no/such/run"), "no/such/run"),
    (lambda: riffle.embed(torch.nn.Flatten(), "synthetic:", samples=3), "size=224"),
    (lambda: riffle.probe(riffle.ResNet(size=32), LABELLED % 1, LABELLED % 2, recipe="cashed"), "cached"),
])
def test_errors_are_one_line_that_says_what_to_do(use, message):
    require_refusal(use, message)
