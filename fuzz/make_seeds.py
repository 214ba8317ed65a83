#!/usr/bin/env python3
"""Writes the valid inputs that fuzzing starts from to fuzz/corpus: a few small files a target.

    python fuzz/make_seeds.py PROGRAM      # PROGRAM: a riffle, for the files that only it writes

Films (fuzz/corpus/film) come from make_video() of riffle/stream/testing/generated_video.h instead, and
positions of shapes from the streams that read_position() of fuzz/streams.cc opens, after seven samples.
Inputs that once were findings stand beside the seeds; this script leaves them alone.
"""

import gzip
import io
import json
import lzma
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import time

import torch
from PIL import Image

CORPUS = pathlib.Path(__file__).parent / "corpus"


def put(target, name, content):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def picture(mode="RGB", size=(12, 9)):
    ramp = Image.new("RGB", size)
    ramp.putdata([(x * 20 % 256, y * 27 % 256, (x * y) % 256) for y in range(size[1]) for x in range(size[0])])
    return ramp.convert(mode)


def encoded(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def exif(orientation):
    tags = Image.Exif()
    tags[0x0112] = orientation
    return tags.tobytes()


def pictures():
    put("jpeg", "plain", encoded(picture(), "JPEG"))
    put("jpeg", "progressive", encoded(picture(), "JPEG", progressive=True, exif=exif(6)))
    put("jpeg", "grey", encoded(picture("L"), "JPEG"))
    put("jpeg", "cmyk", encoded(picture("CMYK"), "JPEG", exif=exif(3)))
    put("png", "rgb", encoded(picture(), "PNG", exif=exif(8)))
    put("png", "alpha", encoded(picture("RGBA"), "PNG"))
    put("png", "palette", encoded(picture("P"), "PNG", transparency=3))
    put("png", "one_bit", encoded(picture("1"), "PNG"))
    put("png", "sixteen_bits", encoded(picture("I;16"), "PNG"))
    put("still", "lossy.webp", encoded(picture(), "WEBP"))
    put("still", "lossless.webp", encoded(picture("RGBA"), "WEBP", lossless=True))
    put("still", "plain.tiff", encoded(picture(), "TIFF"))
    put("still", "packed.tiff", encoded(picture("L"), "TIFF", compression="tiff_lzw"))
    put("still", "deflated.tiff", encoded(picture(), "TIFF", compression="tiff_adobe_deflate"))
    put("still", "plain.bmp", encoded(picture(), "BMP"))
    put("still", "palette.bmp", encoded(picture("P"), "BMP"))
    frames = [picture("P"), picture("P").transpose(Image.Transpose.ROTATE_180)]
    put("still", "moving.gif", encoded(frames[0], "GIF", save_all=True, append_images=frames[1:]))
    put("still", "heic", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic")
    for order in "<>":
        tag = struct.pack(order + "HHIHH", 0x0112, 3, 1, 6, 0)
        block = (b"II" if order == "<" else b"MM") + struct.pack(order + "HIH", 42, 8, 1) + tag
        put("exif", "little" if order == "<" else "big", block + struct.pack(order + "I", 0))


def shards():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        members = [("cat/1.png", encoded(picture(size=(3, 2)), "PNG")), ("cat/1.cls", b"3\n"),
                   ("dog/2.json", b'{"label": "dog"}'), ("dog/2.jpg", encoded(picture("L", (3, 2)), "JPEG")),
                   ("../out.jpg", b"x")]
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    plain = out.getvalue()[:6144]
    put("shard", "ustar.tar", plain)
    put("shard", "gzip.tar.gz", gzip.compress(plain, mtime=0))
    put("shard", "xz.tar.xz", lzma.compress(plain))
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        member = tarfile.TarInfo("katze/größe " + "x" * 110 + ".png")
        member.size = 70
        tar.addfile(member, io.BytesIO(encoded(picture(size=(1, 1)), "PNG").ljust(70, b"\0")))
    put("shard", "pax.tar", out.getvalue()[:3072])


def texts():
    put("uri", "folder", "folder:/data/photos%3F?order=time&label=dir&watch=1&size=64")
    put("uri", "video", "video:films/*.mp4?fps=2.5&size=32")
    put("uri", "bare", "synthetic:")
    put("shapes", "clips", "clips:length=64,size=32,limit:samples=10000")
    put("shapes", "list", "lifelong:permutation=3,1,4,2,share=0.5,loop")
    put("shapes", "mix", "mix:folder:photos?order=time,share=0.2")
    # After two pictures of each source of fuzz/source_positions.cc. There "@" stands for their folder.
    for which, (name, position) in enumerate((
            ("folder", "name 2 0 a/2.png"), ("time", "time 2 1700000000000000000 a/2.png"),
            ("watch", "name 2 watch 1700000000000000000 0 0 a/2.png b/3.png"), ("shards", "name 2 0 @/shards/0.tar 4096 0"),
            ("video", "name 2 @/films/0.mkv 1 40 4076332074051864351"), ("urls", "1 1 25"))):
        put("source_position", name, bytes([which]) + position.encode())
    put("url_list", "plain", "# pictures\nhttp://a.example/1.jpg\tcat\nhttps://b.example/2.png dog\n\nnot a url\n")
    put("wordnet", "nouns", "  1 This software\n"
        "00001740 03 n 01 entity 0 003 ~ 00001930 n 0000 ~ 00002137 n 0000 ~ 04424418 n 0000 | that\n"
        "00001930 03 n 01 physical_entity 0 001 @ 00001740 n 0000 | an entity\n"
        "00002137 03 n 02 abstraction 0 abstract_entity 0 002 @ 00001740 n 0000 ~i 00001930 n 0000 | a\n")
    put("labels", "list", "cat\tn1\ndog\r\n\nfish\n")
    put("labels", "json", '{"label": "cat", "more": [1, 2.5, {"label": null}]}\nb')
    put("labels", "number", '{"label": 7}\n8')


def tensors():
    def file(about, data, metadata=None):
        if metadata:
            about = {"__metadata__": metadata, **about}
        header = json.dumps(about).encode()
        return struct.pack("<Q", len(header)) + header + data

    put("safetensors", "two", file({"a": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]},
                                    "b": {"dtype": "I64", "shape": [1], "data_offsets": [8, 16]}}, bytes(16), {"k": "v"}))
    put("safetensors", "kinds", file({kind: {"dtype": kind, "shape": [], "data_offsets": [8 * i, 8 * i + size]}
                                      for i, (kind, size) in enumerate([("F64", 8), ("I64", 8)])}, bytes(16)))
    put("safetensors", "empty", file({}, b""))
    weights = {"a": torch.arange(6.0).reshape(2, 3).t(), "b": torch.ones(2, dtype=torch.bfloat16)}
    for name, zipped in (("zip", True), ("before-zip", False)):
        saved = io.BytesIO()
        torch.save({"epoch": 3, "state_dict": weights}, saved, _use_new_zipfile_serialization=zipped)
        put("torch_file", name, saved.getvalue())


