"""Events are plain, uniquely named values."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields

import pytest
from tests.unit.telemetry.samples import FIELD_VALUES, sample

from holdfast.telemetry import events, flow_events, process_events, transport_events
from holdfast.telemetry.events import EVENTS, Event


def test_every_class_in_the_module_is_in_the_union() -> None:
    modules = (events, flow_events, process_events, transport_events)
    defined = {value for module in modules for value in vars(module).values() if inspect.isclass(value)}
    assert {kind for kind in defined if kind.__module__ in {each.__name__ for each in modules}} == set(EVENTS)


def test_names_are_unique() -> None:
    assert len({kind.name for kind in EVENTS}) == len(EVENTS)


@pytest.mark.parametrize("kind", EVENTS)
def test_an_event_is_noun_dot_verb_and_documented(kind: type[Event]) -> None:
    nouns = "job|worker|process|isolate|lead|store|transport|queue|clock|service|setting|breaker|route"
    assert re.fullmatch(rf"({nouns})\.[a-z]+(_[a-z]+)?", kind.name)
    noun = kind.name.partition(".")[0]
    assert kind.__name__.lower().startswith(noun)
    assert kind.__doc__
    assert not kind.__doc__.startswith(f"{kind.__name__}("), "dataclass made this docstring up"


@pytest.mark.parametrize("kind", EVENTS)
def test_fields_have_plain_types(kind: type[Event]) -> None:
    assert {f.type for f in fields(kind)} <= set(FIELD_VALUES)


@pytest.mark.parametrize("kind", EVENTS)
def test_durations_are_floats_in_seconds(kind: type[Event]) -> None:
    for f in fields(kind):
        assert (f.type == "float") == (f.name.endswith("_s") or f.name == "seconds")


@pytest.mark.parametrize("kind", EVENTS)
def test_an_event_cannot_be_changed_or_extended(kind: type[Event]) -> None:
    event = sample(kind)
    first = fields(event)[0].name
    with pytest.raises(AttributeError):
        setattr(event, first, None)
    assert not hasattr(event, "__dict__")
