"""Prints the scalars of a folder of event files, as TensorBoard itself reads them, as one JSON object: {tag: [[step, value]]}.

Usage: read_events.py FOLDER; exit code 77: tensorboard is missing
"""
import json
import sys

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError as missing:
    print(missing, file=sys.stderr)
    sys.exit(77)

accumulator = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
accumulator.Reload()
print(json.dumps({tag: [[event.step, event.value] for event in accumulator.Scalars(tag)]
                  for tag in accumulator.Tags()["scalars"]}))
