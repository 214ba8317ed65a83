"""A method of the package lightly, SimSiam, trained through riffle's loader: pip install lightly.

    python lightly_simsiam.py [STREAM [UPDATES]]
"""
import sys

import torch
from lightly.loss import NegativeCosineSimilarity
from lightly.models.modules import SimSiamPredictionHead, SimSiamProjectionHead
from torch import nn

import riffle


class SimSiam(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = riffle.ResNet("resnet18", stem="small", width=16)
        self.projector = SimSiamProjectionHead(self.encoder.features, 128, 128)
        self.predictor = SimSiamPredictionHead(128, 32, 128)

    def forward(self, views):
        projection = self.projector(self.encoder(views))
        return projection.detach(), self.predictor(projection)


def train(stream="synthetic:?frames=64&size=32", updates=200):
    torch.manual_seed(0)
    model = SimSiam()
    criterion = NegativeCosineSimilarity()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    buffer = riffle.ReplayBuffer("merge", capacity=512, size=32, feature_dim=128, batch=64)
    loader = riffle.ReplayLoader(stream, buffer, batch=64, updates=5)
    losses = []
    for batch in loader:
        first, second = riffle.two_views(batch.pictures, size=32, step=batch.update).chunk(2)
        (target0, guess0), (target1, guess1) = model(first), model(second)
        loss = 0.5 * (criterion(target0, guess1) + criterion(target1, guess0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loader.track(batch, target0)
        losses.append(loss.item())
        if loader.update == updates:
            break
    return model.encoder, losses


if __name__ == "__main__":
    encoder, losses = train(*sys.argv[1:2], *map(int, sys.argv[2:3]))
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")
