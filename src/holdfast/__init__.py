"""Holdfast: background work that is never lost, never silently run twice, and always visible.

from holdfast import Holdfast

hf = Holdfast()

@hf.task
async def greet(name: str) -> str:
    return f"hello, {name}"
"""

from __future__ import annotations

from importlib.metadata import version

from holdfast.app import Holdfast
from holdfast.client.handle import JobHandle
from holdfast.client.keys import NewKey
from holdfast.client.limits import LimitInfo
from holdfast.client.placing import Placement, RoutedCall
from holdfast.client.routes import RouteInfo
from holdfast.client.sync import SyncJobHandle
from holdfast.client.task import Task
from holdfast.client.tasks import TaskInfo
from holdfast.config import Config
from holdfast.core.api_key import ApiKey, Scope
from holdfast.core.defaults import TaskDefaults
from holdfast.core.error_class import ErrorClass
from holdfast.core.error_classes import ErrorClasses
from holdfast.core.errors import (
    ApiRefused,
    ConfigError,
    HardTimeout,
    HoldfastError,
    IdempotencyConflict,
    InvalidArguments,
    InvalidOptions,
    JobCancelled,
    JobFailed,
    JobNotFound,
    JobStateError,
    KeyHeld,
    LeaseLost,
    NotOpen,
    NotUnique,
    OutcomeUnknown,
    PermanentError,
    QueueFull,
    RetryLater,
    RoutingFailed,
    SoftTimeout,
    StartupFailed,
    StoreBroken,
    StoreDataError,
    StoreError,
    StoreUnavailable,
    UnknownTask,
)
from holdfast.core.explanation import Explanation, Reason
from holdfast.core.job import JobInfo
from holdfast.core.limit_options import Breaker, Limit, Rate
from holdfast.core.once_options import Debounce, Throttle, Unique
from holdfast.core.provide import PROVIDED, Provide
from holdfast.core.retry import RetryPolicy
from holdfast.core.routing import Route
from holdfast.core.state import State
from holdfast.core.unset import UNSET
from holdfast.stores.base import CancelAnswer
from holdfast.stores.dead import Replayed
from holdfast.stores.flow import BreakerInfo, SettingChange
from holdfast.worker.context import CurrentJob, current_job
from holdfast.worker.middleware import CallNext

__version__ = version("holdfast")

__all__ = [
    "PROVIDED",
    "UNSET",
    "ApiKey",
    "ApiRefused",
    "Breaker",
    "BreakerInfo",
    "CallNext",
    "CancelAnswer",
    "Config",
    "ConfigError",
    "CurrentJob",
    "Debounce",
    "ErrorClass",
    "ErrorClasses",
    "Explanation",
    "HardTimeout",
    "Holdfast",
    "HoldfastError",
    "IdempotencyConflict",
    "InvalidArguments",
    "InvalidOptions",
    "JobCancelled",
    "JobFailed",
    "JobHandle",
    "JobInfo",
    "JobNotFound",
    "JobStateError",
    "KeyHeld",
    "LeaseLost",
    "Limit",
    "LimitInfo",
    "NewKey",
    "NotOpen",
    "NotUnique",
    "OutcomeUnknown",
    "PermanentError",
    "Placement",
    "Provide",
    "QueueFull",
    "Rate",
    "Reason",
    "Replayed",
    "RetryLater",
    "RetryPolicy",
    "Route",
    "RouteInfo",
    "RoutedCall",
    "RoutingFailed",
    "Scope",
    "SettingChange",
    "SoftTimeout",
    "StartupFailed",
    "State",
    "StoreBroken",
    "StoreDataError",
    "StoreError",
    "StoreUnavailable",
    "SyncJobHandle",
    "Task",
    "TaskDefaults",
    "TaskInfo",
    "Throttle",
    "Unique",
    "UnknownTask",
    "__version__",
    "current_job",
]
