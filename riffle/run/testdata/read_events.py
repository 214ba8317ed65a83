"""Prints what a folder of event files holds, as TensorBoard itself reads it, as one JSON object:
{"scalars": {tag: [[step, value]]}, "pictures": {tag: [[step, width, height]]}, "configuration": {key: value}}.
The pixels of pictures are decoded, too, where Pillow is there.

Usage: read_events.py FOLDER; exit code 77: tensorboard is missing
"""
import io
import json
import sys

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import metadata
except ImportError as missing:
    print(missing, file=sys.stderr)
    sys.exit(77)

accumulator = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "images": 0})
accumulator.Reload()
tags = accumulator.Tags()


def picture(event):
    try:
        from PIL import Image
        size = Image.open(io.BytesIO(event.encoded_image_string)).convert("RGB").size
        assert size == (event.width, event.height), size
    except ImportError:
        pass
    return [event.step, event.width, event.height]


def configuration():
    tag = metadata.SESSION_START_INFO_TAG
    content = accumulator.summary_metadata.get(tag)
    if content is None:
        return {}
    start = metadata.parse_session_start_info_plugin_data(content.plugin_data.content)
    return {key: getattr(value, value.WhichOneof("kind")) for key, value in start.hparams.items()}


print(json.dumps({
    "scalars": {tag: [[event.step, event.value] for event in accumulator.Scalars(tag)]
                for tag in tags["scalars"]},
    "pictures": {tag: [picture(event) for event in accumulator.Images(tag)] for tag in tags["images"]},
    "configuration": configuration()}))
