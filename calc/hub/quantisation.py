"""How a checkpoint stores its weights: which matrices are quantised, at how many bytes, and the default cache dtype."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from calc.dtypes import COMPUTE_DTYPE, PLAIN_BYTES, WEIGHT_BYTES, is_auto, kv_code, weight_code
from calc.errors import InputError
from calc.hub.config import Fields
from calc.hub.module_patterns import ModuleSet, module_set
from calc.hub.quantisation_methods import (
    Scheme,
    asked_scheme,
    compressed,
    group_weights,
    method_of,
    packed_ints,
    scheme_of,
)
from calc.messages import msg
from calc.model import WeightStorage

EXCLUSION_KEYS = (
    "modules_to_not_convert",
    "ignore",
    "ignored_layers",
    "exclude_modules",
    "llm_int8_skip_modules",
    "exclude",
    "skip_modules",
)
"""Where the methods keep the modules they leave unquantised."""
FIRST_PLAIN_BITS = 16
"""Per-layer rules of AutoRound and GPTQModel name layers left unquantised by this width."""
TYPICAL_ROW = 4096
"""Row length assumed for per-channel scales where the config has no hidden size: 0.1 % of the weights."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Modules that are stored differently from the rest."""

    modules: ModuleSet
    scheme: Scheme | None
    """``None``: unquantised."""


@dataclass(frozen=True, kw_only=True)
class Storage:
    """Weight storage of a checkpoint with what it leaves unquantised and its default cache dtype."""

    weights: WeightStorage
    plain: str
    """Dtype code of everything unquantised."""
    kv: str
    excluded: ModuleSet = field(default_factory=ModuleSet)
    rules: tuple[Rule, ...] = ()
    """First match wins."""
    only_named: bool = False
    """Modules no rule names stay unquantised."""
    only_experts: bool = False

    def scheme(self, module: str) -> Scheme | None:
        """How the matrix ``module`` ("layers.3.mlp.down_proj") is stored; ``None`` = at the plain dtype."""
        if self.weights.code in PLAIN_BYTES or (self.only_experts and "experts" not in module):
            return None
        if self.excluded.covers(module):
            return None
        for rule in self.rules:
            if rule.modules.covers(module):
                return rule.scheme
        if self.only_named:
            return None
        return Scheme(code=self.weights.code, bytes_per_parameter=self.weights.bytes_per_parameter)

    def quantises(self, module: str) -> bool:
        """Whether the matrix ``module`` is stored quantised."""
        return self.scheme(module) is not None

    @property
    def is_same_in_every_layer(self) -> bool:
        """Whether layers of one shape are stored alike."""
        return all(modules.is_same_in_every_layer for modules in (self.excluded, *(r.modules for r in self.rules)))

    @property
    def unread(self) -> tuple[str, ...]:
        """Expressions of the config's lists that are too intricate to be followed."""
        return self.excluded.unread + tuple(text for rule in self.rules for text in rule.modules.unread)


def read_storage(fields: Fields, weight_dtype: str | None, kv_dtype: str | None) -> Storage:
    """Storage from the config, or from ``weight_dtype`` / ``kv_dtype`` where these are not "auto"."""
    config_plain, block, hidden = _plain_code(fields), quantisation_block(fields), _row(fields)
    asked = None if is_auto(weight_dtype) else asked_scheme(str(weight_dtype), hidden)
    if asked is not None and _is_stored(asked, block, hidden):
        asked = None
    rules, only_named = ((), False) if asked is not None else _rules(fields, block, hidden)
    main = asked if asked is not None else _main_scheme(block, hidden, rules, only_named)
    code = main.code if main else config_plain
    plain = code if asked is not None and code in PLAIN_BYTES else config_plain
    weights = WeightStorage(
        code=code,
        bytes_per_parameter=main.bytes_per_parameter if main else PLAIN_BYTES[code],
        plain_bytes_per_parameter=PLAIN_BYTES[plain],
        compute_dtype=COMPUTE_DTYPE.get(code, "bf16"),
    )
    kv = _config_kv(block, plain) if is_auto(kv_dtype) else kv_code(str(kv_dtype))
    return Storage(
        weights=weights,
        plain=plain,
        kv=kv,
        excluded=_exclusions(block),
        rules=rules,
        only_named=only_named,
        only_experts=code == "mxfp4" and not rules and method_of(block) in ("", "mxfp4"),
    )


def quantisation_block(fields: Fields) -> Mapping[str, Any]:
    """The config's quantisation part; ModelOpt's own file may be given beside it as ``hf_quant_config``."""
    block = fields.mapping("quantization_config", "quantization", "compression_config")
    extra = fields.mapping("hf_quant_config")
    inner = extra.get("quantization")
    return {**(inner if isinstance(inner, Mapping) else extra), **block}


def _row(fields: Fields) -> int:
    value = fields.raw("hidden_size", "n_embd", "d_model")
    usable = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return value if usable else TYPICAL_ROW


def _is_stored(asked: Scheme, block: Mapping[str, Any], hidden: int) -> bool:
    """Whether the checkpoint is stored in the format asked for already: then its own description is finer."""
    if asked.code in PLAIN_BYTES or not block:
        return False
    try:
        stored = scheme_of(block, hidden)
    except InputError:
        return False
    return stored is not None and stored.code == asked.code