def runs(program):
    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        def riffle(*arguments):
            subprocess.run([program, "-q", *arguments], check=True, cwd=folder)

        network = ["--size", "16", "--arch", "resnet10", "--stem", "stride2", "--width", "1"]
        riffle("train", "--run", "run", "--stream", "synthetic:?frames=8&size=16", *network, "--batch", "4", "--capacity",
               "8", "--updates", "2", "--max-updates", "4", "--set", "model.projector_out=4", "--set",
               "model.projector_hidden=4", "--set", "model.predictor_hidden=2", "--set", "metrics.every=1")
        riffle("export", "run", "--out", "weights.safetensors")
        run = folder / "run"
        put("manifest", "whole", (run / "checkpoints/update-000000004.json").read_bytes())
        put("metrics", "whole", (run / "metrics.jsonl").read_bytes())
        put("status", "status", json.dumps({"time": 1.5e9, "state": "training", "update": 4, "samples_used": 16,
                                         "samples_delivered": 24, "seconds_since_sample": 0.5, "buffer_size": 8,
                                         "buffer_capacity": 8}))
        put("config", "whole", (run / "config.yaml").read_bytes())
        put("weights", "resnet10", (folder / "weights.safetensors").read_bytes())
        put("state_file", "whole", (run / "checkpoints/update-000000004.safetensors").read_bytes())
        selection(program, folder)
    finally:
        shutil.rmtree(folder)
    put("metrics", "null", '{"update":1,"loss":null}\n{"update":2.5,"loss":1e400}\n{"update":7')
    put("status", "probes", json.dumps({"update": 5, "linear_top1": 1.5, "linear_top5": 2, "knn_top1": 3, "recipe": "r",
                                        "train": "synthetic:", "val": "synthetic:"}) + "\n")
    put("config", "dotted", "train.batch: 64\nbuffer: {policy: fifo, capacity: 128}\nstream.uri: 'folder:photos'\n")
    put("config", "aliases", "train: &t {batch: 8}\nbuffer.capacity: 16\n")
    # Where three pictures of six bytes are, then a segment that holds them.
    places = b"".join(struct.pack("<qq", 1, record) for record in range(3))
    segment = b"riffle-pictures\n" + struct.pack("<QQ", 1, 6)
    segment += b"".join(struct.pack("<QQ", arrival, 0) + bytes([arrival] * 6) for arrival in range(3))
    put("picture_log", "three", places + segment)
    put("repeats", "chain", "3 0 a.jpg\n5 4 b.jpg\n4 1 c%20d.jpg\n")


