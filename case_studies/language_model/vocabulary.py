"""Language models with the tokens that the tasks use: the rest of an embedding costs time alone.

Of Gemma's 268 million parameters 168 million embed 262,144 tokens. What is cut keeps every text of
the tasks as the tokens it was, so that loss and gradient are those of the whole model but for the
probability of the removed tokens.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
KEPT = HERE / "vocabulary"
"""A file a model: tokens that are kept, and the probability of those removed."""


def kept_tokens(key: str) -> list[int] | None:
    """Tokens of the whole model that are kept, in order; None for a model that stays whole."""
    file = KEPT / f"{key}.json"
    if not file.is_file():
        return None
    return list(json.loads(file.read_text(encoding="utf-8"))["tokens"])


def cut_model(model: Any, tokens: Sequence[int]) -> Any:
    """The same model with these rows of its embedding, and its output matrix tied to them."""
    settings = model.config.to_dict()
    place = {token: number for number, token in enumerate(tokens)}
    for name in ("pad_token_id", "eos_token_id", "bos_token_id"):
        settings[name] = place.get(settings[name])
    settings |= {"vocab_size": len(tokens), "tie_word_embeddings": True}
    settings.pop("quantization_config", None)
    small = type(model)(type(model.config)(**settings))
    weights = {name: value for name, value in model.state_dict().items() if "lm_head" not in name}
    weights["model.embed_tokens.weight"] = weights["model.embed_tokens.weight"][list(tokens)]
    small.load_state_dict(weights, strict=False)
    small.tie_weights()
    return small


def cut_tokenizer(description: dict[str, Any], tokens: Sequence[int]) -> dict[str, Any]:
    """The content of a ``tokenizer.json`` with these tokens alone, numbered in their order."""
    place = {token: number for number, token in enumerate(tokens)}
    own = description["model"]
    kept = {text: place[token] for text, token in own["vocab"].items() if token in place}
    merges = [(a, b) for a, b in map(_pair, own["merges"]) if {a, b, a + b} <= kept.keys()]
    added = [
        one | {"id": place[one["id"]]} for one in description["added_tokens"] if one["id"] in place
    ]
    post = description.get("post_processor") or {}
    for one in (post.get("special_tokens") or {}).values():
        one["ids"] = [place[token] for token in one["ids"]]
    return description | {
        "model": own | {"vocab": kept, "merges": [list(pair) for pair in merges]},
        "added_tokens": added,
    }


def with_parts(description: dict[str, Any], tokens: Iterable[int]) -> list[int]:
    """Tokens, and all that they are merged from: a text of theirs is then cut as it was."""
    own = description["model"]
    rank = {pair: number for number, pair in enumerate(map(_pair, own["merges"]))}
    texts = {token: text for text, token in own["vocab"].items()}
    found = set(tokens)
    for token in list(found):
        pieces = list(texts.get(token, ""))
        while len(pieces) > 1:
            pairs = list(itertools.pairwise(pieces))
            first = min(pairs, key=lambda pair: rank.get(pair, len(rank)))
            if first not in rank:
                break
            at = pairs.index(first)
            pieces[at : at + 2] = ["".join(first)]
            found.add(own["vocab"][pieces[at]])
        found |= {own["vocab"][piece] for piece in texts.get(token, "") if piece in own["vocab"]}
    return sorted(found)


def _pair(merge: Any) -> tuple[str, str]:
    first, second = merge.split(" ") if isinstance(merge, str) else merge
    return first, second
