"""Vision Transformers, as timm and DINOv2 name their parts."""

import torch
from torch import Tensor, nn

from ._load import Error
from ._network import Network, chosen

HEADS = {"vit-s": 6, "vit-b": 12}
# Side of a patch, px.
_STEMS = {"standard": 16, "stride2": 8, "small": 4}
_BLOCKS = 12
# Patches on a side that there are position embeddings for.
_GRID = 14


def _norm(width: int) -> nn.LayerNorm:
    return nn.LayerNorm(width, eps=1e-6)


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self._heads = heads
        self.norm1 = _norm(width)
        self.attn = nn.ModuleDict({"qkv": nn.Linear(width, 3 * width), "proj": nn.Linear(width, width)})
        self.norm2 = _norm(width)
        self.mlp = nn.ModuleDict({"fc1": nn.Linear(width, 4 * width), "fc2": nn.Linear(4 * width, width)})

    def forward(self, tokens: Tensor) -> Tensor:
        n, count, width = tokens.shape
        parts = self.attn["qkv"](self.norm1(tokens)).reshape(n, count, 3, self._heads, -1)
        mixed = nn.functional.scaled_dot_product_attention(*parts.permute(2, 0, 3, 1, 4))
        tokens = tokens + self.attn["proj"](mixed.transpose(1, 2).reshape(n, count, width))
        inner: Tensor = self.mlp["fc2"](nn.functional.gelu(self.mlp["fc1"](self.norm2(tokens))))
        return tokens + inner


class VisionTransformer(Network):
    """A Vision Transformer without classifier: pictures to the class token after the last norm, [n, features].

    `arch`: "vit-s" (6 heads) or "vit-b" (12). `stem`: patches of 16 px ("standard"), 8 ("stride2")
    or 4 ("small"). `width`: of a head.

    Parameters have timm's names, so a "vit-s" of stem "standard" and width 64 exchanges its
    state_dict() with timm's vit_small_patch16_224. Takes uint8 pictures, [n, 3, height, width], or
    pictures normalised by `mean` and `std`, of any size that whole patches fill: position embeddings
    are resized. Raises Error for another size.

    >>> encoder = riffle.VisionTransformer("vit-s", stem="small", width=8)
    >>> encoder(torch.zeros(2, 3, 32, 32, dtype=torch.uint8)).shape
    torch.Size([2, 48])
    """

    def __init__(self, arch: str = "vit-s", stem: str = "standard", width: int = 64,
                 size: int = 0) -> None:
        heads = chosen("arch", arch, HEADS)
        patch = chosen("stem", stem, _STEMS)
        super().__init__(size, heads * width)
        self._patch = patch
        dim = self.features
        self.cls_token = nn.Parameter(torch.empty(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.empty(1, 1 + _GRID * _GRID, dim))
        self.patch_embed = nn.ModuleDict({"proj": nn.Conv2d(3, dim, patch, patch)})
        self.blocks = nn.ModuleList(_Block(dim, heads) for _ in range(_BLOCKS))
        self.norm = _norm(dim)
        # As timm's: normal, but for the patches, which begin as torch's convolutions do.
        for part in self.modules():
            if isinstance(part, nn.Linear):
                nn.init.normal_(part.weight, std=0.02)
                nn.init.zeros_(part.bias)
        nn.init.normal_(self.cls_token, std=0.02)
        nn.init.normal_(self.pos_embed, std=0.02)

    def forward(self, pictures: Tensor) -> Tensor:
        height, width = pictures.shape[-2:]
        if height % self._patch or width % self._patch:
            raise Error(f"pictures of {width} x {height} px for patches of {self._patch} px; choose a "
                        "size that is a multiple of it")
        patches: Tensor = self.patch_embed["proj"](self._normalised(pictures))
        grid = self._positions(*patches.shape[-2:])
        tokens = (patches + grid).flatten(2).transpose(1, 2)
        first = self.cls_token + self.pos_embed[:, :1]
        tokens = torch.cat([first.expand(len(tokens), -1, -1), tokens], 1)
        for block in self.blocks:
            tokens = block(tokens)
        features: Tensor = self.norm(tokens[:, 0])
        return features

    def _positions(self, rows: int, columns: int) -> Tensor:
        """Returns the embeddings of the patches' places, [1, features, rows, columns]."""
        grid = self.pos_embed[:, 1:].transpose(1, 2).reshape(1, -1, _GRID, _GRID)
        if (rows, columns) == (_GRID, _GRID):
            return grid
        resized: Tensor = nn.functional.interpolate(
            grid, (rows, columns), mode="bicubic", antialias=True)
        return resized
