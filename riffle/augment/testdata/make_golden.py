#!/usr/bin/env python3
"""What every operation of riffle/augment must give on a small picture, by an independent implementation.

    make_golden.py                          write golden.bin and golden.txt beside this script
    make_golden.py --check                  compare with the files already there instead
    make_golden.py --reference numpy        by the formulas written out below, in float64
    make_golden.py --reference torchvision  by torchvision itself, on float tensors
    make_golden.py --reference both         the default where torchvision is there: they must agree to 1e-5

golden.txt has a line per result: its name, its place in golden.bin counted in values, and its shape; golden.bin has the
values as little-endian float32. What each name stands for is in results() below and in golden_test.cc.
"""

import argparse
import math
import pathlib
import sys

import numpy as np

HEIGHT, WIDTH = 20, 24
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
TOLERANCE = 1e-5


def test_picture():
    """8-bit RGB with grays and with ties for the largest channel, where formulas for hue branch."""
    picture = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    for y in range(HEIGHT):
        for x in range(WIDTH):
            for channel in range(3):
                c = channel
                if (x + y) % 7 == 0:
                    c = 0
                elif (x + 2 * y) % 11 == 0 and channel == 1:
                    c = 0
                picture[y, x, channel] = (7 * x + 5 * y + 83 * c + x * y * (c + 1) % 31 * 5) % 256
    return picture


class Numpy:
    """Channels first, float64."""

    def load(self, picture):
        return picture.astype(np.float64).transpose(2, 0, 1) / 255.0

    def resize_axis(self, image, axis, size):
        count = image.shape[axis]
        scale = count / size
        support = max(scale, 1.0)
        matrix = np.zeros((size, count))
        for i in range(size):
            centre = (i + 0.5) * scale
            for j in range(count):
                matrix[i, j] = max(0.0, 1.0 - abs(j + 0.5 - centre) / support)
            matrix[i] /= matrix[i].sum()
        return np.moveaxis(np.tensordot(matrix, image, axes=(1, axis)), 0, axis)

    def crop_resize(self, image, top, left, height, width, size):
        crop = image[:, top : top + height, left : left + width]
        return self.resize_axis(self.resize_axis(crop, 2, size[1]), 1, size[0])

    def flip(self, image):
        return image[:, :, ::-1]

    def gray(self, image):
        return 0.2989 * image[0] + 0.587 * image[1] + 0.114 * image[2]

    def blend(self, image, other, factor):
        return np.clip(factor * image + (1.0 - factor) * other, 0.0, 1.0)

    def brightness(self, image, factor):
        return self.blend(image, np.zeros_like(image), factor)

    def contrast(self, image, factor):
        return self.blend(image, self.gray(image).mean(), factor)

    def saturation(self, image, factor):
        return self.blend(image, self.gray(image)[None], factor)

    def hue(self, image, shift):
        """Pixel by pixel through hue, saturation and value, one case for each sixth of the circle."""
        result = np.zeros_like(image)
        for y in range(image.shape[1]):
            for x in range(image.shape[2]):
                red, green, blue = image[:, y, x]
                value, low = max(red, green, blue), min(red, green, blue)
                chroma = value - low
                if chroma == 0:
                    hue, saturation = 0.0, 0.0
                else:
                    saturation = chroma / value
                    if value == red:
                        hue = ((green - blue) / chroma / 6.0) % 1.0
                    elif value == green:
                        hue = (2.0 + (blue - red) / chroma) / 6.0
                    else:
                        hue = (4.0 + (red - green) / chroma) / 6.0
                hue = (hue + shift) % 1.0
                sixth = math.floor(hue * 6.0)
                part = hue * 6.0 - sixth
                p = value * (1.0 - saturation)
                q = value * (1.0 - saturation * part)
                t = value * (1.0 - saturation * (1.0 - part))
                result[:, y, x] = [
                    (value, t, p),
                    (q, value, p),
                    (p, value, t),
                    (p, q, value),
                    (t, p, value),
                    (value, p, q),
                ][sixth % 6]
        return np.clip(result, 0.0, 1.0)

    def grayscale(self, image):
        return np.repeat(self.gray(image)[None], 3, axis=0)

    def blur(self, image, kernel_size, sigma):
        half = kernel_size // 2
        x = np.arange(-half, half + 1)
        kernel = np.exp(-0.5 * (x / sigma) ** 2)
        kernel /= kernel.sum()
        kernel = np.outer(kernel, kernel)
        padded = np.pad(image, ((0, 0), (half, half), (half, half)), mode="reflect")
        result = np.zeros_like(image)
        for dy in range(kernel_size):
            for dx in range(kernel_size):
                result += kernel[dy, dx] * padded[:, dy : dy + image.shape[1], dx : dx + image.shape[2]]
        return result

    def normalize(self, image):
        return (image - np.array(MEAN)[:, None, None]) / np.array(STD)[:, None, None]

    def array(self, image):
        return np.ascontiguousarray(image)


