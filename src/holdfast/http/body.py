"""What all parts of a request have in common: what is not known is refused, and every number and text has a bound."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

TEN_YEARS_S: Final = 10 * 365 * 86_400
#: What `core.names` takes for printable.
TEXT: Final = r"^[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]+$"

Name = Annotated[str, Field(min_length=1, max_length=200, pattern=TEXT)]
Delay = Annotated[float, Field(ge=0, le=TEN_YEARS_S, allow_inf_nan=False, strict=True)]
Span = Annotated[float, Field(ge=0.001, le=TEN_YEARS_S, allow_inf_nan=False, strict=True)]
Count = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]


class Body(BaseModel):
    """A part of a request; what it does not know is refused, so that no slip of the pen is passed over."""

    model_config = ConfigDict(extra="forbid", frozen=True)
