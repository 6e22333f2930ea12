"""Fields that several bodies share. An unknown field is refused, and so is one that cannot be honoured."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    Tag,
    create_model,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema

from ...samplers.options import OPTIONS

SEED_LIMIT = 2**63
MAX_NAME = 512
"""Characters of a name, and of an option that is one."""
UNSUPPORTED = "cannot be honoured"
"""In the errors of fields that are known, and of values that they may not have."""
MAX_BIASES = 1024
MAX_STOPS = 4
MAX_STOP_IDS = 128
MAX_STOP = 4096
"""Characters of a stop string."""


def _only(*neutral: Any, why: str = "") -> AfterValidator:
    """A field that is harmless at these values alone; `why` names what is not supported."""

    def check(value: Any) -> Any:
        if value is not None and value not in neutral:
            allowed = " or ".join(json.dumps(one) for one in neutral)
            reason = f"{UNSUPPORTED}: {f'{why} are not supported; ' if why else ''}leave it out"
            raise ValueError(reason + (f", or send {allowed}" if neutral else ""))
        return value

    return AfterValidator(check)


def _whole(value: Any) -> Any:
    """Clients in other languages send 64.0 for 64."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[StrictInt, BeforeValidator(_whole)]


def _of_all(value: float | None) -> float | None:
    """Clients send -1 or 0 for no limit."""
    return value if value is not None and value > 0 else None


def _read_bias(value: Any) -> Any:
    """A bias by token id; the first wrong entry refuses it."""
    fits = isinstance(value, dict) and len(value) <= MAX_BIASES and all(_is_bias(*one) for one in value.items())
    if value is not None and not fits:
        raise ValueError(f"send at most {MAX_BIASES} token ids, each with a number from -100 to 100")
    return value


def _is_bias(token: str, bias: object) -> bool:
    is_id = token.isascii() and token.isdigit() and len(token) < 10 and str(int(token)) == token
    return is_id and isinstance(bias, int | float) and not isinstance(bias, bool) and -100 <= bias <= 100


AtLeastOne = Annotated[StrictInt, Field(ge=1), BeforeValidator(_whole)]
NeverSet = Annotated[SkipJsonSchema[Any], _only()]
"""A field of the API that has no neutral value but null."""
Name = Annotated[StrictStr, Field(max_length=MAX_NAME)]
Identifier = Name | None
"""A name that the client gives its user. Nothing depends on it."""
Stop = Annotated[StrictStr, Field(max_length=MAX_STOP)]
TEXT_OR_LIST = Discriminator(lambda value: "list" if isinstance(value, list) else "text")
"""Chooses between the tags of a field that is a text or a list, so that errors are of the one that was meant."""


class Body(BaseModel):
    """A body in which every field is known."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    @model_validator(mode="before")
    @classmethod
    def _keep_one_unknown_field(cls, data: Any) -> Any:
        """One unknown field refuses a body. A million would cost a million errors."""
        known = {field.alias or name for name, field in cls.model_fields.items()}
        first = next((name for name in data if name not in known), None) if isinstance(data, dict) else None
        return data if first is None else {name: data[name] for name in (*known, first) if name in data}


class StreamOptions(Body):
    """Options of a streamed answer."""

    include_usage: StrictBool = False
    """Send a last chunk with the usage."""
    include_obfuscation: Annotated[StrictBool, _only(False)] = False


class _SamplerFields(Body):
    """The sampler and its options, at the top level of a body: that is where `extra_body` puts them."""

    sampler: Name | dict[str, Any] | None = Field(
        None, description="The name of a sampler (GET /v1/samplers), or a sampler as data."
    )

    def options(self) -> dict[str, Any]:
        """The options that were given, by the names that presets give them."""
        return {name: value for name in SENDABLE if (value := getattr(self, name)) is not None}


SENDABLE = {name: option for name, option in OPTIONS.items() if option.type is not None}
"""The options that a request may hold: all but the frequency table, which is a file of the server."""
_TYPES = {int: Whole, bool: StrictBool, float: float}
if TYPE_CHECKING:
    SamplerFields = _SamplerFields
else:
    _FIELDS = {
        name: (_TYPES.get(option.type, option.type) | None, Field(None, description=option.meaning))
        for name, option in SENDABLE.items()
    }
    SamplerFields = create_model("SamplerFields", __base__=_SamplerFields, **_FIELDS)


class DecodeFields(SamplerFields):
    """What all endpoints that decode take."""

    model: Name | None = Field(None, description="The model's name (GET /v1/models). Default: the one there is.")
    temperature: Annotated[float, Field(ge=0, le=2)] | None = Field(
        None, description="Of the proposed tokens. Default: the sampler's own, which is 0 for most."
    )
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[StrictInt | None, Field(ge=-1), AfterValidator(_of_all), BeforeValidator(_whole)] = Field(
        None, description="Draw among the k most probable tokens; -1 and 0 stand for all."
    )
    seed: Annotated[StrictInt, Field(ge=-SEED_LIMIT, lt=SEED_LIMIT - 1024), BeforeValidator(_whole)] | None = Field(
        None, description="Choice i uses seed + i. The same seed gives the same text, whatever the load."
    )
    stop: (
        Annotated[
            Annotated[Stop, Tag("text")] | Annotated[list[Stop], Field(max_length=MAX_STOPS), Tag("list")], TEXT_OR_LIST
        ]
        | None
    ) = Field(None, description="At most 4 strings of at most 4096 characters. The text ends before the first of them.")
    stop_token_ids: Annotated[list[StrictInt], Field(fail_fast=True, max_length=MAX_STOP_IDS)] | None = Field(
        None, description="The text ends before the first of these tokens."
    )
    ignore_eos: StrictBool | None = Field(None, description="Go on behind an EOS token, and fill every mask.")
    max_tokens: AtLeastOne | None = Field(None, description="Tokens to generate: the masks of the canvas.")
    max_completion_tokens: AtLeastOne | None = Field(None, description="The newer name of max_tokens.")
    n: AtLeastOne | None = Field(None, description="Choices per prompt.")
    stream: StrictBool | None = None
    stream_options: StreamOptions | None = None
    stop_at_eos: StrictBool = Field(True, description="End an answer at its first EOS token, without filling the rest.")
    commits: StrictBool = Field(False, description="Streams only: each chunk carries what its forward committed.")
    diffusing: StrictBool = Field(
        False, description="Streams only: each chunk has the whole text, and replaces the one before."
    )
    trace: StrictBool = Field(False, description="Add the trace of each choice.")
    step_map: StrictBool = Field(
        False, description="Add the tokens of each choice, and which of its forwards committed each of them."
    )
    min_p: Annotated[float | None, Field(ge=0), AfterValidator(_of_all)] = Field(
        None, description=OPTIONS["min_p"].meaning
    )
    logit_bias: Annotated[dict[str, float] | None, BeforeValidator(_read_bias)] = Field(
        None, description=f"Added to the logits of these token ids, from -100 to 100; at most {MAX_BIASES}."
    )
    # harmless at these values alone
    user: Identifier = None
    safety_identifier: Identifier = None
    prompt_cache_key: Identifier = None
    service_tier: Annotated[StrictStr | None, _only("auto", "default")] = None
    store: Annotated[StrictBool | None, _only(False)] = None
    min_tokens: Annotated[StrictInt | None, _only(0)] = None
    metadata: Annotated[dict[Name, Name], Field(max_length=16)] | None = Field(None, description="Of the client alone.")

    @property
    def prompt_count(self) -> int:
        """Prompts of the request; each is `n` choices."""
        return 1
