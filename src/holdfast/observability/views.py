"""One look at the cluster for all that an app's process reports: metrics, health and demand share it."""

from __future__ import annotations

import weakref

from holdfast.app import Holdfast
from holdfast.core.errors import NotOpen
from holdfast.observability.cluster import ClusterView
from holdfast.stores.base import Store

_views: weakref.WeakKeyDictionary[Holdfast, ClusterView] = weakref.WeakKeyDictionary()


def view_of(hf: Holdfast) -> ClusterView:
    """The app's; an app that is not open is a store that is away."""
    view = _views.get(hf)
    if view is None:
        app = weakref.ref(hf)

        async def store() -> Store:
            found = app()
            if found is None:
                raise NotOpen("the app is gone")
            return found._open_store()

        view = _views[hf] = ClusterView(store)
    return view


def transport_is_up(app: Holdfast | None) -> bool | None:
    """Whether Redis is used now; None where none is configured, or the app is not open."""
    if app is None or app._opened is None or app._opened.dispatch.store is None:
        return None
    return app._opened.dispatch.transport.is_up
