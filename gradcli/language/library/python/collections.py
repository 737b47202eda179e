"""The module `collections`."""

from __future__ import annotations

from typing import Any

from gradcli.language.objects.methods import dict_of
from gradcli.language.objects.types import define, host_name
from gradcli.nn.state_dict import OrderedDict


def _ordered(*values: Any, **named: Any) -> OrderedDict:
    return OrderedDict(dict_of(*values, **named))


COLLECTIONS: dict[str, Any] = {
    "OrderedDict": define(host_name(OrderedDict), OrderedDict, construct=_ordered)
}