class Torchvision:
    """torchvision's functional operations on float32 tensors."""

    def __init__(self):
        import torch
        import torchvision.transforms.functional as functional

        self.torch, self.f = torch, functional

    def load(self, picture):
        return self.torch.from_numpy(picture).permute(2, 0, 1).contiguous().float() / 255.0

    def crop_resize(self, image, top, left, height, width, size):
        return self.f.resized_crop(image, top, left, height, width, list(size), antialias=True)

    def flip(self, image):
        return self.f.hflip(image)

    def brightness(self, image, factor):
        return self.f.adjust_brightness(image, factor)

    def contrast(self, image, factor):
        return self.f.adjust_contrast(image, factor)

    def saturation(self, image, factor):
        return self.f.adjust_saturation(image, factor)

    def hue(self, image, shift):
        return self.f.adjust_hue(image, shift)

    def grayscale(self, image):
        return self.f.rgb_to_grayscale(image, num_output_channels=3)

    def blur(self, image, kernel_size, sigma):
        return self.f.gaussian_blur(image, [kernel_size, kernel_size], [sigma, sigma])

    def normalize(self, image):
        return self.f.normalize(image, list(MEAN), list(STD))

    def array(self, image):
        return image.numpy()


def results(ops):
    picture = ops.load(test_picture())
    yield "picture", picture
    yield "crop_up", ops.crop_resize(picture, 3, 5, 13, 11, (32, 32))
    yield "crop_down", ops.crop_resize(picture, 0, 0, 20, 24, (8, 8))
    yield "crop_far_down", ops.crop_resize(picture, 1, 0, 19, 23, (3, 2))
    yield "crop_mixed", ops.crop_resize(picture, 8, 0, 9, 24, (16, 16))
    yield "crop_same", ops.crop_resize(picture, 2, 4, 16, 16, (16, 16))
    yield "crop_pixel", ops.crop_resize(picture, 19, 23, 1, 1, (8, 8))
    yield "flip", ops.flip(ops.crop_resize(picture, 3, 5, 13, 11, (16, 16)))
    for factor in (0.6, 1.0, 1.4):
        yield f"brightness_{factor}", ops.brightness(picture, factor)
    for factor in (0.0, 0.6, 1.4):
        yield f"contrast_{factor}", ops.contrast(picture, factor)
    for factor in (0.0, 0.6, 1.4):
        yield f"saturation_{factor}", ops.saturation(picture, factor)
    for shift in (-0.5, -0.1, 0.05, 0.4):
        yield f"hue_{shift}", ops.hue(picture, shift)
    yield "grayscale", ops.grayscale(picture)
    for kernel_size, sigma in ((3, 2.0), (9, 0.1), (9, 0.7), (23, 2.0)):
        yield f"blur_{kernel_size}_{sigma}", ops.blur(picture, kernel_size, sigma)
    yield "normalize", ops.normalize(picture)

    # Complete views, in SimSiam's order: flip after everything else but normalise.
    view = ops.crop_resize(picture, 2, 3, 15, 17, (32, 32))
    view = ops.saturation(view, 1.3)
    view = ops.contrast(view, 0.7)
    view = ops.hue(view, -0.07)
    view = ops.brightness(view, 1.2)
    view = ops.blur(view, 3, 1.1)
    yield "view_color", ops.normalize(ops.flip(view))
    view = ops.crop_resize(picture, 0, 6, 20, 18, (16, 16))
    view = ops.hue(view, 0.1)
    view = ops.brightness(view, 0.8)
    view = ops.grayscale(view)
    yield "view_gray", ops.normalize(view)


