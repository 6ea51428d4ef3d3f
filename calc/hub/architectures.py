"""Which architecture a config is: found in the table of families, or refused in words. Nothing is guessed."""

from __future__ import annotations

from types import MappingProxyType

from calc.errors import UnknownArchitecture
from calc.hub.config import Fields
from calc.hub.families import FAMILIES, Family
from calc.hub.further_families import FURTHER
from calc.hub.hybrid_families import HYBRIDS
from calc.messages import msg

_FIXED_STATE = msg("a fixed state per request beside the cache (Mamba or linear attention)")
_COMPRESSED = msg("a compressed cache that is not a fixed number of bytes per token")
_CROSS = msg("a second cache over an encoder's output (cross-attention)")
_TWICE = msg("the caches of two attention blocks in one layer")

REFUSED = MappingProxyType(
    {
        **dict.fromkeys(("rwkv", "plamo2"), _FIXED_STATE),
        **dict.fromkeys(("deepseek_v41", "deepseekv41"), _COMPRESSED),
        **dict.fromkeys(("whisper", "t5", "bart", "mllama", "florence", "cohereasr", "nemotronparse"), _CROSS),
        **dict.fromkeys(("longcat",), _TWICE),
    }
)
"""Families whose memory rules are not built in, and what is missing; keys match the start of a type or class name."""

_ALL = (*FAMILIES, *HYBRIDS, *FURTHER)
_BY_ARCHITECTURE = {name: family for family in _ALL for name in family.architectures}
_BY_TYPE = {name: family for family in _ALL for name in family.types}


def _class_name(fields: Fields) -> str:
    names = fields.outer.get("architectures")
    if not isinstance(names, list | tuple) or not names:
        names = fields.inner.get("architectures")
    return str(names[0]) if isinstance(names, list | tuple) and names else ""


def _refuse_known(*labels: str) -> None:
    for label in labels:
        for start, what in REFUSED.items():
            if label.lower().startswith(start):
                raise UnknownArchitecture(
                    msg(
                        "{family} keeps {what}, which is not modelled: "
                        "use a model of a supported family, or size it from the engine's own log.",
                        family=label,
                        what=what,
                    )
                )


def family_of(fields: Fields) -> Family:
    """The family of a config, by class name first (what engines load by), then by ``model_type``."""
    class_name, model_type = _class_name(fields), fields.text("model_type")
    _refuse_known(class_name, model_type)
    family = _BY_ARCHITECTURE.get(class_name)
    if family is None and (fields.is_multimodal or not class_name.endswith("ForCausalLM")):
        family = _BY_TYPE.get(model_type)
    if family is None:
        raise UnknownArchitecture(
            msg(
                "The architecture {name} is not known and its cache is never guessed: "
                "choose a catalogue model of the same shape, or size it from the engine's own log.",
                name=class_name or model_type or "(none given)",
            )
        )
    return family


def architecture_name(fields: Fields) -> str:
    """What the config calls itself: class name, else ``model_type``."""
    return _class_name(fields) or fields.text("model_type")
