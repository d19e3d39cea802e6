"""What is shipped to watch with: every metric and label in it exists, and Prometheus' own tool takes the rules."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.observability.catalogue import CATALOGUE, Kind, Metric
from holdfast.observability.scaling import Demand

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "holdfast.rules.yml"
DASHBOARD = DEPLOY / "grafana" / "holdfast.json"
GIVEN = {"instance", "job"}  # by whoever scrapes

SELECTOR = re.compile(r"\b(holdfast_\w+)(\{[^}]*\})?")
GROUPING = re.compile(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)")


def _samples() -> dict[str, Metric]:
    found = {}
    for metric in CATALOGUE:
        suffixes = ("_bucket", "_sum", "_count") if metric.kind is Kind.HISTOGRAM else ("",)
        found |= {metric.name + suffix: metric for suffix in suffixes}
    return found


SAMPLES = _samples()


def alerts() -> list[dict[str, Any]]:
    [group] = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    return list(group["rules"])


def expressions() -> Iterator[tuple[str, str]]:
    for rule in alerts():
        yield rule["alert"], rule["expr"]
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["definition"]


def complaints(expression: str) -> list[str]:
    """What in an expression does not exist."""
    found, allowed = [], set(GIVEN)
    for name, selector in SELECTOR.findall(expression):
        metric = SAMPLES.get(name)
        if metric is None:
            found.append(f"there is no {name}")
            continue
        labels = {*metric.labels, *GIVEN, *(["le"] if name.endswith("_bucket") else [])}
        allowed |= labels
        used = re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector)
        found += [f"{name} has no label {label}" for label in used if label not in labels]
    for names in GROUPING.findall(expression):
        found += [f"nothing here has a label {each}" for each in re.findall(r"\w+", names) if each not in allowed]
    return found


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_every_name_and_label_exists(where: str, expression: str) -> None:
    assert SELECTOR.search(expression)
    assert complaints(expression) == []
    assert expression.count("(") == expression.count(")")


def test_the_check_sees_what_is_wrong() -> None:
    assert complaints("rate(holdfast_job_enqueued_total[5m])") == ["there is no holdfast_job_enqueued_total"]
    assert complaints('holdfast_queue_jobs{tenant="x"}') == ["holdfast_queue_jobs has no label tenant"]
    assert complaints("sum by (task) (holdfast_queue_jobs)") == ["nothing here has a label task"]
    assert complaints("holdfast_job_run_seconds") == ["there is no holdfast_job_run_seconds"], "only its parts are"


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_what_the_store_says_is_never_summed_up_over_processes(where: str, expression: str) -> None:
    """Each scraped process tells the same depths: `max` first, and a sum only over what that gives."""
    for name, _ in SELECTOR.findall(expression):
        if SAMPLES[name].source == "store" and "label_values" not in expression:
            before = expression[: expression.index(name)].rstrip()
            assert re.search(r"(max|min)( by \([^)]*\))? ?\($", before), f"{name} in {expression}"


def test_alerts_use_labels_that_their_expressions_keep_and_say_what_is_up() -> None:
    for rule in alerts():
        assert rule["labels"]["severity"] in ("warning", "critical")
        text = " ".join(rule["annotations"].values())
        for label in re.findall(r"\$labels\.(\w+)", text):
            assert any(label in names for names in GROUPING.findall(rule["expr"])), rule["alert"]
    names = [rule["alert"] for rule in alerts()]
    assert len(set(names)) == len(names)


def test_panels_do_not_overlap_and_legends_name_labels_that_are_there() -> None:
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken
        assert at["x"] + at["w"] <= 24
        taken |= cells
        for target in panel.get("targets", ()):
            kept = {name for names in GROUPING.findall(target["expr"])[:1] for name in re.findall(r"\w+", names)}
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= kept
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)


def test_keda_reads_a_field_that_there_is() -> None:
    scaled, _ = yaml.safe_load_all((DEPLOY / "keda.yml").read_text("utf-8"))
    [trigger] = scaled["spec"]["triggers"]
    assert trigger["metadata"]["valueLocation"] in {field.name for field in dataclasses.fields(Demand)}


@pytest.mark.system
def test_prometheus_own_tool_takes_the_rules_and_the_dashboards_expressions(tmp_path: Path) -> None:
    tool = shutil.which("promtool")
    if tool is None:
        pytest.skip("SYSTEM TEST NOT RUN: there is no promtool (Debian: apt-get install prometheus)")
    shown = [expression.replace("$__rate_interval", "5m") for where, expression in expressions()]
    rules = [
        {"record": f"shown:{number}", "expr": each} for number, each in enumerate(shown) if "label_values" not in each
    ]
    as_rules = tmp_path / "shown.yml"
    as_rules.write_text(yaml.safe_dump({"groups": [{"name": "shown", "rules": rules}]}), "utf-8")
    command = [tool, "check", "rules", str(RULES), str(as_rules)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