def check_resize_with_torch(golden):
    """The one operation whose definition is torch's own, where torch is there without torchvision."""
    try:
        import torch
    except ImportError:
        return
    picture = torch.from_numpy(golden["picture"])[None].float()
    for name, (top, left, height, width) in {
        "crop_up": (3, 5, 13, 11),
        "crop_down": (0, 0, 20, 24),
        "crop_far_down": (1, 0, 19, 23),
        "crop_mixed": (8, 0, 9, 24),
        "crop_same": (2, 4, 16, 16),
        "crop_pixel": (19, 23, 1, 1),
    }.items():
        resized = torch.nn.functional.interpolate(
            picture[:, :, top : top + height, left : left + width],
            size=golden[name].shape[1:],
            mode="bilinear",
            antialias=True,
            align_corners=False,
        )[0].numpy()
        compare(f"torch's interpolate, {name}", resized, golden[name])


def compare(what, values, expected):
    if values.shape != expected.shape:
        sys.exit(f"{what}: shape {values.shape}, expected {expected.shape}")
    difference = np.abs(values.astype(np.float64) - expected).max()
    if not difference < TOLERANCE:
        sys.exit(f"{what}: differs by {difference:.3g}")
    return difference


def write(folder, golden):
    lines, offset, parts = [], 0, []
    for name, values in golden.items():
        lines.append(f"{name} {offset} {' '.join(map(str, values.shape))}\n")
        parts.append(values.astype("<f4").ravel())
        offset += values.size
    (folder / "golden.txt").write_text("".join(lines))
    (folder / "golden.bin").write_bytes(np.concatenate(parts).tobytes())
    print(f"{len(golden)} results, {4 * offset} bytes")


def check(folder, golden):
    stored = np.fromfile(folder / "golden.bin", "<f4")
    names = set()
    largest = 0.0
    for line in (folder / "golden.txt").read_text().splitlines():
        name, offset, *shape = line.split()
        if name not in golden:
            sys.exit(f"{name}: in golden.txt, but no longer computed")
        names.add(name)
        shape = tuple(map(int, shape))
        values = stored[int(offset) : int(offset) + math.prod(shape)].reshape(shape)
        largest = max(largest, compare(f"stored {name}", values, golden[name]))
    if names != set(golden):
        sys.exit(f"missing in golden.txt: {sorted(set(golden) - names)}")
    print(f"{len(names)} stored results agree, largest difference {largest:.3g}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--reference", choices=("numpy", "torchvision", "both"))
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    reference = arguments.reference
    if reference is None:
        try:
            import torchvision  # noqa: F401

            reference = "both"
        except ImportError:
            reference = "numpy"

    def compute(ops):
        return {name: ops.array(image) for name, image in results(ops)}

    golden = compute(Torchvision() if reference != "numpy" else Numpy())
    if reference == "both":
        largest = max(compare(f"numpy's {name}", values, golden[name]) for name, values in compute(Numpy()).items())
        print(f"torchvision and numpy agree, largest difference {largest:.3g}")
    if reference == "numpy":
        check_resize_with_torch(golden)
    folder = pathlib.Path(__file__).parent
    (check if arguments.check else write)(folder, golden)


if __name__ == "__main__":
    main()
