"""Named tensors of a safetensors checkpoint (one file or sharded), delivered as float32.

Guarantees: headers were validated by the `safetensors` library before a byte of data is used, every tensor
handed out has the shape the caller asked for, and every defect (missing or truncated file, header beyond the
file, unknown dtype, wrong shape, missing tensor, index naming a shard that is not there) is a `LaunchError`
naming file and tensor. Data is mapped, not copied, until it is converted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from engine.reference.config import read_json, require_regular
from engine.reference.errors import LaunchError

SINGLE_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
_STORED_TYPES: Mapping[str, np.dtype[Any]] = {
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),
}


def bfloat16_to_float32(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """bfloat16 is the upper half of a float32: shift the 16 stored bits up and reinterpret."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


class _Shard:
    """One safetensors file: dtype, shape and byte range of each of its tensors."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with safe_open(str(require_regular(path)), framework="np") as opened:
                names = list(opened.keys())
        except (SafetensorError, OSError, ValueError) as error:
            raise LaunchError(f"{path} is not a valid safetensors file: {error}") from None
        data = np.memmap(path, dtype=np.uint8, mode="r")
        header_size = int(data[:8].view("<u8")[0])
        self._header = json.loads(bytes(data[8 : 8 + header_size]))
        self._data = data[8 + header_size :]
        self.names = frozenset(names)
        self.elements = sum(math.prod(self._header[name]["shape"]) for name in names)

    def read(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
        entry = self._header[name]
        stored = _STORED_TYPES.get(entry["dtype"])
        if stored is None:
            raise LaunchError(
                f"{self.path}: tensor {name} has dtype {entry['dtype']}"
                f" (supported: {', '.join(_STORED_TYPES)})"
            )
        if tuple(entry["shape"]) != shape:
            raise LaunchError(
                f"{self.path}: tensor {name} has shape {entry['shape']}, expected {list(shape)}"
            )
        first, end = entry["data_offsets"]
        values = np.frombuffer(self._data[first:end].tobytes(), dtype=stored).reshape(shape)
        return bfloat16_to_float32(values) if entry["dtype"] == "BF16" else values.astype(np.float32)


class Checkpoint:
    """All tensors of a model directory by name."""

    def __init__(self, directory: Path) -> None:
        """Open every weight file of the directory; raises LaunchError."""
        self._where: dict[str, _Shard] = {}
        index = directory / INDEX_FILE
        if not (directory / SINGLE_FILE).exists() and index.exists():
            self._open_shards(directory, index)
        else:
            shard = _Shard(directory / SINGLE_FILE)
            self._where = dict.fromkeys(shard.names, shard)
        self._directory = directory

    def _open_shards(self, directory: Path, index: Path) -> None:
        weight_map = read_json(index).get("weight_map")
        if not isinstance(weight_map, dict) or not all(isinstance(name, str) for name in weight_map.values()):
            raise LaunchError(f"{index}: weight_map must map tensor names to file names")
        if any(Path(name).name != name for name in weight_map.values()):
            raise LaunchError(f"{index}: weight_map must name files of the same directory")
        shards = {name: _Shard(directory / name) for name in sorted(set(weight_map.values()))}
        for tensor, file_name in weight_map.items():
            if tensor not in shards[file_name].names:
                raise LaunchError(
                    f"{directory / file_name} lacks tensor {tensor} which {INDEX_FILE} promises"
                )
            self._where[tensor] = shards[file_name]

    @property
    def elements(self) -> int:
        """Numbers in all tensors."""
        return sum(shard.elements for shard in set(self._where.values()))

    def __contains__(self, name: str) -> bool:
        return name in self._where

    def read(self, name: str, *shape: int) -> NDArray[np.float32]:
        """Tensor `name` as a float32 array of exactly `shape`; LaunchError when it is missing or different or
        not finite.
        """
        shard = self._where.get(name)
        if shard is None:
            raise LaunchError(f"{self._directory}: the checkpoint lacks tensor {name}")
        values = shard.read(name, shape)
        if not np.isfinite(values).all():
            raise LaunchError(f"{shard.path}: tensor {name} holds values that are not finite")
        return values
