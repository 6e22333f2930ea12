"""Fields that constrain an answer, in the words of OpenAI, of vLLM and of `uncode.constraint`."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, StrictBool, StrictStr, Tag, model_validator

from ...constraints.json_schema import ANY_JSON_DEPTH
from ..errors import ApiError
from .fields import Body, DecodeFields, Identifier, _only
from .read_body import MAX_CONTAINERS, containers

Source = dict[str, Any]
"""What a constraint is made of, as `uncode.constraint` keeps it."""
Asked = tuple[str, Source]
"""The field that asks for a constraint, and what it is made of."""
Schema = dict[str, Any] | StrictBool
Texts = Annotated[list[StrictStr], Field(min_length=1, fail_fast=True)]
Format = Literal["text", "json_object", "json_schema"]


def source_of(kind: Format, schema: Schema | None) -> Source | None:
    """What the constraint of a format is made of; None for text."""
    if kind == "json_schema":
        return {"json_schema": schema}
    return {"json_schema": {"type": "object"}} if kind == "json_object" else None


class NamedSchema(Body):
    """A JSON schema and its name. The name and the description mean nothing here."""

    name: Identifier = None
    description: StrictStr | None = None
    schema_: Schema = Field(alias="schema")
    strict: StrictBool | None = Field(None, description="The answer is valid under the schema in any case.")


class ResponseFormat(Body):
    """The format of the answer: text, any JSON object, or JSON that is valid under a schema."""

    type: Format
    json_schema: NamedSchema | None = None

    @model_validator(mode="after")
    def _check_schema(self) -> ResponseFormat:
        if (self.json_schema is not None) != (self.type == "json_schema"):
            raise ValueError('json_schema goes with the type "json_schema"')
        return self

    @property
    def source(self) -> Source | None:
        """What the constraint is made of; None for text."""
        return source_of(self.type, None if self.json_schema is None else self.json_schema.schema_)


class StructuredOutputs(Body):
    """One of these, as in vLLM."""

    json_: Schema | StrictStr | None = Field(None, alias="json", description="A JSON schema, or one as text.")
    regex: StrictStr | None = None
    choice: Texts | None = None
    json_object: StrictBool | None = None
    grammar: Annotated[StrictStr | None, _only(why="grammars")] = None
    structural_tag: Annotated[StrictStr | None, _only(why="structural tags")] = None
    whitespace_pattern: Annotated[StrictStr | None, _only()] = None
    disable_any_whitespace: Annotated[StrictBool | None, _only(False)] = None
    disable_additional_properties: Annotated[StrictBool | None, _only(False)] = None
    disable_fallback: StrictBool | None = None

    @model_validator(mode="after")
    def _check_one(self) -> StructuredOutputs:
        given = (self.json_, self.regex, self.choice, self.json_object or None)
        if sum(one is not None for one in given) != 1:
            raise ValueError("it holds one of json, regex, choice and json_object")
        return self

    @property
    def source(self) -> Source:
        """What the constraint is made of."""
        if self.json_ is not None:
            return {"json_schema": _schema(self.json_) if isinstance(self.json_, str) else self.json_}
        if self.json_object:
            return {"json_schema": {"type": "object"}}
        return {"regex": self.regex} if self.regex is not None else {"choices": self.choice}


class ConstraintWords(Body):
    """One of these, as `uncode.constraint` takes them."""

    regex: StrictStr | None = None
    choices: Texts | None = None
    json_schema: Schema | None = None

    @model_validator(mode="after")
    def _check_one(self) -> ConstraintWords:
        if len(self.source) != 1:
            raise ValueError("it holds one of regex, choices and json_schema")
        return self

    @property
    def source(self) -> Source:
        """What the constraint is made of."""
        given = {"regex": self.regex, "choices": self.choices, "json_schema": self.json_schema}
        return {name: value for name, value in given.items() if value is not None}


class ConstrainedFields(DecodeFields):
    """What all endpoints take that answer a prompt."""

    response_format: ResponseFormat | None = Field(
        None, description="Text, any JSON object, or JSON that is valid under a schema."
    )
    structured_outputs: StructuredOutputs | None = Field(None, description="A constraint in the words of vLLM.")
    constraint: (
        Annotated[
            Annotated[Literal["json"], Tag("text")] | Annotated[ConstraintWords, Tag("object")],
            Discriminator(lambda value: "text" if isinstance(value, str) else "object"),
        ]
        | None
    ) = Field(
        None,
        description='What the text of each choice is: {"regex": "..."}, {"choices": ["...", "..."]}, '
        '{"json_schema": {...}}, or "json" for any JSON value.',
    )

    def asked_constraint(self) -> Asked | None:
        """The constraint of a request; None where it has none."""
        found = [(name, source) for name, source in self._sources().items() if source is not None]
        if len(found) > 1:
            raise ApiError(
                400, f"{found[0][0]} and {found[1][0]} are both constraints: send one of them.", param=found[1][0]
            )
        return found[0] if found else None

    def _sources(self) -> dict[str, Source | None]:
        """What each field says of the constraint."""
        given: dict[str, ResponseFormat | StructuredOutputs | ConstraintWords | str | None] = {
            "response_format": self.response_format,
            "structured_outputs": self.structured_outputs,
            "constraint": self.constraint,
        }
        return {
            name: {"json": ANY_JSON_DEPTH} if isinstance(one, str) else None if one is None else one.source
            for name, one in given.items()
        }


def _schema(text: str) -> Any:
    """A schema that was sent as text."""
    fits = containers(text.encode(errors="surrogatepass")) <= MAX_CONTAINERS
    try:
        if fits:
            return json.loads(text)
    except (ValueError, RecursionError):
        pass
    raise ApiError(400, "structured_outputs.json is no JSON schema: send an object.", param="structured_outputs")
