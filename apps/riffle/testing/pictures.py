"""Small PNG files for tests, without any library."""
import struct
import zlib


def write_png(path, size, colour):
    """Writes a square picture; colour(row, column) gives three bytes."""
    def part(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = b"".join(b"\0" + b"".join(bytes(colour(row, column)) for column in range(size)) for row in range(size))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)) +
                     part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b""))
