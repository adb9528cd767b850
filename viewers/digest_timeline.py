"""What a timeline of the same kernel in the bundle adds to a digest: which role waits, on what."""

from __future__ import annotations

from wsformat.bundle import Bundle


def timeline_lines(bundle: Bundle) -> list[str]:
    """One sentence a role with stamps or recorded spans; none without a timeline."""
    if not (bundle.rows("events") or bundle.rows("spans")):
        return []
    with bundle.duckdb(materialise=("wait",)) as connection:
        roles = connection.execute(
            "SELECT role, sum(stall)::DOUBLE / sum(extent) AS stall, sum(blocked)::DOUBLE / sum(extent) AS blocked, "
            "sum(untracked)::DOUBLE / sum(extent) AS untracked, min(least_stall_share), max(most_stall_share) "
            "FROM role_summary WHERE extent > 0 AND role <> '' GROUP BY role ORDER BY stall DESC, role"
        ).fetchall()
        waits = connection.execute(
            "SELECT role, barrier, producer_role, sum(blocked_ticks) AS blocked FROM wait_summary "
            "GROUP BY role, barrier, producer_role HAVING sum(blocked_ticks) > 0 ORDER BY blocked DESC"
        ).fetchall()
    lines = []
    for role, stall, blocked, untracked, least, most in roles:
        text = f"{role}: stall {100 * stall:.0f} % of its extent ({100 * least:.0f} to {100 * most:.0f} % by lane), "
        text += f"blocked {100 * blocked:.0f} %, untracked {100 * untracked:.0f} %"
        own = [w for w in waits if w[0] == role]
        if own:
            _, barrier, producer, _ = own[0]
            text += f"; most of it at {barrier or 'an unnamed barrier'}" + (f", for {producer}" if producer else "")
        lines.append(text)
    return lines
