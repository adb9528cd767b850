"""`wsformat hardware`: what is known about a GPU, and who says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from wsformat.cli.scope import Json

if TYPE_CHECKING:
    from wsformat.hardware import Gpu, Value

Name = Annotated[
    str,
    typer.Argument(
        metavar="GPU", help="device name as the driver prints it, or arch; without it: all", show_default=False
    ),
]
FormFactor = Annotated[str, typer.Option("--form-factor", metavar="NAME", help="sxm, pcie, superchip or oam")]


def hardware(gpu: Name = "", form_factor: FormFactor = "", json: Json = False) -> None:
    """Rates per SM and cycle, counts, clocks and capacities of a GPU, each with its source and confidence.

    Rates are dense and per cycle, so that no clock needs to be assumed. What is unverified is marked; `predict` refuses
    it until the budget accepts it.
    """
    from wsformat.cli.output import print_json
    from wsformat.hardware import gpus, lookup

    if not gpu:
        listed = list(gpus().values())
        if json:
            print_json([_json(g) for g in listed])
        else:
            _print_list(listed)
        return
    chosen = lookup(gpu, form_factor=form_factor)
    if json:
        print_json(_json(chosen))
    else:
        _print(chosen)


def _json(gpu: Gpu) -> dict[str, Any]:
    from dataclasses import asdict

    from wsformat.hardware import quantities, shape_classes, sources

    used = {key for v in gpu.values.values() for key in v.source}
    return {
        **{name: getattr(gpu, name) for name in ("key", "name", "vendor", "arch", "chip", "form_factor", "devices")},
        "values": {n: asdict(v) | {"meaning": quantities()[n]["meaning"]} for n, v in gpu.values.items()},
        "shape_classes": [c for c in shape_classes() if gpu.arch in c["arch"]],
        "conflicts": gpu.conflicts(),
        "sources": {key: sources()[key] for key in sorted(used)},
    }


def _print_list(listed: list[Gpu]) -> None:
    from wsformat.cli.output import print_table

    body = [[g.key, g.arch, g.form_factor, _said(g.values.get("sm_count")), ", ".join(g.devices)] for g in listed]
    print_table(["<GPU", "<arch", "<form factor", "SMs", "<device names"], body)
    print("\n`wsformat hardware GPU` shows one of them.")


def _print(gpu: Gpu) -> None:
    from wsformat.cli.output import print_table
    from wsformat.hardware import quantities, shape_classes, sources

    print(f"{gpu.name}: {gpu.chip}, {gpu.arch}, {gpu.form_factor}")
    print("Rates are dense, per SM and cycle; a fused multiply-add is 2 FLOP.\n")
    body = [
        [n, _said(v), v.unit, v.confidence, ", ".join(v.source), quantities()[n]["meaning"], v.note]
        for n, v in gpu.values.items()
    ]
    print_table(["<quantity", "value", "<unit", "<confidence", "<source", "<meaning", "<note"], body)
    doubtful = [n for n, v in gpu.values.items() if v.confidence == "unverified" and v.value is not None]
    if doubtful:
        print(f"\nNever verified: {', '.join(doubtful)}.")
        print("Measure them; `predict` refuses them unless the budget says accept_doubt.")
    shapes = [c for c in shape_classes() if gpu.arch in c["arch"]]
    if shapes:
        print("\nShape classes of MMA rates:")
        for shape in shapes:
            print(
                f"  {shape['name']}: {shape['factor']:g} of the rate, {shape['meaning']} [{', '.join(shape['source'])}]"
            )
    conflicts = gpu.conflicts()
    if conflicts:
        print("\nSources disagree:")
        for conflict in conflicts:
            sides = "; ".join(
                f"{v['value']:g} {v['unit']}: {v['said_by']}" if v["value"] is not None else v["said_by"]
                for v in conflict["values"]
            )
            print(f"  {conflict['topic']}: {sides}. {conflict['rule']}")
    print("\nSources:")
    for key in sorted({key for v in gpu.values.values() for key in v.source}):
        known = sources()[key]
        print(f"  {key}: {known['title']} ({known['kind']}){' ' + known['url'] if known['url'] else ''}")


def _said(value: Value | None) -> str:
    if value is None:
        return "unknown"
    if value.value is None:
        return value.formula or value.absence
    return f"{value.value:,.10g}"
