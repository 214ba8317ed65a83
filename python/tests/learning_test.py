"""Runs, encoders, embeddings, probes and riffle's own learner."""

import json
import math

import pytest
import torch
from conftest import pictures, require_refusal, run_program, train_run

import riffle

CONFIG = {"augment.size": 32, "model": {"stem": "small", "width": 8}, "buffer.capacity": 64,
          "train": {"batch": 16, "max_updates": 12}}
LABELLED = "synthetic:?frames=1&seed=%d&samples=200"


class Pair(torch.nn.Module):
    """An encoder that returns what nobody can embed."""

    def forward(self, given):
        return given, given


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


def test_metrics_pass_over_what_is_damaged(run_folder, tmp_path):
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "config.yaml").write_bytes((run_folder / "config.yaml").read_bytes())
    (damaged / "metrics.jsonl").write_bytes(
        b'{"update": 10, "loss": 1.5, "note": "text", "rate": 3}\n'
        b'{"update": 20, "loss": \n' b"\0\0\0\0\n" b'{"update": 20, "loss": "\xff"}\n' b"[1, 2]\n" b"17\n"
        b'{"loss": 3}\n' b'{"update": "20", "loss": 3}\n' b'{"update": 20, "loss": NaN}\n' b"\n"
        + b"[" * 100000 + b"\n" b'{"update": 30, "loss": null}\n' b'{"update": 40, "lo')
    metrics = riffle.Run(damaged).metrics()
    assert list(metrics) == ["update", "loss", "rate"] and metrics["update"] == [10, 30]
    assert metrics["loss"][0] == 1.5 and math.isnan(metrics["loss"][1])
    assert metrics["rate"][0] == 3 and math.isnan(metrics["rate"][1])


@pytest.mark.parametrize("arch, features", [("resnet10", 512), ("resnet18", 512), ("resnet50", 2048)])
def test_an_encoder_has_its_architectures_width(arch, features):
    encoder = riffle.Learner("synthetic:", {**CONFIG, "model": {"arch": arch}}).encoder()
    assert encoder.features == features
    assert encoder(torch.randn(2, 3, 64, 64)).shape == (2, features)


