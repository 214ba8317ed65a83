"""riffle: streams, a replay buffer and views at C++ speed, for your model and your method.

riffle learns visual representations from streams that never end. A stream gives each picture once; a
small replay buffer keeps what is worth keeping; training draws from the buffer for as long as the
stream runs. Keep your network and your loss; take from riffle what comes before them:

>>> import torch, riffle
>>> buffer = riffle.ReplayBuffer("minred", capacity=64, size=32, feature_dim=8, batch=16)
>>> loader = riffle.ReplayLoader("synthetic:?frames=8&size=32", buffer, batch=16, updates=2)
>>> encoder = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 8))
>>> for batch in loader:
...     first, second = riffle.two_views(batch.pictures, size=32).chunk(2)
...     loss = (encoder(first) - encoder(second)).square().mean()
...     loss.backward()  # and a step of your optimiser
...     loader.track(batch, encoder(first))
...     if batch.update == 3: break

What there is:

open_stream     folders, tar shards, films, cameras, web addresses, or any iterable of Python: a
                Stream, which gives one Sample after the other
ReplayBuffer    what is kept of a stream: merge, minred, reservoir or fifo decide who leaves
ReplayLoader    reads a stream ahead into a buffer, and gives each Batch drawn from it
two_views       two random views of each picture, on the CPU or a GPU; TwoViews to keep the settings
NearestIndex    the exact index behind minred and merge, over any features: what its take() Removed;
                select for one call
Learner         riffle's own training, the whole of it
Run             what a training run left on disk: configuration, metrics, checkpoints
load_encoder    the network of a run as a torch.nn.Module: a ResNet or a VisionTransformer
embed, probe    features of a stream, as an Embedding; how good they are
Error           what all of them raise, with one line that says what to do

All pictures are uint8 tensors in torch's order, [3, height, width] or [n, 3, height, width]. Ctrl-C
is answered within a second everywhere. Objects belong to the process that made them.
"""

from ._load import Error, __version__
from .buffer import Batch, ReplayBuffer
from .encoder import load_encoder
from .evaluation import Embedding, embed, probe
from .learner import Learner
from .loader import ReplayLoader
from .nearest import NearestIndex, Removed, select
from .resnet import ResNet
from .run import Run
from .stream import Sample, Stream, open_stream
from .views import TwoViews, two_views
from .vision_transformer import VisionTransformer

__all__ = [
    "Batch",
    "Embedding",
    "Error",
    "Learner",
    "NearestIndex",
    "Removed",
    "ReplayBuffer",
    "ReplayLoader",
    "ResNet",
    "Run",
    "Sample",
    "Stream",
    "TwoViews",
    "VisionTransformer",
    "__version__",
    "embed",
    "load_encoder",
    "open_stream",
    "probe",
    "select",
    "two_views",
]
