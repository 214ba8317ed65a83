"""A Vision Transformer out of torch's own layers, to check riffle's against.

Usage: vision_transformer_reference.py INPUT OUTPUT

INPUT is a safetensors file with weights under DINOv2's or timm's names and batches "pictures/NAME"; OUTPUT gets for each
"encoded/NAME", the class token after the last norm.
"""
import sys

import torch
import torch.nn.functional as F
from objective_reference import read, write


def norm(w, name):
    layer = torch.nn.LayerNorm(len(w[name + ".weight"]), eps=1e-6)
    layer.load_state_dict({"weight": w[name + ".weight"], "bias": w[name + ".bias"]})
    return layer


def linear(w, name):
    out, into = w[name + ".weight"].shape
    layer = torch.nn.Linear(into, out)
    layer.load_state_dict({"weight": w[name + ".weight"], "bias": w[name + ".bias"]})
    return layer


def attention(w, name):
    width = len(w[name + ".proj.bias"])
    layer = torch.nn.MultiheadAttention(width, width // 64, batch_first=True)
    layer.load_state_dict({"in_proj_weight": w[name + ".qkv.weight"], "in_proj_bias": w[name + ".qkv.bias"],
                           "out_proj.weight": w[name + ".proj.weight"], "out_proj.bias": w[name + ".proj.bias"]})
    return layer


def encode(w, pictures):
    patches = w["patch_embed.proj.weight"]
    side = patches.shape[-1]
    # Patches cut out one by one, where riffle convolves.
    cells = pictures.unfold(2, side, side).unfold(3, side, side)
    n, _, rows, columns = cells.shape[:4]
    cells = cells.permute(0, 2, 3, 1, 4, 5).reshape(n, rows * columns, -1)
    tokens = cells @ patches.flatten(1).T + w["patch_embed.proj.bias"]
    was = int(w["pos_embed"].shape[1] ** 0.5)
    placed = w["pos_embed"].shape[1] - was * was
    grid = w["pos_embed"][:, placed:]
    grid = grid.reshape(1, was, was, -1).permute(0, 3, 1, 2)
    if "mask_token" in w and "register_tokens" not in w:  # as DINOv2 does without registers
        scales = ((rows + 0.1) / was, (columns + 0.1) / was)
        grid = F.interpolate(grid, scale_factor=scales, mode="bicubic") if (rows, columns) != (was, was) else grid
    else:  # as DINOv2 does with them, and timm
        grid = F.interpolate(grid, size=(rows, columns), mode="bicubic", antialias=True)
    tokens = tokens + grid.permute(0, 2, 3, 1).reshape(1, rows * columns, -1)
    start = torch.cat([w["cls_token"], w.get("register_tokens", w.get("reg_token", w["cls_token"][:, :0]))], 1)
    start = torch.cat([start[:, :placed] + w["pos_embed"][:, :placed], start[:, placed:]], 1)
    tokens = torch.cat([start.expand(n, -1, -1), tokens], 1)
    depth = 0
    while (name := f"blocks.{depth}") + ".norm1.weight" in w:
        normed = norm(w, name + ".norm1")(tokens)
        change, _ = attention(w, name + ".attn")(normed, normed, normed, need_weights=False)
        tokens = tokens + change * w.get(name + ".ls1.gamma", torch.tensor(1.0))
        hidden = torch.nn.GELU()(linear(w, name + ".mlp.fc1")(norm(w, name + ".norm2")(tokens)))
        tokens = tokens + linear(w, name + ".mlp.fc2")(hidden) * w.get(name + ".ls2.gamma", torch.tensor(1.0))
        depth += 1
    return norm(w, "norm")(tokens)[:, 0]


def main():
    w = read(sys.argv[1])
    batches = {name: w.pop(name) for name in list(w) if name.startswith("pictures/")}
    with torch.no_grad():
        write(sys.argv[2], {name.replace("pictures", "encoded"): encode(w, batch) for name, batch in batches.items()})


if __name__ == "__main__":
    main()
