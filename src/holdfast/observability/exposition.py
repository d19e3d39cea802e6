"""Series as Prometheus reads them. Needs prometheus-client, which is imported when the first text is asked for."""

from __future__ import annotations

import importlib
import importlib.util
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any, Final

from holdfast.core.errors import ConfigError
from holdfast.observability.catalogue import CATALOGUE, Kind, Metric
from holdfast.observability.tally import Series

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def prometheus(module: str = "prometheus_client") -> Any:
    """The package; ConfigError where it is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ConfigError(f"metrics need the package {error.name}: pip install 'holdfast[metrics]'") from error


def check_installed() -> None:
    """ConfigError where it is missing; it is not imported, which takes some megabytes, before it is used."""
    if importlib.util.find_spec("prometheus_client") is None:
        raise ConfigError("metrics need the package prometheus_client: pip install 'holdfast[metrics]'")


def families(series: Iterable[Series]) -> Iterator[Any]:
    """As prometheus_client has them, in the order of the catalogue; a metric without series is left out."""
    core = prometheus("prometheus_client.core")
    found: defaultdict[str, list[Series]] = defaultdict(list)
    for each in series:
        found[each.metric.name].append(each)
    for metric in CATALOGUE:
        if metric.name in found:
            yield _family(core, metric, found[metric.name])


def _family(core: Any, metric: Metric, series: list[Series]) -> Any:
    match metric.kind:
        case Kind.COUNTER:
            family = core.CounterMetricFamily(metric.name, metric.help, labels=metric.labels)
        case Kind.GAUGE:
            family = core.GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
        case Kind.HISTOGRAM:
            family = core.HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
    for each in series:
        if metric.kind is Kind.HISTOGRAM:
            *counts, total = each.values
            bounds = [*map(str, metric.bounds), "+Inf"]
            buckets = list(zip(bounds, accumulate(counts), strict=True))
            family.add_metric(each.labels, buckets=buckets, sum_value=total)
        else:
            family.add_metric(each.labels, each.values[0])
    return family


class _Collected:
    def __init__(self, series: Iterable[Series]) -> None:
        self._series = series

    def collect(self) -> Iterator[Any]:
        return families(self._series)


def text_of(series: Iterable[Series]) -> str:
    """What a scrape is answered with."""
    text: bytes = prometheus().generate_latest(_Collected(series))
    return text.decode()
