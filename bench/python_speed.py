"""How fast riffle is from Python, beside its peers in the same run. One JSON object a line.

    PYTHONPATH=build/python python bench/python_speed.py loader      # beside the C++ learner's own loop
    PYTHONPATH=build/python python bench/python_speed.py jpeg        # shards of JPEGs, beside WebDataset and torchvision
    PYTHONPATH=build/python python bench/python_speed.py views       # two views at 224 px, beside torchvision v2
    PYTHONPATH=build/python python bench/python_speed.py minred      # MinRed, beside the same calls in C++

`--device cuda` for views and minred. All take turns, round by round, so that a change of the machine's load hits both; a
ratio is the median of the rounds' ratios. A peer that cannot be imported is left out, with the reason on standard error.
"""
import argparse
import io
import json
import pathlib
import statistics
import sys
import tarfile
import tempfile
import time

import torch

import riffle
from riffle import _riffle
from riffle._pictures import channels_last
from riffle._settings import settings


def report(name, **figures):
    figures = {key: round(value, 4) if isinstance(value, float) else value for key, value in figures.items()}
    print(json.dumps({"measured": name, **figures}), flush=True)


def turns(rounds, *measures):
    """Returns the results of each measure, taken in turn; one round first warms up."""
    results = [[measure() for measure in measures] for _ in range(rounds + 1)][1:]
    return list(zip(*results))


def ratio(ours, theirs):
    return statistics.median(a / b for a, b in zip(ours, theirs))


def loader(args):
    """The same network, updates, stream and buffer: once all in C++, once with Python around the loader's batches."""
    stream = "synthetic:?frames=64&size=32"
    config = {"augment.size": 32, "model": {"stem": "small", "width": args.width, "projector_out": 256},
              "buffer": {"policy": "minred", "capacity": 1024, "features": "draw"},
              "train": {"batch": args.batch, "updates": 5, "schedule": "constant", "max_updates": 0}}
    learner = riffle.Learner(stream, config)
    lr = learner.train(1, progress=False)[0]["lr"]
    buffer = riffle.ReplayBuffer("minred", capacity=1024, size=32, feature_dim=256, batch=args.batch)
    batches = riffle.ReplayLoader(stream, buffer, batch=args.batch, updates=5)
    network = _riffle.NetworkUpdates(settings(config))

    def by_learner():
        start = time.perf_counter()
        learner.train(args.updates, every=args.updates, progress=False)
        return (time.perf_counter() - start) / args.updates

    def by_loader():
        start = time.perf_counter()
        for _ in range(args.updates):
            batch = next(batches)
            features = network.update(channels_last(batch.pictures), batch.update, lr)
            batches.track(batch, features)
        return (time.perf_counter() - start) / args.updates

    theirs, ours = turns(args.rounds, by_learner, by_loader)
    report("loader", batch=args.batch, width=args.width, learner_ms=1e3 * statistics.median(theirs),
           loader_ms=1e3 * statistics.median(ours), ratio=ratio(ours, theirs), threads=torch.get_num_threads())


