"""One launch of an example kernel as it ships, without any stamp line, for a profiler to look at. Needs a GPU.

ncu --clock-control none --set full --csv --page raw python bench/profile_example.py EXAMPLE M,N,K > EXAMPLE.raw.csv
"""

from __future__ import annotations

import sys
import time

from wsformat.kernels.driver import Device
from wsformat.kernels.examples.problem import compile_pass
from wsformat.kernels.examples.record import EXAMPLES, OFF

if __name__ == "__main__":
    name, size = sys.argv[1], [int(x) for x in sys.argv[2].split(",")]
    with Device() as device:
        module = EXAMPLES[name]
        problem = module.Problem(device, module.VARIANTS[name], *size, seed=time.time_ns() % 2**32)
        problem.add(OFF, compile_pass(problem.variant, None, {}))
        problem.launch(OFF, problem.trips)
        device.synchronize()
