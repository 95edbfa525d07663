"""The parts of TensorBoard's and W&B's protobuf messages that are read, declared for `protobuf`.

Names of tags and keys are declared as bytes: one that is no UTF-8 must not cost its record.
"""

from __future__ import annotations

from functools import cache
from typing import Any

BYTES, DOUBLE, FLOAT, INTEGER, SWITCH = "BYTES", "DOUBLE", "FLOAT", "INT64", "BOOL"

SCHEMA: dict[str, tuple[tuple[str, int, str], ...]] = {
    # tensorflow/core/util/event.proto, framework/summary.proto, framework/tensor.proto
    "Event": (("time", 1, DOUBLE), ("step", 2, INTEGER), ("summary", 5, "Summary")),
    "Summary": (("values", 1, "*Value"),),
    "Value": (
        ("tag", 1, BYTES),
        ("simple", 2, FLOAT),
        ("tensor", 8, "Tensor"),
        ("metadata", 9, "Metadata"),
    ),
    "Tensor": (
        ("dtype", 1, INTEGER),
        ("content", 4, BYTES),
        ("floats", 5, "*FLOAT"),
        ("doubles", 6, "*DOUBLE"),
        ("strings", 8, "*BYTES"),
    ),
    "Metadata": (("plugin", 1, "Plugin"),),
    "Plugin": (("content", 2, BYTES),),
    # tensorboard/plugins/hparams/plugin_data.proto
    "HparamsData": (("session_start", 3, "SessionStart"),),
    "SessionStart": (("hparams", 1, "*Hparam"),),
    "Hparam": (("key", 1, BYTES), ("value", 2, "Any")),
    "Any": (("number", 2, DOUBLE), ("string", 3, BYTES), ("switch", 4, SWITCH)),
    # wandb/proto/wandb_internal.proto
    "Record": (("history", 2, "History"), ("config", 5, "Config"), ("run", 17, "Run")),
    "History": (("items", 1, "*Item"), ("step", 2, "HistoryStep")),
    "HistoryStep": (("number", 1, INTEGER),),
    "Config": (("updates", 1, "*Item"),),
    "Run": (("config", 4, "Config"),),
    "Item": (("key", 1, BYTES), ("nested_key", 2, "*BYTES"), ("value", 16, BYTES)),
}
"""Message -> name, number and type of its fields; a star marks repeated ones."""


class MalformedError(ValueError):
    """Bytes that are no message of the kind asked for."""


def parse(kind: str, data: bytes) -> Any:
    """Parse a message of one of the kinds in `SCHEMA`."""
    # Imported where a log needs it: it takes longer than most logs take to read.
    from google.protobuf.message import DecodeError

    try:
        return _classes()[kind].FromString(data)
    except DecodeError as error:
        raise MalformedError(str(error)) from None


@cache
def _classes() -> dict[str, Any]:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    field_type = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="advisor_logs.proto", package="advisor_logs")
    for name, fields in SCHEMA.items():
        message = file.message_type.add(name=name)
        for field, number, star_kind in fields:
            kind = star_kind.removeprefix("*")
            added = message.field.add(name=field, number=number)
            is_repeated = kind != star_kind
            added.label = field_type.LABEL_REPEATED if is_repeated else field_type.LABEL_OPTIONAL
            if kind in SCHEMA:
                added.type = field_type.TYPE_MESSAGE
                added.type_name = f".{file.package}.{kind}"
            else:
                added.type = getattr(field_type, f"TYPE_{kind}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = pool.FindFileByName(file.name).message_types_by_name
    return {name: message_factory.GetMessageClass(found[name]) for name in SCHEMA}
