"""Files that hold stamp buffers: ``.npy``, ``.npz``, ``.safetensors`` and raw little-endian integers."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wsformat.errors import BadRequest, MalformedInput
from wsformat.manifest import parse_json
from wsformat.rolespec import Layout
from wsformat.slot_file import SlotFile
from wsformat.stamp_times import META

Array = np.ndarray[Any, Any]

NPY_MAGIC = b"\x93NUMPY"
ZIP_MAGIC = b"PK\x03\x04"
OTHER_MAGICS = (b"PAR1", b"\x1f\x8b", b"ARROW1", b"NVR\x00", b"\x7fELF", b"SQLite format 3", b"\x89PNG", b"%PDF", b"BM")
RAW_WORDS = {".i32": "<i4", ".u32": "<u4", ".bin": "<i4", ".i64": "<i8"}
"""Word of a raw buffer by file name."""
SAFETENSORS_TYPES = {"I32": "<i4", "U32": "<u4", "I64": "<i8", "U64": "<u8"}
LENGTHS = ("roles", "events", "iterations")
MAX_SMS = 1 << 20
MAX_HEADER = 100 * 1024 * 1024
BUFFER_NAMES = ("prof", "stamps", "events")
"""Names of the buffer inside ``.npz`` and ``.safetensors``, in the order of preference."""


@dataclass(frozen=True)
class Buffers:
    """What one file holds.

    Attributes:
        data: slots, in whatever shape the file has.
        layout, window, ctas: from the file's metadata, None when it does not say.
        spec: role spec as JSON values from the file's metadata, None when there is none.
        dialect: name of the container.
        detected_by: how it was recognised.
    """

    data: Array | SlotFile
    layout: Layout | None
    spec: Any
    dialect: str
    detected_by: str
    window: Any = None
    ctas: Any = None


def container(head: bytes, path: Path) -> tuple[str, str]:
    """Kind of a file by its first bytes and how that was seen; ('', '') when it is none of ours."""
    if head.startswith(NPY_MAGIC):
        return "npy", "magic of .npy"
    if head.startswith(ZIP_MAGIC):
        name = head[30 : 30 + int.from_bytes(head[26:28], "little")]
        return ("npz", "zip archive of .npy members") if name.endswith(b".npy") else ("", "")
    length = int.from_bytes(head[:8], "little")
    if len(head) >= 9 and 2 <= length <= MAX_HEADER and head[8:9] == b"{" and head[9:10] in (b'"', b"}", b" ", b"\n"):
        return "safetensors", "length and JSON header of .safetensors"
    suffix = path.suffix.lower()
    if suffix in RAW_WORDS and not head.startswith(OTHER_MAGICS) and not _is_text(head):
        return "raw", f"file name ({suffix}) and plausible content; raw buffers have no magic"
    return "", ""


def _is_text(head: bytes) -> bool:
    return bool(head) and not any(byte < 9 or 13 < byte < 27 for byte in head[:4096])


def load(path: Path, head: bytes) -> Buffers:
    """Read one file; large ones stay on disk until they are decoded.

    Raises:
        MalformedInput: it is none of the containers, or it is broken.
    """
    kind, how = container(head, path)
    if kind in ("npy", "npz"):
        buffers = _load_numpy(path, kind, how)
    elif kind == "safetensors":
        buffers = _load_safetensors(path, head, how)
    else:
        buffers = _load_raw(path, how or "named by the user")
    if buffers.data.dtype.kind not in "iu" or buffers.data.dtype.itemsize not in (4, 8):
        raise MalformedInput(
            f"{path}: holds {buffers.data.dtype}, stamps are 32- or 64-bit integers",
            "Save the buffer as the kernel wrote it, without conversion.",
        )
    if buffers.data.size == 0:
        raise MalformedInput(f"{path}: holds no slots")
    return buffers


def _load_raw(path: Path, how: str) -> Buffers:
    word = np.dtype(RAW_WORDS.get(path.suffix.lower(), "<i4"))
    size = path.stat().st_size
    if size == 0:
        raise MalformedInput(f"{path}: is empty")
    if size % word.itemsize:
        raise MalformedInput(f"{path}: {size} bytes, not a multiple of the {word.itemsize} bytes of a slot: cut off?")
    bits = word.itemsize * 8
    return Buffers(SlotFile(path, word, 0, (size // word.itemsize,)), None, None, f"raw{bits}", how)


def _load_numpy(path: Path, kind: str, how: str) -> Buffers:
    try:
        if kind == "npy":
            return Buffers(_open_npy(path), None, None, "npy", how)
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            name = next((n for n in BUFFER_NAMES if n in archive.files), "")
            if not name:
                raise MalformedInput(
                    f"{path}: no array {BUFFER_NAMES[0]!r}; it holds {', '.join(archive.files) or 'nothing'}"
                )
            meta = _text(archive["meta"], f"{path}: meta") if "meta" in archive.files else None
            said = _metadata(meta, f"{path}: meta")
            return Buffers(archive[name], *said[:2], "npz", how, *said[2:])
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, KeyError) as error:
        raise MalformedInput(f"{path}: broken .{kind}: {str(error).splitlines()[0]}") from error


def _open_npy(path: Path) -> Array | SlotFile:
    """An array that stays in its file where it can: C order, plain integers."""
    with path.open("rb") as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(file)
        offset = file.tell()
    held = SlotFile(path, dtype, offset, shape)
    spare = path.stat().st_size - offset - held.size * dtype.itemsize
    if spare < 0 and not dtype.hasobject:
        raise MalformedInput(f"{path}: shape {shape} needs {-spare} bytes more than the file has: cut off?")
    if spare > 0 and not dtype.hasobject:
        raise MalformedInput(
            f"{path}: {spare} bytes follow the array of shape {shape}",
            "Were several arrays saved into one file? Save each in its own, or all in one .npz.",
        )
    if fortran or dtype.kind not in "iu" or not shape:
        return np.atleast_1d(np.load(path, allow_pickle=False))
    return held


def _text(array: Array, where: str) -> str:
    if array.dtype.kind == "U" and array.size == 1:
        return str(array.reshape(-1)[0])
    if array.dtype.kind == "S" and array.size == 1:
        raw = bytes(array.reshape(-1)[0])
    elif array.dtype == np.uint8:
        raw = array.tobytes()
    else:
        raise MalformedInput(f"{where}: {array.dtype} of shape {array.shape}, a JSON text is needed")
    try:
        return raw.rstrip(b"\0").decode()
    except UnicodeDecodeError as error:
        raise MalformedInput(f"{where}: not UTF-8 at byte {error.start}") from error


def _metadata(text: str | None, where: str) -> tuple[Layout | None, Any, Any, Any]:
    """Layout, role spec, window and CTAs of a metadata text: the spec itself, or an object with these."""
    if text is None or not text.strip():
        return None, None, None, None
    data = parse_json(text, where)
    if isinstance(data, dict) and ("roles" not in data or all(name in data for name in LENGTHS)):
        spec = data.get("spec", data.get("rolespec"))
        spec = parse_json(spec, where) if isinstance(spec, str) else spec
        return _stated_layout(data, where), spec, data.get("window"), data.get("ctas")
    return None, data, None, None


def _stated_layout(metadata: Mapping[str, Any], where: str) -> Layout | None:
    """The layout in metadata: ``layout`` as ``3,16,64``, list or object, or its three numbers by name."""
    value = metadata.get("layout")
    if isinstance(value, str) and value.strip().startswith(("{", "[")):
        value = parse_json(value, f"{where}: layout")
    if value is None and all(name in metadata for name in LENGTHS):
        value = metadata
    if isinstance(value, dict):
        value = [value.get(name) for name in LENGTHS]
    return None if value is None else parse_layout(value, where)


def parse_layout(value: Any, where: str) -> Layout:
    """``roles,events,iterations`` from text or a list.

    Raises:
        BadRequest
    """
    parts = value.split(",") if isinstance(value, str) else value
    try:
        numbers = [int(part) for part in parts]
        if len(numbers) != 3 or min(numbers) < 1 or max(numbers) >= 2**31:
            raise ValueError
    except (TypeError, ValueError) as error:
        raise BadRequest(
            f"{where}: layout {value!r} is not three positive numbers", "Give roles,events,iterations, such as 3,16,64."
        ) from error
    return Layout(*numbers)


def _load_safetensors(path: Path, head: bytes, how: str) -> Buffers:
    length, size = int.from_bytes(head[:8], "little"), path.stat().st_size
    if 8 + length > size:
        raise MalformedInput(f"{path}: header of {length} bytes, but the file ends after {size}: cut off?")
    with path.open("rb") as file:
        file.seek(8)
        raw = file.read(length)
    try:
        header = parse_json(raw.decode(), f"{path}: header")
    except UnicodeDecodeError as error:
        raise MalformedInput(f"{path}: header is not UTF-8 at byte {error.start}") from error
    if not isinstance(header, dict):
        raise MalformedInput(f"{path}: header is no JSON object")
    metadata = header.pop("__metadata__", {})
    tensors = [n for n, v in header.items() if isinstance(v, dict)]
    name = next((n for n in BUFFER_NAMES if n in tensors), tensors[0] if len(tensors) == 1 else "")
    if not name:
        raise MalformedInput(f"{path}: no tensor {BUFFER_NAMES[0]!r}; it holds {', '.join(tensors) or 'nothing'}")
    entry = header[name]
    if entry.get("dtype") not in SAFETENSORS_TYPES:
        raise MalformedInput(f"{path}: tensor {name!r} is {entry.get('dtype')}, stamps are 32- or 64-bit integers")
    word = np.dtype(SAFETENSORS_TYPES[entry["dtype"]])
    try:
        shape = [int(n) for n in entry["shape"]]
        begin, end = (int(n) for n in entry["data_offsets"])
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedInput(f"{path}: tensor {name!r} has no valid shape and data_offsets") from error
    if min(shape, default=1) < 0 or end - begin != int(np.prod(shape, dtype=object)) * word.itemsize:
        raise MalformedInput(f"{path}: tensor {name!r}: shape {shape} does not fit its {end - begin} bytes")
    if begin < 0 or 8 + length + end > size:
        raise MalformedInput(f"{path}: tensor {name!r} reaches beyond the end of the file: cut off?")
    where = f"{path}: metadata"
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise MalformedInput(f"{where}: not an object of texts")
    spec = metadata.get("spec", metadata.get("rolespec"))
    layout = _stated_layout(metadata, where)
    data = SlotFile(path, word, 8 + length + begin, tuple(shape))
    role_spec = parse_json(spec, f"{where}: spec") if spec else None
    return Buffers(data, layout, role_spec, "safetensors", how, metadata.get("window"), metadata.get("ctas"))


def split(data: Array | SlotFile, layout: Layout, path: Path) -> list[Array | SlotFile]:
    """Slots as launches of ``[cta, role, event, iteration]``.

    Raises:
        MalformedInput: the size is no whole number of buffers, or the shape says otherwise.
    """
    shape = (layout.roles, layout.events, layout.iterations)
    if data.size % layout.slots:
        raise MalformedInput(
            f"{path}: {data.size} slots, not a multiple of the {layout.slots} of layout {layout}",
            "Check the layout (roles,events,iterations), or whether the file was cut off.",
        )
    if data.ndim >= 3 and data.shape[-3:] != shape:
        raise MalformedInput(f"{path}: shape {tuple(data.shape)} does not end in the layout {layout}")
    if data.ndim > 5:
        raise MalformedInput(f"{path}: {data.ndim} dimensions, at most 5 (launch, CTA, role, event, iteration)")
    if data.ndim == 5:
        return [data.part(n) if isinstance(data, SlotFile) else data[n] for n in range(data.shape[0])]
    return [data.reshape(-1, *shape)]


def load_meta(path: Path) -> Array:
    """Start and end records, one a CTA.

    Raises:
        MalformedInput: no whole number of records, or a record that nobody wrote or that ends before it starts.
    """
    if path.is_dir():
        raise MalformedInput(f"{path}: is a directory, a file is needed")
    try:
        raw = path.read_bytes()
    except FileNotFoundError as error:
        raise MalformedInput(f"{path}: no such file") from error
    except OSError as error:
        raise MalformedInput(f"{path}: {error.strerror or error}") from error
    if not raw or len(raw) % META.itemsize:
        raise MalformedInput(f"{path}: {len(raw)} bytes, not a multiple of the {META.itemsize} bytes of a CTA's record")
    records = np.frombuffer(raw, dtype=META)
    blank = np.flatnonzero((records["c0"] == 0) & (records["c1"] == 0) & (records["g0"] == 0))
    if blank.size:
        raise MalformedInput(f"{path}: record {int(blank[0])} was never written (all zero)")
    strange = np.flatnonzero(records["sm"] >= MAX_SMS)
    if strange.size:
        raise MalformedInput(f"{path}: record {int(strange[0])}: {int(records['sm'][strange[0]])} is no SM")
    for start, end in (("c0", "c1"), ("g0", "g1")):
        wrong = np.flatnonzero((records[end] < records[start]) | (records[end] >= 1 << 63))
        if wrong.size:
            raise MalformedInput(f"{path}: record {int(wrong[0])} ends before it starts ({end} < {start})")
    return records
