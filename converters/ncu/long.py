"""Tables with one row a metric: details pages, --metrics, --print-summary, and a plain list of metrics."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wsformat.converters.ncu.cells import Codes
from wsformat.converters.ncu.frame import Meta
from wsformat.converters.ncu.headers import RULE_COLUMNS, SUMMARY_VALUES, Head
from wsformat.converters.ncu.launches import FACTS
from wsformat.converters.ncu.parts import Reading, dense, launch_columns, look

Ints = npt.NDArray[np.int64]


def read_long(head: Head, codes: Codes, texts: pa.StringArray, reading: Reading) -> None:
    """Take the cells of a long table."""
    launch = _launch_numbers(head, codes, texts, reading)
    name = codes[:, head.at["Metric Name"]]
    is_metric = _filled(name, texts)
    if "Rule Name" in head.at:
        is_rule = ~is_metric & _filled(codes[:, head.at["Rule Name"]], texts)
        _rules(head, codes, texts, launch, is_rule, reading)
    else:
        is_rule = np.zeros(len(name), bool)
    reading.ignored += int((~is_metric & ~is_rule).sum())
    chosen = np.flatnonzero(is_metric)
    if len(chosen) == 0:
        return
    codes, launch = codes[chosen], launch[chosen]
    meta, index = _meta(head, codes, texts)
    text = codes[:, head.at["Metric Value"]]
    _facts(meta, index, launch, text, texts, reading)
    place, key = meta.ranks()
    ordinal = _ordinals(launch, key[index])
    order = np.lexsort((key[index], ordinal, place[index], launch))
    if not np.array_equal(order, np.arange(len(order))):
        launch, index, ordinal, text = launch[order], index[order], ordinal[order], text[order]
    code, used = dense(text, len(texts))
    columns = {"launch": launch, "meta": index.astype(np.int32), "ordinal": ordinal, "text": code}
    between = int(launch.min()), int(launch.max())
    reading.add_part("kernel", meta, len(launch), between, reading.keep(columns), look(texts.take(pa.array(used))))


def _filled(codes: Codes, texts: pa.StringArray) -> npt.NDArray[np.bool_]:
    empty = pc.equal(texts, "").to_numpy(zero_copy_only=False)
    return np.asarray(~empty[codes])


def _launch_numbers(head: Head, codes: Codes, texts: pa.StringArray, reading: Reading) -> Codes:
    """Launch of each row: a new (process, ID) in this table is a new launch."""
    if head.kind == "plain":
        if not head.state:
            head.state["only"] = reading.launches.add({}, 1, reading.source)
        return np.full(len(codes), head.state["only"], np.int32)
    ids = codes[:, head.at["ID"]].astype(np.int64)
    processes = codes[:, head.at["Process ID"]].astype(np.int64) if "Process ID" in head.at else np.zeros_like(ids)
    packed, first, inverse = np.unique(processes * len(texts) + ids, return_index=True, return_inverse=True)
    known: dict[tuple[str, str], int] = head.state
    keys = list(
        zip(
            texts.take(pa.array(packed // len(texts))).to_pylist() if "Process ID" in head.at else [""] * len(packed),
            texts.take(pa.array(packed % len(texts))).to_pylist(),
            strict=True,
        )
    )
    fresh = [i for i in np.argsort(first, kind="stable") if keys[i] not in known]
    if fresh:
        begin = reading.launches.add(launch_columns(head, codes, texts, first[fresh]), len(fresh), reading.source)
        known.update({keys[i]: begin + n for n, i in enumerate(fresh)})
    numbers = np.array([known[key] for key in keys], np.int32)
    return numbers[inverse.reshape(-1)]


def _meta(head: Head, codes: Codes, texts: pa.StringArray) -> tuple[Meta, Ints]:
    """Distinct (section, label, name, unit), and which one each row has."""
    wanted = ("Section Name", "Body Item Label", "Metric Name", "Metric Unit")
    packed = np.zeros(len(codes), np.int64)
    used: list[list[str] | None] = []
    sizes = []
    for name in wanted:
        if name not in head.at:
            used.append(None)
            sizes.append(1)
            continue
        number, words = dense(codes[:, head.at[name]], len(texts))
        packed = packed * len(words) + number
        used.append(texts.take(pa.array(words)).to_pylist())
        sizes.append(len(words))
    distinct, index = np.unique(packed, return_inverse=True)
    columns: list[list[str]] = []
    for words_of, size in zip(reversed(used), reversed(sizes), strict=True):
        columns.append([""] * len(distinct) if words_of is None else [words_of[i] for i in distinct % size])
        distinct = distinct // size
    unit, name_column, label, section = columns
    return Meta(section, label, name_column, unit), index.reshape(-1)


def _ordinals(launch: Codes, key: Ints) -> Codes:
    """n-th occurrence of each (launch, key), in file order."""
    packed = launch.astype(np.int64) * (int(key.max(initial=0)) + 1) + key
    order = np.argsort(packed, kind="stable")
    ordered = packed[order]
    begins = np.concatenate(([True], ordered[1:] != ordered[:-1]))
    start = np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))
    result = np.empty(len(order), np.int32)
    result[order] = np.arange(len(order)) - start
    return result


def _facts(meta: Meta, index: Ints, launch: Codes, text: Codes, texts: pa.StringArray, reading: Reading) -> None:
    for number, name in enumerate(meta.name):
        if name in FACTS:
            rows = np.flatnonzero(index == number)
            values = texts.take(pa.array(text[rows]))
            reading.add_facts(name, meta.section[number], launch[rows], values, meta.unit[number])


def _rules(
    head: Head, codes: Codes, texts: pa.StringArray, launch: Codes, chosen: npt.NDArray[np.bool_], reading: Reading
) -> None:
    rows = np.flatnonzero(chosen)
    if len(rows) == 0:
        return
    blank = pa.repeat(pa.scalar("", pa.string()), len(rows))

    def column(name: str) -> pa.Array:
        return texts.take(pa.array(codes[rows, head.at[name]])) if name in head.at else blank

    names = dict(zip(("rule", "type", "description", "speedup_type", "speedup_text"), RULE_COLUMNS, strict=True))
    has_section = "Section Name" in head.at
    section = codes[rows, head.at["Section Name"]].astype(np.int64) if has_section else np.zeros(len(rows), np.int64)
    key = section * len(texts) + codes[rows, head.at["Rule Name"]]
    number = _ordinals(launch[rows], np.unique(key, return_inverse=True)[1].reshape(-1))
    reading.rules.append(
        pa.table(
            {
                "launch": pa.array(launch[rows]),
                "section": column("Section Name"),
                **{ours: column(theirs) for ours, theirs in names.items()},
                "rule_index": pa.array(number),
                "file": pa.array(np.full(len(rows), reading.file, np.int32)),
            }
        )
    )


def read_summary(head: Head, codes: Codes, texts: pa.StringArray, reading: Reading) -> None:
    """Take the cells of a --print-summary table: several launches together, with least, most and mean."""
    codes = codes[_filled(codes[:, head.at["Metric Name"]], texts)]
    groups, group, first = _groups(head, codes, texts)
    printed = [(label, head.at[label]) for label in SUMMARY_VALUES if label in head.at]
    base, index = _meta(head, codes, texts)
    blank = np.flatnonzero(pc.equal(texts, "").to_numpy(zero_copy_only=False))
    count = len(base.name)
    metas = [Meta(base.section, [_join(x, label) for x in base.label], base.name, base.unit) for label, _ in printed]
    texts_of = [codes[:, column] for _, column in printed]
    meta_index = [index + n * count for n in range(len(printed))]
    scope = [group] * len(printed)
    if "Invocations" in head.at:
        metas.append(Meta([""], [""], ["Invocations"], [""]))
        texts_of.append(codes[first, head.at["Invocations"]])
        meta_index.append(np.full(len(first), count * len(printed)))
        scope.append(np.arange(len(first)))
    columns_of = ("section", "label", "name", "unit")
    meta = Meta(*([text for m in metas for text in getattr(m, column)] for column in columns_of))
    entries, texts_all, scopes = np.concatenate(meta_index), np.concatenate(texts_of), np.concatenate(scope)
    keep = ~np.isin(texts_all, blank)
    entries, texts_all, scopes = entries[keep], texts_all[keep], scopes[keep]
    place, key = meta.ranks()
    ordinal = _ordinals(scopes.astype(np.int32), key[entries])
    order = np.lexsort((scopes, ordinal, place[entries]))
    columns = {
        "launch": np.full(len(order), -1, np.int32),
        "meta": entries[order].astype(np.int32),
        "ordinal": ordinal[order],
        "text": texts_all[order].astype(np.int32),
        "scope_id": scopes[order].astype(np.int32),
    }
    reading.add_part(
        "summary", meta, len(order), (-1, -1), reading.keep(columns), look(texts), pa.array(groups, pa.string())
    )


def _join(label: str, value: str) -> str:
    return f"{label}: {value}" if label else value


def _groups(head: Head, codes: Codes, texts: pa.StringArray) -> tuple[list[str], Ints, Ints]:
    """Names of the groups of launches, the group of each row, and the first row of each group."""
    columns = [head.at[c] for c in ("Kernel Name", "Block Size", "Grid Size", "Device", "CC") if c in head.at]
    columns += [column for column, _ in head.nvtx]
    if "Process ID" in head.at:
        columns.append(head.at["Process ID"])
    distinct, first, inverse = np.unique(codes[:, columns], axis=0, return_index=True, return_inverse=True)
    words = [[texts[int(code)].as_py() for code in row] for row in distinct]
    shape = [c for c in ("Block Size", "Grid Size") if c in head.at]
    names = [" ".join([row[0], *row[1 : 1 + len(shape)]]) for row in words]
    if len(set(names)) < len(names):
        names = [" ".join(row) for row in words]
    return names, inverse.reshape(-1), first