def _main_scheme(block: Mapping[str, Any], hidden: int, rules: tuple[Rule, ...], only_named: bool) -> Scheme | None:
    """The scheme most weights have: the narrowest where several are named."""
    named = [rule.scheme for rule in rules if rule.scheme is not None]
    if only_named and named:
        return min(named, key=lambda scheme: scheme.bytes_per_parameter)
    if block and not method_of(block) and not _names_algorithm(block):
        raise InputError(
            msg("the config's quantisation names no method: add its quant_method, or leave the whole part out.")
        )
    return scheme_of(block, hidden)


def _names_algorithm(block: Mapping[str, Any]) -> bool:
    """ModelOpt says null of weights it left alone, with only the cache quantised."""
    return any(key in block for key in ("quant_algo", "kv_cache_quant_algo", "quantized_layers"))


def _plain_code(fields: Fields) -> str:
    text = fields.text("torch_dtype", "dtype", "checkpoint_dtype")
    code = weight_code(text) if text else "bf16"
    # Engines run FP32 checkpoints in BF16 unless they are told not to (vLLM ``_resolve_auto_dtype``).
    return code if code in ("bf16", "fp16") else "bf16"


def _rules(fields: Fields, block: Mapping[str, Any], hidden: int) -> tuple[tuple[Rule, ...], bool]:
    """Per-layer rules, and whether modules outside them stay unquantised."""
    narrow = _narrow_experts(fields)
    if narrow:
        return (*narrow, Rule(modules=module_set(["*"]), scheme=scheme_of(block, hidden))), True
    if method_of(block) == "mixed_precision":
        return _modelopt_layers(block, hidden), True
    groups = group_weights(block)
    if len(groups) > 1:
        return tuple(
            Rule(modules=_targets(names), scheme=compressed(weights, hidden)) for weights, names in groups
        ), True
    return _bit_rules(block, hidden), False


def _narrow_experts(fields: Fields) -> tuple[Rule, ...]:
    """DeepSeek-V4 stores routed experts in FP4 with a scale per 32 (``expert_dtype``), the rest as its block says."""
    if not fields.text("expert_dtype").lower().startswith(("fp4", "mxfp4")):
        return ()
    scheme = Scheme(code="mxfp4", bytes_per_parameter=WEIGHT_BYTES["mxfp4"])
    return (Rule(modules=module_set(["*.experts.*"]), scheme=scheme),)


def _targets(names: list[Any]) -> ModuleSet:
    # "Linear" is a class, not a name: every matrix.
    return module_set("*" if name == "Linear" else name for name in names)


def _modelopt_layers(block: Mapping[str, Any], hidden: int) -> tuple[Rule, ...]:
    """ModelOpt's ``quantized_layers``: name → algorithm."""
    layers = block.get("quantized_layers")
    if not isinstance(layers, Mapping) or not layers:
        raise InputError(
            msg(
                "this mixed-precision checkpoint does not say which layer is stored how: add quantized_layers from its "
                "hf_quant_config.json, or enter the weight bytes."
            )
        )
    names: dict[Scheme, list[str]] = {}
    for name, entry in layers.items():
        scheme = scheme_of({"quant_method": "modelopt", **(entry if isinstance(entry, Mapping) else {})}, hidden)
        if scheme is not None:
            names.setdefault(scheme, []).append(str(name))
    return tuple(Rule(modules=module_set(members), scheme=scheme) for scheme, members in names.items())


def _bit_rules(block: Mapping[str, Any], hidden: int) -> tuple[Rule, ...]:
    """AutoRound's ``extra_config`` and GPTQModel's ``dynamic``: name → bits and group size."""
    rules = []
    for key in ("extra_config", "dynamic"):
        entries = block.get(key)
        for name, entry in entries.items() if isinstance(entries, Mapping) else ():
            rules.append(_bit_rule(str(name), entry if isinstance(entry, Mapping) else {}, block, hidden))
    return tuple(rules)


def _bit_rule(name: str, entry: Mapping[str, Any], block: Mapping[str, Any], hidden: int) -> Rule:
    bits = entry.get("bits", block.get("bits"))
    is_plain = name.startswith("-:") or (isinstance(bits, int) and bits >= FIRST_PLAIN_BITS)
    modules = module_set([f"re:{name[2:]}" if name[:2] in ("-:", "+:") else name])
    if is_plain or not isinstance(bits, int):
        return Rule(modules=modules, scheme=None)
    group = entry.get("group_size", block.get("group_size"))
    return Rule(
        modules=modules, scheme=packed_ints(bits, group if isinstance(group, int) and group > 0 else None, True, hidden)
    )


def _config_kv(block: Mapping[str, Any], plain: str) -> str:
    scheme = block.get("kv_cache_scheme")
    if isinstance(scheme, Mapping) and scheme.get("num_bits") == 8:  # noqa: PLR2004 - eight bits
        return "fp8" if str(scheme.get("type", "float")) == "float" else "int8"
    algorithm = str(block.get("kv_cache_quant_algo") or "").lower()
    return algorithm if algorithm in ("fp8", "nvfp4", "int8") else plain


def _exclusions(block: Mapping[str, Any]) -> ModuleSet:
    names: list[Any] = []
    for key in EXCLUSION_KEYS:
        value = block.get(key)
        if isinstance(value, list):
            names.extend(value)
    return module_set(names)
