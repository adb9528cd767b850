"""The validator: everything that is wrong with a bundle, all at once.

    >>> from wsformat.validate import validate
    >>> report = validate("gemm.wsformat")
    >>> report.ok, [problem.code for problem in report.problems]

Rules are data: ``schema/rules.json``. The reader is lenient, the validator is strict.
"""

from wsformat.validate.report import NotRun, Problem, Report
from wsformat.validate.rules import Rule, rules
from wsformat.validate.run import require_valid, validate

__all__ = ["NotRun", "Problem", "Report", "Rule", "require_valid", "rules", "validate"]
