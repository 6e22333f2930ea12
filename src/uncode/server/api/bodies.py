"""The bodies of requests."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictInt, StrictStr

from .fields import Body, DecodeFields, NeverSet, NoneOrOne, Whole, _only

Ids = list[StrictInt]


class CompletionBody(DecodeFields):
    """The body of /v1/completions."""

    prompt: StrictStr | list[StrictStr] | Ids | list[Ids] | None = Field(
        None,
        description="A text, token ids, or several of either. Mask ids among token ids are gaps to fill; a marker in a "
        "text is ordinary text.",
    )
    suffix: StrictStr | None = Field(None, description="Text after the answer: the answer fills the gap.")
    infill: list[StrictStr | Whole] | None = Field(
        None,
        description='Texts and gaps, instead of a prompt: ["Paris is the ", 2, " of France."] has a gap of 2 tokens.',
        examples=[["Paris is the ", 2, " of France."]],
    )
    logprobs: NoneOrOne | None = Field(
        None,
        description="Log probabilities of the tokens when they were committed; 1 at temperature 0 alone.",
    )
    echo: Annotated[StrictBool | None, _only(False)] = None
    best_of: Annotated[StrictInt | None, _only(1)] = None


class FimBody(DecodeFields):
    """The body of /v1/fim/completions: the text between a prompt and a suffix."""

    prompt: StrictStr
    suffix: StrictStr | None = None
    min_tokens: Annotated[StrictInt | None, _only(0)] = None
    random_seed: Whole | None = Field(None, description="Another name of seed.")


class TextPart(Body):
    """A part of a message that is text."""

    type: Literal["text"]
    text: StrictStr


class Message(Body):
    """One message of a chat."""

    role: Literal["system", "developer", "user", "assistant"]
    content: StrictStr | list[TextPart]
    name: NeverSet = None
    refusal: NeverSet = None
    annotations: Annotated[list[Any] | None, _only([])] = None
    audio: NeverSet = None
    tool_calls: Annotated[list[Any] | None, _only([])] = None
    function_call: NeverSet = None

    def plain(self) -> dict[str, str]:
        """Role and text, as chat templates read them."""
        content = self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)
        return {"role": "system" if self.role == "developer" else self.role, "content": content}


class ResponseFormat(Body):
    """The format of the answer: text."""

    type: Literal["text"]


class ChatBody(DecodeFields):
    """The body of /v1/chat/completions."""

    messages: list[Message] = Field(min_length=1)
    logprobs: StrictBool | None = None
    top_logprobs: NoneOrOne | None = Field(None, description="1 at temperature 0 alone.")
    response_format: ResponseFormat | None = None
    modalities: Annotated[list[StrictStr] | None, _only(["text"])] = None
    tools: Annotated[list[Any] | None, _only([])] = None
    functions: Annotated[list[Any] | None, _only([])] = None
    tool_choice: Annotated[StrictStr | None, _only("none", "auto")] = None
    function_call: Annotated[StrictStr | None, _only("none", "auto")] = None
    parallel_tool_calls: StrictBool | None = None
    prediction: NeverSet = None
    audio: NeverSet = None
    reasoning_effort: Annotated[StrictStr | None, _only("none")] = None
    verbosity: Annotated[StrictStr | None, _only("medium")] = None
    web_search_options: NeverSet = None