def selection(program, folder):
    """A pass of curate that was stopped, with the settings of fuzz/curate_files.cc."""
    stream, slowly = "synthetic:?frames=2&size=16&classes=4&samples=16", "throttle:rate=10"
    curating = subprocess.Popen([program, "curate", stream, "--shape", slowly, "--encoder", "weights.safetensors",
                                 "--keep", "2", "--per", "label", "--batch", "4", "--assignments", "--out", "out"],
                                cwd=folder, stderr=subprocess.PIPE, text=True)
    next(line for line in curating.stderr if line.startswith("read "))
    time.sleep(0.9)  # a second batch
    curating.send_signal(signal.SIGTERM)
    curating.wait()
    state = (folder / "out/state.safetensors").read_bytes()
    size = struct.unpack("<Q", state[:8])[0]
    about = json.loads(state[8:8 + size])
    said = about["__metadata__"]
    said["settings"] = said["settings"].replace(slowly, "")
    header = json.dumps(about, separators=(",", ":")).encode()
    put("curate_state", "whole", struct.pack("<Q", len(header)) + header + state[8 + size:])
    put("repeats", "pass", (folder / "out/repeats.log").read_bytes())


def requests():
    put("http_request", "page", "GET / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n\r\n")
    put("http_request", "runs", "GET /data/runs HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    put("http_request", "token", "GET /data/runs HTTP/1.1\r\nHost: a.example\r\n"
        "Authorization: Bearer 0123456789abcdef0123456789abcdef\r\n\r\n")
    put("http_request", "run", "GET /data/kept?run=%2e%2e%2fsecret HTTP/1.1\r\nHost: localhost\r\n"
        "Accept-Encoding: gzip\r\nRange: bytes=0-9\r\n\r\n")
    put("http_request", "body", "POST /data/runs HTTP/1.1\r\nHost: [::1]\r\nTransfer-Encoding: chunked\r\n\r\n"
        "3\r\nabc\r\n0\r\n\r\n")
    for name in ("127.0.0.1", "0x7f.1", "[::ffff:10.0.0.1%25lo]", "LocalHost.", "example.org"):
        put("address", name.translate(str.maketrans("[]:%", "____")), name)
    put("address", "four_bytes", bytes([192, 168, 0, 1]))
    put("address", "sixteen_bytes", bytes([0x20, 2, 10, 0, 0, 1] + 10 * [0]))


def studies():
    accuracy = {"linear_top1": 50.5, "linear_top5": 80, "knn_top1": None}
    put("result", "whole", json.dumps(
        {"config": "train: {}", "probe": "p", "first": "", "recipes": {"made": "r"}, "order": ["a", "b"], "turns": [5, 9],
         "points": [{"update": 0, "samples_seen": 0, "accuracy": {"made": accuracy}, "share": {"a": 50}}],
         "values": {"loss": -0.5, "std": None}}))
    put("study", "tiny", """title: Tiny
set:
  model: {arch: resnet10, stem: stride2, width: 2}
  train: {batch: 8, max_updates: 40, updates: 2, threads: 1}
  stream.uri: 'synthetic:?frames=4&size=16&classes=4&seed={seed}'
vary:
  mode:
    none: {title: Conventional, buffer.policy: none}
    fifo: {title: FIFO, buffer.policy: fifo}
probe:
  points: 4
  sets:
    made: {train: 'synthetic:?seed=91&samples=60', val: 'synthetic:?seed=92&samples=30'}
scales:
  smoke: {seeds: 2}
show:
  - table: Accuracy
    rows: mode
    values: [linear_top1, updates]
  - lines: Pairs
    y: same_clip_pairs
    line: mode
claims:
  - {claim: more, of: {mode: fifo}, above: {mode: none}}
published:
  - {mode: fifo, linear_top1: 12.5}
""")


if __name__ == "__main__":
    pictures()
    shards()
    texts()
    tensors()
    requests()
    runs(pathlib.Path(sys.argv[1]).resolve())
    studies()
