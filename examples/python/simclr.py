"""SimCLR in plain PyTorch on riffle's stream and buffer.

    python simclr.py [STREAM [UPDATES]]        python simclr.py 'folder:photos?order=shuffle' 5000
"""
import sys

import torch
from torch import nn

import riffle


def contrast(embeddings, temperature=0.2):
    """Each view must find the other view of its picture among all others of the batch."""
    unit = nn.functional.normalize(embeddings, dim=1)
    alike = (unit @ unit.T / temperature).fill_diagonal_(-torch.inf)
    partner = torch.arange(len(unit), device=unit.device).roll(len(unit) // 2)
    return nn.functional.cross_entropy(alike, partner)


def train(stream="synthetic:?frames=64&size=32", updates=200):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    encoder = riffle.ResNet("resnet18", stem="small", width=16)  # or any network of yours
    head = nn.Sequential(nn.Linear(encoder.features, 128), nn.ReLU(), nn.Linear(128, 64))
    network = nn.Sequential(encoder, head).to(device)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    buffer = riffle.ReplayBuffer("minred", capacity=512, size=32, feature_dim=64, device=device, batch=64)
    loader = riffle.ReplayLoader(stream, buffer, batch=64, updates=5)
    losses = []
    for batch in loader:
        embeddings = network(riffle.two_views(batch.pictures, size=32, step=batch.update))
        loss = contrast(embeddings)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loader.track(batch, embeddings[:len(batch)])  # MinRed keeps what these tell apart
        losses.append(loss.item())
        if loader.update == updates:
            break
    return encoder, losses


if __name__ == "__main__":
    encoder, losses = train(*sys.argv[1:2], *map(int, sys.argv[2:3]))
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")
    torch.save(encoder.state_dict(), "encoder.pt")