@pytest.mark.parametrize("arch", ["resnet18", "resnet50"])
def test_an_encoder_is_torchvisions_network(arch, torchvision):
    encoder = riffle.Learner("synthetic:", {**CONFIG, "model": {"arch": arch}}).encoder()
    theirs = getattr(torchvision.models, arch)(weights=None)
    theirs.fc = torch.nn.Identity()
    shapes = {name: value.shape for name, value in encoder.state_dict().items()}
    assert shapes == {name: value.shape for name, value in theirs.state_dict().items()}
    theirs.load_state_dict(encoder.state_dict(), strict=True)
    views = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(encoder(views), theirs.eval()(views), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("arch, stem, size", [("vit-s", "small", 16), ("vit-b", "stride2", 32)])
def test_a_transformer_is_the_runs_network(arch, stem, size, tmp_path):
    train_run(tmp_path / "run", "--arch", arch, "--stem", stem, "--size", str(size), "--width", "4",
              "--max-updates", "2", "--set", "model.projector_out=16")
    encoder = riffle.load_encoder(tmp_path / "run")
    assert isinstance(encoder, riffle.VisionTransformer) and not encoder.training
    assert encoder.size == size and encoder.features == 4 * {"vit-s": 6, "vit-b": 12}[arch]
    for other in (size, 2 * size):  # position embeddings are resized
        ours = riffle.embed(tmp_path / "run", "synthetic:?frames=1&seed=5", samples=20, size=other)
        theirs = riffle.embed(encoder, "synthetic:?frames=1&seed=5", samples=20, size=other)
        torch.testing.assert_close(ours.features, theirs.features, atol=1e-4, rtol=1e-4)


def test_a_transformer_has_timms_names_and_learns():
    encoder = riffle.VisionTransformer("vit-s")
    names = encoder.state_dict()
    assert len(names) == 150 and sum(value.numel() for value in names.values()) == 21665664
    assert names["pos_embed"].shape == (1, 197, 384) and names["cls_token"].shape == (1, 1, 384)
    assert names["patch_embed.proj.weight"].shape == (384, 3, 16, 16)
    assert names["blocks.11.attn.qkv.weight"].shape == (1152, 384) and "blocks.0.mlp.fc2.bias" in names
    small = riffle.VisionTransformer("vit-s", stem="small", width=4)
    small(pictures(2, size=16)).sum().backward()
    assert all(parameter.grad is not None for parameter in small.parameters())


def test_a_learners_transformer_is_a_module():
    learner = riffle.Learner("synthetic:", {**CONFIG, "model": {"arch": "vit-s", "stem": "small", "width": 4}})
    assert learner.encoder()(pictures(2)).shape == (2, 24)


def test_a_transformer_from_elsewhere_embeds(tmp_path):
    theirs = riffle.VisionTransformer("vit-s", stem="stride2").eval()
    torch.save(theirs.state_dict(), tmp_path / "theirs.pth")
    ours = riffle.embed(tmp_path / "theirs.pth", "synthetic:?frames=1", samples=2, size=32)
    expected = riffle.embed(theirs, "synthetic:?frames=1", samples=2, size=32)
    torch.testing.assert_close(ours.features, expected.features, atol=1e-4, rtol=1e-4)


def test_a_probe_of_a_module_is_that_of_the_run(run_folder):
    streams = LABELLED % 11, LABELLED % 12
    of_run = riffle.probe(run_folder, *streams)
    of_module = riffle.probe(riffle.load_encoder(run_folder), *streams)
    assert 0 <= of_run["linear_top1"] <= of_run["linear_top5"] <= 100
    assert of_run["linear_top1"] == pytest.approx(of_module["linear_top1"], abs=2)
    assert of_run["knn_top1"] == pytest.approx(of_module["knn_top1"], abs=2)


def test_a_probe_of_a_run_is_that_of_the_program(tmp_path):
    run = tmp_path / "run"
    train_run(run, "--stem", "small", "--size", "16", "--width", "8", "--max-updates", "4", "--set",
              "stream.size=32")
    streams = [LABELLED % seed + "&size=32" for seed in (11, 12)]
    ours = riffle.probe(run, *streams)
    theirs = json.loads(run_program("probe", run, "--train", streams[0], "--val", streams[1],
                                    "--trained-only", "--json"))
    assert all(ours[name] == theirs[name] for name in ("linear_top1", "linear_top5", "knn_top1", "recipe"))
    assert ours != riffle.probe(run, *streams, size=16), "of whole pictures, not of their centres"


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


def test_embedding_leaves_each_part_of_a_module_in_its_mode():
    encoder = riffle.ResNet("resnet10", stem="small", width=4, size=16).train()
    frozen = [part for part in encoder.modules() if isinstance(part, torch.nn.BatchNorm2d)]
    for norm in frozen:
        norm.eval()
    riffle.embed(encoder, "synthetic:", samples=3)
    assert encoder.training and not any(norm.training for norm in frozen)


def test_an_encoder_of_16_bits_takes_pictures():
    encoder = riffle.ResNet("resnet10", stem="small", width=4).to(torch.bfloat16).eval()
    assert encoder(pictures(2, size=16)).dtype == torch.bfloat16


@pytest.mark.parametrize("use, message", [
    (lambda: riffle.Learner("synthetic:", {"train.bach": 3}), "train.batch"),
    (lambda: riffle.Learner("synthetic:", {"model.arch": "resnet12"}), "resnet1"),
    (lambda: riffle.ResNet("resnet12"), "resnet10, resnet18, resnet50"),
    (lambda: riffle.ResNet(stem="smal"), "standard, small, stride2"),
    (lambda: riffle.ResNet(width=0), "width must be at least 1"),
    (lambda: riffle.VisionTransformer("vit-l"), "vit-s, vit-b"),
    (lambda: riffle.VisionTransformer(stem="patch14"), "standard, stride2, small"),
    (lambda: riffle.VisionTransformer()(pictures(1, size=40)), "40 x 40 px for patches of 16 px"),
    (lambda: riffle.Run("no/such/run"), "no/such/run"),
    (lambda: riffle.load_encoder("no/such/run"), "no/such/run"),
    (lambda: riffle.embed(torch.nn.Flatten(), "synthetic:", samples=3), "size=224"),
    (lambda: riffle.embed(torch.nn.Flatten(), "synthetic:", samples=-1, size=8), "samples must be at least 0"),
    (lambda: riffle.probe("no/such/run", LABELLED % 1, LABELLED % 2, samples=-1), "samples must be at least 0"),
    (lambda: riffle.embed(Pair(), "synthetic:", samples=3, size=8), r"a tensor \[n, dim\], not tuple"),
    (lambda: riffle.probe(riffle.ResNet(size=32), LABELLED % 1, LABELLED % 2, recipe="cashed"), "cached"),
])
def test_errors_are_one_line_that_says_what_to_do(use, message):
    require_refusal(use, message)