def write_shards(folder, pictures, width):
    """Writes JPEGs of 4 : 3, quality 90, into one tar. Returns their mean size in bytes."""
    from PIL import Image

    noise = torch.Generator().manual_seed(0)
    stream = riffle.open_stream(f"synthetic:?frames=1&size={width * 3 // 4}")
    size = 0
    with tarfile.open(folder / "train-000.tar", "w") as tar:
        for i in range(pictures):
            plain = next(stream).picture.float()
            grain = torch.randn(plain.shape, generator=noise) * 6
            array = (plain + grain).clamp(0, 255).byte().permute(1, 2, 0).numpy()
            data = io.BytesIO()
            Image.fromarray(array).resize((width, width * 3 // 4)).save(data, "jpeg", quality=90)
            member = tarfile.TarInfo(f"{i:06}.jpg")
            member.size = data.tell()
            size += member.size
            data.seek(0)
            tar.addfile(member, data)
    return size // pictures


def torchvision_decoder(size):
    from torchvision.io import ImageReadMode, decode_jpeg
    from torchvision.transforms.v2 import functional

    def decode(data):
        picture = decode_jpeg(torch.frombuffer(bytearray(data), dtype=torch.uint8), mode=ImageReadMode.RGB)
        return functional.resize(picture, [size], antialias=True) if size else picture

    return decode


def pillow_decoder(size):
    import numpy
    from PIL import Image

    def decode(data):
        picture = Image.open(io.BytesIO(data)).convert("RGB")
        if size:
            short = min(picture.size)
            picture = picture.resize([side * size // short for side in picture.size], Image.Resampling.BILINEAR)
        return torch.from_numpy(numpy.array(picture))

    return decode


def jpeg(args):
    """Pictures per second of processor time: read from a tar, decoded, and resized to a short side of 256 px (0: as they are)."""
    import webdataset

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        bytes_each = write_shards(folder, args.pictures, args.picture_width)

        def by_riffle(size):
            def measure():
                start = time.process_time()
                count = sum(1 for _ in riffle.open_stream(f"shards:{folder}/*.tar" + (f"?size={size}" if size else "")))
                assert count == args.pictures
                return count / (time.process_time() - start)
            return measure

        def by_webdataset(decode):
            def measure():
                start = time.process_time()
                dataset = webdataset.WebDataset(str(folder / "train-000.tar"), shardshuffle=False)
                count = sum(1 for sample in dataset if decode(sample["jpg"]) is not None)
                assert count == args.pictures
                return count / (time.process_time() - start)
            return measure

        for size in (0, 256):
            for peer, make in (("torchvision", torchvision_decoder), ("Pillow", pillow_decoder)):
                try:
                    measure = by_webdataset(make(size))
                    measure()
                except (ImportError, RuntimeError, AttributeError) as error:
                    print(f"without WebDataset + {peer}: {error}".splitlines()[0], file=sys.stderr)
                    continue
                ours, theirs = turns(args.rounds, by_riffle(size), measure)
                report("jpeg", picture_width=args.picture_width, short_side=size or "as it is", bytes_each=bytes_each, peer=f"WebDataset + {peer}",
                       riffle_per_core_s=statistics.median(ours), peer_per_core_s=statistics.median(theirs),
                       ratio=ratio(ours, theirs))


def timer(device):
    def measure(call, repeats):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        if device == "cuda":
            torch.cuda.synchronize()
        return (time.perf_counter() - start) / repeats
    return measure


def views(args):
    """Two random views of each picture of a batch; torchvision's transforms are applied picture by picture, as each wants
    random numbers of its own."""
    measure = timer(args.device)
    pictures = torch.randint(256, (args.batch, 3, 256, 256), dtype=torch.uint8, device=args.device) \
        .contiguous(memory_format=torch.channels_last)
    step = iter(range(10**9))

    def ours():
        return measure(lambda: riffle.two_views(pictures, size=224, step=next(step)), args.repeats)

    try:
        from torchvision.transforms import v2
    except (ImportError, RuntimeError) as error:
        print(f"without torchvision: {error}".splitlines()[0], file=sys.stderr)
        report("views", device=args.device, batch=args.batch, riffle_ms=1e3 * statistics.median(turns(args.rounds, ours)[0]))
        return
    transform = v2.Compose([
        v2.RandomResizedCrop(224, scale=(0.2, 1.0), antialias=True), v2.RandomHorizontalFlip(),
        v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.4, 0.1)], p=0.8), v2.RandomGrayscale(0.2),
        v2.RandomApply([v2.GaussianBlur(23, (0.1, 2.0))], p=0.5), v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])

    def theirs():
        return measure(lambda: torch.stack([transform(picture) for _ in range(2) for picture in pictures]), 1)

    mine, peer = turns(args.rounds, ours, theirs)
    report("views", device=args.device, batch=args.batch, riffle_ms=1e3 * statistics.median(mine),
           torchvision_ms=1e3 * statistics.median(peer), ratio=ratio(peer, mine))


def minred(args):
    """What training does to the index for a stream batch: by calls from Python, and by one call that does the same in C++,
    in turn on one index."""
    slots, batch, updates = args.capacity + args.batch, args.batch, 5
    random = torch.Generator().manual_seed(0)
    index = riffle.NearestIndex(slots, args.dim, device=args.device, feature_type="float16")
    features = torch.randn(slots, args.dim, generator=random).to(args.device)
    live = list(range(args.capacity))
    free = list(range(args.capacity, slots))
    for first in range(0, args.capacity, 4096):
        rows = live[first:first + 4096]
        index.set(rows, features[first:first + len(rows)])
    index.take(0)
    measure = timer(args.device)

    def by_python(drawn, new):
        for rows in drawn:
            index.blend(rows, features[:batch], 0.5, ages=rows)
        index.set(free, new, ages=free)
        return index.take(batch).slots.tolist()

    def by_cpp(drawn, new):
        return index._index.stream_batch(drawn, features[:batch], 0.5, free, new)

    def stream_batch(way):
        nonlocal live, free
        drawn = [[live[i] for i in torch.randperm(len(live), generator=random)[:batch].tolist()] for _ in range(updates)]
        new = torch.randn(batch, args.dim, generator=random).to(args.device)
        gone = []
        seconds = measure(lambda: gone.extend(way(drawn, new)), 1)
        left = set(gone)
        live = [slot for slot in live + free if slot not in left]
        free = gone
        return seconds

    ours, theirs = turns(args.batches, lambda: stream_batch(by_python), lambda: stream_batch(by_cpp))
    report("minred", device=args.device, capacity=args.capacity, dim=args.dim, batch=batch,
           python_ms=1e3 * statistics.median(ours), cpp_ms=1e3 * statistics.median(theirs),
           ratio=statistics.median(ours) / statistics.median(theirs))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["loader", "jpeg", "views", "minred"])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=None, help="samples; default: 64 on the CPU, 256 on a GPU")
    parser.add_argument("--width", type=int, default=16, help="loader: channels of the network's first stage")
    parser.add_argument("--updates", type=int, default=25, help="loader: updates a round")
    parser.add_argument("--pictures", type=int, default=200, help="jpeg: pictures in the shard")
    parser.add_argument("--picture-width", type=int, default=500, help="jpeg: in px; the height is three quarters of it")
    parser.add_argument("--repeats", type=int, default=10, help="views: calls of riffle a round")
    parser.add_argument("--capacity", type=int, default=None, help="minred: rows; default: 4096, on a GPU 65536")
    parser.add_argument("--dim", type=int, default=None, help="minred: width; default: 256, on a GPU 2048")
    parser.add_argument("--batches", type=int, default=20, help="minred: stream batches measured")
    args = parser.parse_args()
    gpu = args.device == "cuda"
    args.batch = args.batch or (256 if gpu else 64)
    args.capacity = args.capacity or (65536 if gpu else 4096)
    args.dim = args.dim or (2048 if gpu else 256)
    {"loader": loader, "jpeg": jpeg, "views": views, "minred": minred}[args.what](args)


main()
